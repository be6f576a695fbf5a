"""Judges where a request comes from and what it was sent to, for HTTP and WebSocket: addresses, `Host` and `Origin`."""

import ipaddress
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_A_PROXY: Final = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-real-ip"})
_PRINTABLE: Final = 256
_IPV6_NETWORK: Final = 64


def normalised(address: str | None) -> str:
    """Return an address as the limit on failed attempts counts it: IPv4 in IPv6 is IPv4, an IPv6 network is one."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
    return str(found)


def is_this_machine(address: str | None, headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a peer is this machine itself, over its loopback, and speaks for nobody else as a proxy does."""
    if any(name.lower() in _OF_A_PROXY for name, _ in headers):
        return False
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def host_allowed(host: str | None, *, bound: str, allowed: Sequence[str]) -> bool:
    """Whether a `Host` header names this gateway, so that no page of elsewhere can lead here by a name of its own."""
    name = _host_name(host)
    if name is None:
        return False
    if name in _LOOPBACK_NAMES or name == bound.lower() or name in {each.lower() for each in allowed}:
        return True
    # Listening on every address: a name can be made to point here, an address can't.
    return bound in {"0.0.0.0", "::"} and _is_address(name)  # noqa: S104 - compared, not bound


def origin_allowed(origin: str | None, *, host: str | None, scheme: str, allowed: Sequence[str]) -> bool:
    """Whether a page of this origin may talk to the gateway: none, the gateway's own, or a listed one."""
    if origin is None:
        return True
    wanted = origin.lower()
    own = f"{'https' if scheme in {'https', 'wss'} else 'http'}://{(host or '').lower()}"
    return wanted == own or wanted in {each.lower().rstrip("/") for each in allowed}


def printable(text: str) -> str:
    """Return what somebody else wrote so that it fits into one line of a log: escaped, and cut at 256 characters."""
    shown = ascii(text[:_PRINTABLE])
    return shown if len(shown) <= _PRINTABLE else f"{shown[: _PRINTABLE - 3]}..."


def _host_name(host: str | None) -> str | None:
    """Return the name in a `Host` header, lower case, without its port; None for what is none."""
    if not host or any(character in host for character in "/@?#\\ "):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
