"""Signs checkpoints with Ed25519, and checks signatures, with the extra `sign` (the library `cryptography`).

A private key is a PEM file (PKCS 8) that only its owner may read. A public key is written as one word,
`ed25519:<base64 of its 32 bytes>`, or with a name as a vkey of C2SP (`NamedKey`); a PEM file of one will do, too. Its id is
the beginning of its SHA-256.
"""

import base64
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
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

_LOG: Final = 1
_WITNESS: Final = 4
_NAME: Final = re.compile(r"[^\s+]{1,200}")
_VKEY: Final = re.compile(rf"({_NAME.pattern})\+([0-9a-f]{{8}})\+([A-Za-z0-9+/]{{44}})")

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


class NamedKey(msgspec.Struct, frozen=True):
    """A public key under a name: of a log, which signs notes, or of a witness, which cosigns them with the time.

    As a word it is a vkey: `name+hash+base64` (TLOG-1).
    """

    name: str
    key: PublicKey
    is_witness: bool = False

    @property
    def hash(self) -> bytes:
        """The four bytes before its signatures."""
        return sha256(self.name.encode() + b"\n" + self._typed).digest()[:4]

    @property
    def _typed(self) -> bytes:
        return bytes([_WITNESS if self.is_witness else _LOG]) + self.key.raw

    def __str__(self) -> str:
        return f"{self.name}+{self.hash.hex()}+{base64.b64encode(self._typed).decode()}"


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
    """Trusted public keys by their ids: several, so that a host can change its key.

    `witnesses` are trusted as well, `quorum` of them together (TLOG-4); 0 is all. A witness with two names is one.
    """

    def __init__(
        self, keys: Iterable[PublicKey] = (), *, witnesses: Iterable[NamedKey] = (), quorum: int = 0
    ) -> None:
        self._keys: Mapping[str, PublicKey] = {key.id: key for key in keys}
        self.witnesses = tuple({witness.key.raw: witness for witness in witnesses}.values())
        self.quorum = quorum or len(self.witnesses)

    def __bool__(self) -> bool:
        return bool(self._keys or self.witnesses)

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """The keys of hosts."""
        return tuple(self._keys.values())

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the keys, sorted."""
        return tuple(sorted(self._keys))

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


def trusted_keys(given: Iterable[str], *, quorum: int = 0) -> Trusted:
    """Return the keys in texts, or in the files they name, as trusted ones: of hosts, and of witnesses.

    Raises:
        BadKey: as `public_keys` says; or there are fewer witnesses than the quorum wants.
        MissingExtra: as `public_keys` says.
    """
    keys = [key for one in given for key in public_keys(one)]
    witnesses = [key for key in keys if isinstance(key, NamedKey) and key.is_witness]
    named = [key.key for key in keys if isinstance(key, NamedKey) and not key.is_witness]
    trusted = Trusted(
        [*(key for key in keys if isinstance(key, PublicKey)), *named], witnesses=witnesses, quorum=quorum
    )
    if quorum > len(trusted.witnesses):
        raise BadKey(
            f"a quorum of {quorum} takes as many trusted witnesses, there are {len(trusted.witnesses)}: give the vkey of each"
        )
    return trusted


def public_keys(given: str) -> Sequence[PublicKey | NamedKey]:
    """Return the public keys in a text, or in the file it names: `ed25519:…`, a vkey, a file of such lines, or one key in PEM.

    In a file, empty lines and those that begin with # are passed over, and so is what follows a key on its line.

    Raises:
        BadKey: there is none, or one that is no Ed25519 key.
        MissingExtra: it is a PEM file, and the extra `sign` is not installed.
    """
    if given.startswith(PREFIX) or _VKEY.fullmatch(given):
        return [_public(given, given)]
    path = Path(given)
    if "+" in given and not path.exists():
        return [named_key(given)]  # which says what is wrong with it
    text = _read(path)
    if b"-----BEGIN" in text:
        return [_public_in_pem(text, path)]
    words = [line.split()[0] for line in text.decode(errors="replace").splitlines() if line.strip()]
    keys = [_public(word, f"{path}: {word[:64]}") for word in words if not word.startswith("#")]
    if not keys:
        raise BadKey(f"{path} holds no public key; `intersession keys show` prints one")
    return keys


def named_key(text: str) -> NamedKey:
    """Return the key of a vkey, `name+hash+base64`.

    Raises:
        BadKey: it has another form, its hash is not that of its name and key, or it is not Ed25519 of a log (01) or a witness (04).
    """
    found = _VKEY.fullmatch(text)
    if found is None:
        raise BadKey(f"{text[:200]!r} is no vkey: it is a name, 8 hex digits and base64, with + between them")
    name, digits, encoded = found.groups()
    raw = base64.b64decode(encoded)
    if raw[0] not in {_LOG, _WITNESS}:
        raise BadKey(
            f"the vkey of {name} has kind {raw[0]:02x}; those that can be checked are 01 (a log's Ed25519) and 04 (a witness's)"
        )
    key = NamedKey(name, PublicKey(raw[1:]), is_witness=raw[0] == _WITNESS)
    if key.hash.hex() != digits:
        raise BadKey(
            f"the vkey of {name} has the hash {digits}, its name and key make {key.hash.hex()}: copy it again"
        )
    return key


def is_key_name(text: str) -> bool:
    """Whether a log or a witness can be called so: neither empty nor long, and without spaces and +."""
    return _NAME.fullmatch(text) is not None and text.isprintable()


def _public(word: str, where: str) -> PublicKey | NamedKey:
    if _VKEY.fullmatch(word):
        return named_key(word)
    try:
        raw = base64.b64decode(word.removeprefix(PREFIX), validate=True)
    except ValueError:
        raw = b""
    if not word.startswith(PREFIX) or len(raw) != KEY_BYTES:
        raise BadKey(
            f"{where} is no public key: it is {PREFIX} and the base64 of 32 bytes, or a vkey (name+hash+base64)"
        )
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
