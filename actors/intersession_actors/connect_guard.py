"""Lets a library that opens its own connections reach public addresses only, whatever it resolves or is redirected to (X13).

What is looked at is the address of each connection at the moment it is made, by Python's own audit events: no name is
resolved twice, no redirect is followed elsewhere, and nothing of the library is replaced. It holds for the thread it is
entered on, and no process can be started there; a library that connects on threads of its own, or in C, must not be let in.
"""

import errno
import sys
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from intersession_actors.public_addresses import is_public

_CONNECTS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_STARTS: Final = frozenset(
    {"subprocess.Popen"}
    | {f"os.{name}" for name in ("exec", "fork", "forkpty", "posix_spawn", "spawn", "startfile", "system")}
)


class Guard:
    """What is allowed beside public addresses, what was refused, and whether an HTTP request began to go out."""

    def __init__(self, allowed: Collection[str]) -> None:
        self.allowed = frozenset(allowed)
        self.refused: list[str] = []
        self.sent = False

    def check(self, address: Any) -> None:
        """Refuse to connect to an address that is neither public nor allowed.

        Raises:
            OSError: it is refused.
        """
        host = address[0] if isinstance(address, tuple) and address else address  # pyright: ignore[reportUnknownVariableType]
        if isinstance(host, str) and (host in self.allowed or is_public(host)):
            return
        self.refuse(str(host))  # pyright: ignore[reportUnknownArgumentType]

    def refuse(self, what: str) -> None:
        """Note what was tried, and don't let it happen.

        Raises:
            OSError: always.
        """
        self.refused.append(what)
        raise PermissionError(errno.EACCES, "refused by the guard of the channel", what)


_current: ContextVar[Guard | None] = ContextVar("guard of a channel", default=None)
_installed: list[bool] = []


@contextmanager
def guarded(allowed: Collection[str] = ()) -> Generator[Guard]:
    """Refuse what this thread connects to in the block, unless it is public or among the `allowed` addresses."""
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
) -> Callable[[str, tuple[Any, ...]], None]:
    """Make the hook. All it needs is in its closure: it is called after this module has been cleared, too."""

    def look(event: str, arguments: tuple[Any, ...]) -> None:
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
