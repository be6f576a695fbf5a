"""Signs checkpoints with Ed25519, and checks signatures, with the extra `sign` (the library `cryptography`).

A private key is a PEM file (PKCS 8) that only its owner may read. A public key is written as one word,
`ed25519:<base64 of its 32 bytes>`; a PEM file of one will do, too. Its id is the beginning of its SHA-256.
"""

import base64
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from intersession_events.basics.errors import BadKey, MissingExtra

PREFIX: Final = "ed25519:"
KEY_BYTES: Final = 32
_ID_LENGTH: Final = 16
_MOST_BYTES: Final = 65_536

_ED25519: Final = "cryptography.hazmat.primitives.asymmetric.ed25519"
_SERIALIZATION: Final = "cryptography.hazmat.primitives.serialization"


class PublicKey(msgspec.Struct, frozen=True):
    """A key that proves signatures, by its 32 bytes."""

    raw: bytes

    @property
    def id(self) -> str:
        """The name of the key in a checkpoint: the first 16 hex digits of its SHA-256."""
        return sha256(self.raw).hexdigest()[:_ID_LENGTH]

    def __str__(self) -> str:
        return PREFIX + base64.b64encode(self.raw).decode()

    def has_signed(self, text: bytes, signature: str) -> bool:
        """Whether this key made a signature (base64) over a text.

        Raises:
            MissingExtra: the extra `sign` is not installed.
        """
        kind = _imported(_ED25519).Ed25519PublicKey
        invalid: type[Exception] = _imported("cryptography.exceptions").InvalidSignature
        try:
            kind.from_public_bytes(self.raw).verify(base64.b64decode(signature, validate=True), text)
        except (invalid, ValueError):
            return False
        return True


class PrivateKey:
    """A key that signs. It shows nothing of itself but its public half."""

    def __init__(self, secret: Any) -> None:  # an `Ed25519PrivateKey`, of a library that not every host has
        self._secret = secret
        serialization = _imported(_SERIALIZATION)
        self.public: Final = PublicKey(
            secret.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        )

    def sign(self, text: bytes) -> str:
        """Return the signature over a text, in base64."""
        return base64.b64encode(self._secret.sign(text)).decode()

    def pem(self) -> bytes:
        """Return the file that `read_private` reads. It must be kept secret: it signs as this log's host."""
        serialization = _imported(_SERIALIZATION)
        text: bytes = self._secret.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return text

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.id})"


class Trusted:
    """Trusted public keys by their ids: several, so that a host can change its key."""

    def __init__(self, keys: Iterable[PublicKey] = ()) -> None:
        self._keys: Mapping[str, PublicKey] = {key.id: key for key in keys}

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the keys, sorted."""
        return tuple(sorted(self._keys))

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """The keys."""
        return tuple(self._keys.values())

    def of(self, key_id: str | None) -> PublicKey | None:
        """Return the key of an id; None if it is not trusted."""
        return self._keys.get(key_id or "")


def new_private(entropy: Callable[[int], bytes]) -> PrivateKey:
    """Make a key from 32 random bytes.

    Raises:
        MissingExtra: the extra `sign` is not installed.
    """
    return PrivateKey(_imported(_ED25519).Ed25519PrivateKey.from_private_bytes(entropy(KEY_BYTES)))


def write_private(key: PrivateKey, path: Path) -> None:
    """Write a key to a new file that only this user may read.

    Raises:
        FileExistsError: there is something already.
        OSError: it can't be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)  # whatever the umask says
            file.write(key.pem())
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def read_private(path: Path) -> PrivateKey:
    """Return the key of a file.

    Raises:
        BadKey: it can't be read, others may read it, or it is no private Ed25519 key.
        MissingExtra: the extra `sign` is not installed.
    """
    serialization, ed25519 = _imported(_SERIALIZATION), _imported(_ED25519)
    text = _read(path)
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadKey(
            f"{path} can be read by others (mode {stat.S_IMODE(mode):03o}): chmod 600 it, or make a new key"
        )
    try:
        secret = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError) as error:
        raise BadKey(f"{path} holds no private key without a password in PEM ({error})") from error
    if not isinstance(secret, ed25519.Ed25519PrivateKey):
        raise BadKey(f"{path} holds a {type(secret).__name__}: checkpoints are signed with Ed25519")
    return PrivateKey(secret)


def public_keys(given: str) -> list[PublicKey]:
    """Return the public keys in a text, or in the file it names: `ed25519:…`, a file of such lines, or one key in PEM.

    In a file, empty lines and those that begin with # are passed over, and so is what follows a key on its line.

    Raises:
        BadKey: there is none, or one that is no Ed25519 key.
        MissingExtra: it is a PEM file, and the extra `sign` is not installed.
    """
    if given.startswith(PREFIX):
        return [_public(given, given)]
    path = Path(given)
    text = _read(path)
    if b"-----BEGIN" in text:
        return [_public_in_pem(text, path)]
    words = [line.split()[0] for line in text.decode(errors="replace").splitlines() if line.strip()]
    keys = [_public(word, f"{path}: {word[:64]}") for word in words if not word.startswith("#")]
    if not keys:
        raise BadKey(f"{path} holds no public key; `intersession keys show` prints one")
    return keys


def _public(word: str, where: str) -> PublicKey:
    try:
        raw = base64.b64decode(word.removeprefix(PREFIX), validate=True)
    except ValueError:
        raw = b""
    if not word.startswith(PREFIX) or len(raw) != KEY_BYTES:
        raise BadKey(f"{where} is no public key: it is {PREFIX} and the base64 of 32 bytes")
    return PublicKey(raw)


def _public_in_pem(text: bytes, path: Path) -> PublicKey:
    if b"PRIVATE KEY" in text:
        raise BadKey(f"{path} is a private key: give its public half (`intersession keys show {path}`)")
    serialization, ed25519 = _imported(_SERIALIZATION), _imported(_ED25519)
    try:
        key = serialization.load_pem_public_key(text)
    except ValueError as error:
        raise BadKey(f"{path} holds no public key in PEM ({error})") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise BadKey(f"{path} holds a {type(key).__name__}: checkpoints are signed with Ed25519")
    return PublicKey(key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        raise BadKey(f"{path} can't be read as a key ({error})") from error


def _imported(module: str) -> Any:  # of a library that not every host has
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra("a signature of a checkpoint", "cryptography", "sign") from error
