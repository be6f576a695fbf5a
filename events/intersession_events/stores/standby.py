"""Waits beside the writer of a log until it is gone, and takes its place: a warm standby (STBY-1)."""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Final, TypeVar

from intersession_events.basics.errors import StoreLocked, StoreUnavailable
from intersession_events.stores.hosts.announcing import announced, this_host
from intersession_events.stores.opened import Located, waiting_at
from intersession_events.stores.portable.identity import Holder

T = TypeVar("T")

_PAUSE_S: Final = 0.1
"""How often is looked whether a writer of this machine has ended, and whether to go on waiting."""
_AGAIN_S: Final = 1.0

_LOGGER: Final = logging.getLogger("intersession.store")


def when_free(where: Located, make: Callable[[], T], *, stopping: threading.Event) -> T | None:
    """Wait until a log has no writer, and return what `make` returns, which opens it; None once `stopping` is set. Blocks.

    Any number of processes may wait: `make` of all but one raises `StoreLocked`, and they go on waiting. So does one whose
    store goes away meanwhile.

    Raises:
        StoreLocked: this process is the writer itself.
        StoreUnavailable: the store can't be reached at the start.
        Exception: whatever else `make` raises.
    """
    known: tuple[int, str | None] | None = None
    is_away = False
    with closing(waiting_at(where)) as waiting, ExitStack() as held:
        host = this_host("standby")
        while not stopping.is_set():
            try:
                writer = waiting.writer()
                if writer is not None and writer.host is None and writer.pid == os.getpid():
                    return make()  # refused, with a word that says so: nobody waits for itself
                if writer is None:
                    _LOGGER.info("standby: %s has no writer, and is taken over", where.shown)
                    return make()
                if known is None:
                    held.enter_context(announced(waiting.hosts, lambda: host))
                if known != (writer.pid, writer.host):
                    known = (writer.pid, writer.host)
                    _LOGGER.info("standby: waits while %s is written by %s", where.shown, _named(writer))
                is_away = False
                waiting.pause(_PAUSE_S)
            except StoreLocked as locked:  # another standby was quicker
                if locked.is_here:
                    raise
                stopping.wait(_PAUSE_S)
            except StoreUnavailable as error:
                if type(error) is not StoreUnavailable or known is None:
                    raise
                if not is_away:
                    is_away = True
                    _LOGGER.warning("standby: waits until the store is back: %s", error)
                stopping.wait(_AGAIN_S)
    return None


def _named(writer: Holder) -> str:
    gateway = "" if writer.gateway is None else f", gateway {writer.gateway}"
    return f"pid {writer.pid} on {writer.host or 'this machine'}{gateway}"
