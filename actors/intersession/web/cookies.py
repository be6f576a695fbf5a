"""The two halves that admit a browser: a cookie, and a word that the page stores and sends as a header.

Both are random and stand for a token, never are it. No script reads the cookie and no other site sends it, but browsers
know no ports: it goes to every server of the same host name. The page's half goes to the server of its own origin alone.
"""

import hmac
import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

COOKIE: Final = "intersession"
HEADER: Final = b"x-intersession"
"""Has the page's half; at a login, which has none yet, anything. A form of another site can't send it."""

_MOST: Final = 256


class Halves(NamedTuple):
    """The two halves of an admitted browser. One without the other is worth nothing."""

    cookie: str
    page: str

    @classmethod
    def new(cls) -> "Halves":
        """Return two halves that can't be guessed, nor derived from each other."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32))

    @property
    def digest(self) -> bytes:
        """The digest of both together: 32 bytes that a server stores and compares, and that differ from a token's digest."""
        return hmac.digest(_bytes(self.page), _bytes(self.cookie), "sha256")


def halves_in(headers: Sequence[tuple[bytes, bytes]]) -> Halves | None:
    """Return the halves of a request; None if one is missing."""
    cookie = _cookie_in(headers)
    pages = [value for name, value in headers if name.lower() == HEADER]
    if cookie is None or len(pages) != 1 or not 0 < len(pages[0]) <= _MOST:
        return None
    return Halves(cookie, pages[0].decode("latin-1"))


def _cookie_in(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name.lower() != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";"):
            key, _, word = pair.strip().partition("=")
            if key == COOKIE and 0 < len(word) <= _MOST:
                return word
    return None


def _bytes(half: str) -> bytes:
    return half.encode("latin-1")


def cookie_of(word: str | None, *, secure: bool) -> str:
    """Return the header that gives a browser its cookie; None removes it.

    It has no path, so that it goes to the addresses beside that of the login alone, whatever prefix a proxy puts before them.
    """
    parts = [f"{COOKIE}={word or ''}", "HttpOnly", "SameSite=Strict"]
    if word is None:
        parts.append("Max-Age=0")
    if secure:
        parts.append("Secure")
    return "; ".join(parts)
