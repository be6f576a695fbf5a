"""Encrypts bytes with AES-256-GCM, with the extra `encrypt` (the library `cryptography`)."""

from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from intersession_events.basics.errors import MissingExtra

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
_REMEMBERED: Final = 1_024


def locked(key: bytes, nonce: bytes, data: bytes, bound: bytes) -> bytes:
    """Return data encrypted, with its tag. `bound` is not in it, and must be the same to unlock it. No nonce may be used twice.

    Raises:
        MissingExtra: the extra `encrypt` is not installed.
    """
    sealed: bytes = _cipher(key).encrypt(nonce, data, bound)
    return sealed


def unlocked(key: bytes, nonce: bytes, sealed: bytes, bound: bytes) -> bytes | None:
    """Return what was encrypted; None if that was another key, or anything was changed.

    Raises:
        MissingExtra: the extra `encrypt` is not installed.
    """
    try:
        data: bytes = _cipher(key).decrypt(nonce, sealed, bound)
    except (_imported("cryptography.exceptions").InvalidTag, ValueError):
        return None
    return data


def permuted(key: bytes, block: bytes, *, back: bool) -> bytes:
    """Return random-looking bytes in blocks of 16 for others, one for one: for names, each of which is a hash.

    Raises:
        MissingExtra: the extra `encrypt` is not installed.
    """
    ciphers = _imported("cryptography.hazmat.primitives.ciphers")
    cipher = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.ECB())
    turn = cipher.decryptor() if back else cipher.encryptor()
    turned: bytes = turn.update(block) + turn.finalize()
    return turned


@lru_cache(_REMEMBERED)
def _cipher(key: bytes) -> Any:  # an `AESGCM`, of a library that not every host has
    return _imported("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)


def _imported(module: str) -> Any:  # the same
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra("a log that is kept encrypted", "cryptography", "encrypt") from error
