"""The login cookie of a browser, and the header that every request that changes something must have.

The cookie holds a random word that stands for a token, never the token. No script reads it, no other site sends it.
"""

from collections.abc import Sequence
from typing import Final

COOKIE: Final = "intersession"
HEADER: Final = b"x-intersession"
"""A form of another site can't send it, so whatever changes something asks for it."""

_MOST: Final = 256


def cookie_in(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return the word in the cookie that a request has; None where it has none."""
    for name, value in headers:
        if name.lower() != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";"):
            key, _, word = pair.strip().partition("=")
            if key == COOKIE and 0 < len(word) <= _MOST:
                return word
    return None


def cookie_of(word: str | None, *, secure: bool) -> str:
    """Return the header that gives a browser the word; None takes it away.

    It has no path, so that it goes to the addresses beside that of the login alone, whatever prefix a proxy puts before them.
    """
    parts = [f"{COOKIE}={word or ''}", "HttpOnly", "SameSite=Strict"]
    if word is None:
        parts.append("Max-Age=0")
    if secure:
        parts.append("Secure")
    return "; ".join(parts)
