"""A network switch in this process: frames of virtual network cards, which it delivers, delays or drops."""

import fcntl
import heapq
import os
import selectors
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

_TUNSETIFF: Final = 0x400454CA
_TAP_WITHOUT_HEADER: Final = 0x1002
_LONGEST_FRAME: Final = 4096
_BROADCAST: Final = 1
"""The bit of an address's first byte that says it is for more than one."""


@dataclass
class Port:
    """One card's end of the switch."""

    card: str
    fd: int
    delay_s: float = 0.0
    is_cut: bool = False


def has_cards() -> bool:
    """Whether this process may make network cards and namespaces."""
    return os.geteuid() == 0 and os.access("/dev/net/tun", os.R_OK | os.W_OK)


class Switch:
    """Carries frames between cards on a thread of its own. Each direction takes the delay of both ends."""

    def __init__(self) -> None:
        self._ports: dict[int, Port] = {}
        self._known: dict[bytes, Port] = {}
        self._waiting: list[tuple[float, int, Port, bytes]] = []
        self._numbers = count()
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = os.pipe()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="switch", daemon=True)
        self._thread.start()

    def plug_in(self, card: str) -> Port:
        """Make a network card, which ends with the switch."""
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH", card.encode(), _TAP_WITHOUT_HEADER))
        port = self._ports[fd] = Port(card, fd)
        self._selector.register(fd, selectors.EVENT_READ)
        os.write(self._wake, b"x")
        return port

    def close(self) -> None:
        """End; the cards go."""
        self._stopping = True
        os.write(self._wake, b"x")
        self._thread.join()
        self._selector.close()
        for fd in (*self._ports, self._woken, self._wake):
            os.close(fd)

    def _run(self) -> None:
        while not self._stopping:
            wait = None if not self._waiting else max(self._waiting[0][0] - time.monotonic(), 0.0)
            for key, _ in self._selector.select(wait):
                if key.fd == self._woken:
                    os.read(self._woken, _LONGEST_FRAME)
                else:
                    self._take(self._ports[key.fd])
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, port, frame = heapq.heappop(self._waiting)
                self._give(port, frame)

    def _take(self, port: Port) -> None:
        while True:
            try:
                frame = os.read(port.fd, _LONGEST_FRAME)
            except BlockingIOError:
                return
            except OSError:
                return  # the card is down
            if port.is_cut:
                continue
            self._known[frame[6:12]] = port
            to = None if frame[0] & _BROADCAST else self._known.get(frame[:6])
            for other in [to] if to is not None else [one for one in self._ports.values() if one is not port]:
                delay = port.delay_s + other.delay_s
                if delay:
                    heapq.heappush(
                        self._waiting, (time.monotonic() + delay, next(self._numbers), other, frame)
                    )
                else:
                    self._give(other, frame)

    def _give(self, port: Port, frame: bytes) -> None:
        if not port.is_cut:
            with suppress(OSError):  # its card is down, or full: a frame is lost, as in any network
                os.write(port.fd, frame)
