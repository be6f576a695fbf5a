"""Decides which addresses a channel's URL may lead to: public ones, unless its host is allowed by name (X13).

A name is resolved once, and the connection goes to the address that was checked: a resolver that answers otherwise the
second time has no second time.
"""

import errno
import ipaddress
import re
import socket
import sys
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from intersession_actors.outside.channels.channels import DeliveryRefused

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

IPV6: Final = 6
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
# Beside what every release of Python knows to be private: protocol assignments, relays and tunnels of IPv4 in IPv6 (nobody
# serves webhooks there, and what is inside may be anything), documentation, and the host of a virtual machine.
_NOT_PUBLIC: Final[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]] = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2001::/23", "2002::/16", "3fff::/20"),
    )
)
_OLD_IPV4: Final = re.compile(r"[0-9][0-9a-fA-FxX.]*")


def blocked(where: str) -> DeliveryRefused:
    """Return the refusal of an address that is not public: it starts with `ssrf_blocked`."""
    return DeliveryRefused(
        f"ssrf_blocked: {where}, which is no public address; if it is meant, list the host in allowHosts, beside the URL"
    )


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as this machine resolves it.

    Raises:
        OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect(address: tuple[str, int], timeout: float) -> socket.socket:
    """Open a connection to an address that is not a name.

    Raises:
        OSError: nobody answers there.
    """
    return socket.create_connection(address, timeout)


@dataclass(frozen=True)
class Network:
    """The network: name resolution and connections, which tests replace."""

    resolve: Callable[[str, int], Sequence[str]] = resolve
    connect: Callable[[tuple[str, int], float], socket.socket] = connect


THIS_NETWORK: Final = Network()


def literal_address(host: str) -> IpAddress | None:
    """Return the address in a host without resolving it, old forms included: `0x7f.1`, `2130706433`, `0177.0.0.1`."""
    bare = host.removeprefix("[").removesuffix("]").rstrip(".")
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        pass
    if _OLD_IPV4.fullmatch(bare) is None:
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(bare))
    except OSError:
        return None


def is_public(address: str) -> bool:
    """Whether this is the address of one machine on the public internet. False for a text that is not an address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        found = found if inner is None else inner
    if found.version == IPV6 and found not in _GLOBAL_UNICAST:
        return False
    return found.is_global and not found.is_multicast and not any(found in network for network in _NOT_PUBLIC)


def plain_host(host: str) -> str:
    """Return a host in the form used for comparison: lower case, without brackets and a final dot."""
    return host.lower().removeprefix("[").removesuffix("]").rstrip(".")


def check_as_written(host: str, allowed: Collection[str]) -> None:
    """Refuse a host that is private by its spelling alone.

    Raises:
        DeliveryRefused: it is.
    """
    plain = plain_host(host)
    if plain in allowed:
        return
    address = literal_address(plain)
    if address is not None and not is_public(str(address)):
        raise blocked(plain if str(address) == plain else f"{plain} is {address}")
    if plain == "localhost" or plain.endswith(".localhost"):
        raise blocked(f"{plain} is this machine")


def addresses_of(host: str, port: int, allowed: Collection[str], network: Network) -> Sequence[str]:
    """Return the addresses of a host: its name is resolved here, once.

    Raises:
        DeliveryRefused: one of them is not public, and the host is not allowed by name.
        OSError: it has none.
    """
    literal = literal_address(host)
    found = (str(literal),) if literal is not None else tuple(network.resolve(host, port))
    if not found:
        raise OSError(f"{host} has no address")
    if plain_host(host) not in allowed:
        for address in found:
            if not is_public(address):
                raise blocked(f"{host} is at {address}")
    return found


_CONNECTS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})

_STARTS: Final = frozenset(
    {"subprocess.Popen"}
    | {f"os.{name}" for name in ("exec", "fork", "forkpty", "posix_spawn", "spawn", "startfile", "system")}
)


class Guard:
    """The addresses allowed beside public ones, those refused, and whether an HTTP request began to go out."""

    def __init__(self, allowed: Collection[str]) -> None:
        self.allowed = frozenset(allowed)
        self.refused: list[str] = []
        self.sent = False

    def check(self, address: object) -> None:
        """Refuse to connect to an address that is neither public nor allowed.

        Raises:
            OSError: it is refused.
        """
        host = address[0] if isinstance(address, tuple) and address else address  # pyright: ignore[reportUnknownVariableType]
        if isinstance(host, str) and (host in self.allowed or is_public(host)):
            return
        self.refuse(str(host))  # pyright: ignore[reportUnknownArgumentType]

    def refuse(self, what: str) -> None:
        """Note a refused address, and raise.

        Raises:
            OSError: always.
        """
        self.refused.append(what)
        raise PermissionError(errno.EACCES, "refused by the guard of the channel", what)


_current: ContextVar[Guard | None] = ContextVar("guard of a channel", default=None)

_installed: list[bool] = []


@contextmanager
def guarded(allowed: Collection[str] = ()) -> Generator[Guard]:
    """Refuse this thread's connections in the block, unless they are public or among the `allowed` addresses."""
    if not _installed:
        # For the life of the process: such a hook can't be taken out. It looks at nothing outside of guarded blocks.
        # Noted after it is there: two threads may put in two, and none goes without.
        sys.addaudithook(_hook(_current.get, _CONNECTS, _STARTS))
        _installed.append(True)
    guard = Guard(allowed)
    token = _current.set(guard)
    try:
        yield guard
    finally:
        _current.reset(token)


def _hook(
    current: Callable[[], Guard | None], connects: frozenset[str], starts: frozenset[str]
) -> Callable[[str, tuple[object, ...]], None]:
    """Make the hook. All it needs is in its closure: it is called after this module has been cleared, too."""

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event in connects:
            guard = current()
            # sendmsg on a connected socket has no address: that one was looked at when it was connected.
            if guard is not None and arguments[1] is not None:
                guard.check(arguments[1])
        elif event == "http.client.send":
            guard = current()
            if guard is not None:
                guard.sent = True
        elif event in starts:
            guard = current()
            if guard is not None:
                guard.refuse("a process of its own")

    return look
