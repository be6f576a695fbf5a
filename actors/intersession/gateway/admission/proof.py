"""Proves the knowledge of a token without sending it: an HMAC over both sides' nonces and the address they met at.

Commands beside a running gateway prove themselves this way, and the gateway proves itself to them. A listener at another
address, who passes both on, gets nothing: what either proves holds for the address that it sees itself.
"""

import hashlib
import hmac
import ipaddress
from typing import Literal
from urllib.parse import urlsplit

import msgspec

Side = Literal["client", "gateway"]
"""The side that proves."""


class Handshake(msgspec.Struct, frozen=True, kw_only=True):
    """What both sides know of a connection: the gateway's nonce, the client's, and the gateway's address (`server_name`)."""

    challenge: str
    nonce: str
    server: str

    def proof(self, digest: bytes, side: Side) -> str:
        """Return the proof of a side that knows the token with this SHA-256 digest."""
        said = msgspec.json.encode(["intersession-1", side, self.challenge, self.nonce, self.server])
        return hmac.new(digest, said, hashlib.sha256).hexdigest()

    def proves(self, digest: bytes, side: Side, said: str) -> bool:
        """Whether this is the right proof; takes the same time for every input."""
        return hmac.compare_digest(self.proof(digest, side).encode(), said.encode(errors="surrogatepass"))


def token_digest(token: bytes) -> bytes:
    """Return the digest of a token."""
    return hashlib.sha256(token).digest()


def named_in(url: str) -> str | None:
    """Return the server that a URL names, in the form of `server_name`, but for a name as it stands there."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = parts.hostname or ""
    return server_name(host, port) or (f"{host} {port}" if host else None)


def server_name(host: str, port: int) -> str | None:
    """Return the address of a connection's server end, in the form that both sides use; None for a name instead of an address."""
    try:
        return f"{ipaddress.ip_address(host)} {port}"
    except ValueError:
        return None
