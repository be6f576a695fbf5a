"""Judges the source and the target of a request, for HTTP and WebSocket: addresses, `Host` and `Origin`."""

import ipaddress
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_A_PROXY: Final = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-real-ip"})
_UNKNOWN: Final = "unknown"
_PRINTABLE: Final = 256
_IPV6_NETWORK: Final = 64


def normalised(address: str | None) -> str:
    """Return an address as the limit on failed attempts counts it: IPv4 in IPv6 is IPv4, an IPv6 network is one."""
    found = _read(address)
    if found is None:
        return _UNKNOWN
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
    return str(found)


def _read(address: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address, for IPv4 in IPv6 the IPv4 one; None for anything else."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def client_address(
    peer: str | None, headers: Sequence[tuple[bytes, bytes]], *, trusted: tuple[str, ...]
) -> str:
    """Return the address that limits count for a request: the peer, or the client that a trusted proxy names.

    Of what several proxies have added, the last address outside of `trusted` counts: those before it are what a
    client may have made up. `trusted` are addresses and networks (`gateway.trustedProxies`).
    """
    if not _is_among(peer, trusted):
        return normalised(peer)
    farthest = peer
    for named in _forwarded(headers):
        if normalised(named) == _UNKNOWN:
            break
        farthest = named
        if not _is_among(named, trusted):
            break
    return normalised(farthest)


def _forwarded(headers: Sequence[tuple[bytes, bytes]]) -> Iterator[str]:
    """Yield whom proxies name, the nearest first, without ports."""
    chain = [value for name, value in headers if name.lower() == b"x-forwarded-for"]
    chain = chain or [value for name, value in headers if name.lower() == b"x-real-ip"]
    for entry in reversed(b",".join(chain).decode("latin-1").split(",")):
        text = entry.strip()
        if text.startswith("["):
            yield text[1:].partition("]")[0]
        else:
            yield text.partition(":")[0] if text.count(":") == 1 else text


def _is_among(address: str | None, networks: tuple[str, ...]) -> bool:
    found = _read(address) if networks else None
    return found is not None and any(found in network for network in _networks(networks))


@lru_cache(maxsize=8)
def _networks(texts: tuple[str, ...]) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def is_this_machine(address: str | None, headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a peer is this machine, over loopback, and not a proxy for other clients."""
    found = _read(address)
    return found is not None and found.is_loopback and not is_of_a_proxy(headers)


def is_of_a_proxy(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a proxy says that it passes a request on for another client."""
    return any(name.lower() in _OF_A_PROXY for name, _ in headers)


def host_allowed(host: str | None, *, bound: str, allowed: Sequence[str]) -> bool:
    """Whether a `Host` header names this gateway: a foreign page can't lead here by a name of its own."""
    name = _host_name(host)
    if name is None:
        return False
    if name in _LOOPBACK_NAMES or name == bound.lower() or name in {each.lower() for each in allowed}:
        return True
    # Listening on every address: a name can be made to point here, an address can't.
    return bound in {"0.0.0.0", "::"} and _is_address(name)  # noqa: S104 - compared, not bound


def origin_allowed(origin: str | None, *, host: str | None, scheme: str, allowed: Sequence[str]) -> bool:
    """Whether a page of this origin may talk to the gateway: no origin, the gateway's own, or a listed one."""
    if origin is None:
        return True
    wanted = origin.lower()
    own = f"{'https' if scheme in {'https', 'wss'} else 'http'}://{(host or '').lower()}"
    return wanted == own or wanted in {each.lower().rstrip("/") for each in allowed}


def printable(text: str) -> str:
    """Return a foreign text for one line of a log: escaped, and cut at 256 characters."""
    shown = ascii(text[:_PRINTABLE])
    return shown if len(shown) <= _PRINTABLE else f"{shown[: _PRINTABLE - 3]}..."


def _host_name(host: str | None) -> str | None:
    """Return the name in a `Host` header, lower case, without its port; None for anything else."""
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
