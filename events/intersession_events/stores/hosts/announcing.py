"""Announces a host beside the writer for as long as a block lasts."""

import logging
import os
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from intersession_events.basics.errors import LogError
from intersession_events.basics.machine import VERSION, random_id
from intersession_events.stores.hosts.host import ALIVE_S, Host, HostKind, Hosts

AGAIN_S: Final = ALIVE_S / 3

_LOGGER: Final = logging.getLogger("intersession.store")


def this_host(kind: HostKind, *, address: str | None = None) -> Host:
    """Return this process as it announces itself, under a new name."""
    machine = socket.gethostname()
    return Host(
        name=f"{machine}-{os.getpid()}-{random_id()[:8]}",
        kind=kind,
        machine=machine,
        pid=os.getpid(),
        version=VERSION,
        address=address,
    )


@contextmanager
def announced(hosts: Hosts, host: Callable[[], Host], *, every_s: float = AGAIN_S) -> Generator[None]:
    """Announce a host in a block, now and every few seconds, as `host` has it then. That it can't be announced is a warning."""
    ended = threading.Event()
    name = host().name
    said = False

    def run() -> None:
        nonlocal said
        while True:
            try:
                hosts.announce(host())
            except LogError as error:
                if not said:
                    said = True
                    _LOGGER.warning("this %s is not shown in `status`: %s", host().kind, error)
            if ended.wait(every_s):
                return

    thread = threading.Thread(target=run, name="intersession-announces", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(LogError):
            hosts.leave(name)
