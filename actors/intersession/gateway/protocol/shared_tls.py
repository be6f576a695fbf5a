"""A socket of TLS that one thread may read while another one writes (WORK-12, DOOR-1)."""

import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVar

from intersession_events.basics.machine import monotonic_s

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

T = TypeVar("T")

LOOK_S: Final = 0.25
"""How long a thread waits for the network before it looks whether the socket was closed meanwhile, which wakes nobody."""


class SharedTls(ssl.SSLSocket):
    """One thread reads and one writes, as clients of `websockets` do; OpenSSL lets one of them at a time into a session.

    A ticket or a change of keys that is read while a request is written would lose the request. So the threads take turns,
    and wait for the network outside them: the peer may wait for what the other thread has to say.
    """

    _turn: threading.Lock
    _wait_s: float | None

    def __new__(cls, *_: object, **__: object) -> Self:
        """Give it its lock: `wrap_socket` calls no `__init__` of a subclass."""
        made = super().__new__(cls)
        made._turn, made._wait_s = threading.Lock(), None
        return made

    def settimeout(self, value: float | None) -> None:
        """Say how many seconds a call may take. The file descriptor itself never blocks."""
        self._wait_s = value
        super().settimeout(0.0)

    def gettimeout(self) -> float | None:
        """Return what `settimeout` was given."""
        return self._wait_s

    def do_handshake(self, block: bool = False) -> None:
        """Begin the session.

        Raises:
            TimeoutError: it took too long.
        """
        self._in_turn(partial(super().do_handshake, block))

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return what comes next; nothing at the end.

        Raises:
            TimeoutError: nothing came in time.
        """
        return self._in_turn(partial(super().recv, buflen, flags))

    def send(self, data: "ReadableBuffer", flags: int = 0) -> int:
        """Send some of the data, as much as is returned; `sendall` sends all.

        Raises:
            TimeoutError: the other side took nothing in time.
        """
        return self._in_turn(partial(super().send, data, flags))

    def shutdown(self, how: int) -> None:
        """End one way of the connection, or both; the session stays, for what is yet to be read."""
        socket.socket.shutdown(self, how)

    def close(self) -> None:
        """Close the socket, while no thread is at the session."""
        with self._turn:
            super().close()

    def _in_turn(self, do: Callable[[], T]) -> T:
        until = None if self._wait_s is None else monotonic_s() + self._wait_s
        while True:
            with self._turn:
                try:
                    return do()
                except ssl.SSLWantReadError:
                    awaited = selectors.EVENT_READ
                except ssl.SSLWantWriteError:
                    awaited = selectors.EVENT_WRITE
            left = LOOK_S if until is None else until - monotonic_s()
            if left <= 0:
                raise TimeoutError("timed out")
            with (
                suppress(ValueError),
                selectors.DefaultSelector() as network,
            ):  # closed: the next turn says so
                network.register(self, awaited)
                network.select(min(left, LOOK_S))


def shared_tls() -> ssl.SSLContext:
    """Return the usual settings of a client, for sockets of this kind."""
    context = ssl.create_default_context()
    context.sslsocket_class = SharedTls
    return context
