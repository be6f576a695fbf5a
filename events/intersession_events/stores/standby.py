"""Waits beside the writer of a log until it is gone, and takes its place: a warm standby (STBY-1)."""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from typing import Final, TypeVar

from intersession_events.basics.errors import NoSuchStore, StoreLocked, StoreUnavailable
from intersession_events.stores.hosts.announcing import announced, this_host
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.opened import Located, Waits, check_clear, identity_of, open_log, waiting_at

T = TypeVar("T")

_PAUSE_S: Final = 0.1
"""How often is looked whether a writer of this machine has ended, and whether to go on waiting."""
_AGAIN_S: Final = 1.0

_LOGGER: Final = logging.getLogger("intersession.store")


def when_free(
    where: Located,
    make: Callable[[], T],
    *,
    stopping: threading.Event,
    encryption: Encryption | None = None,
) -> T | None:
    """Wait until a log has no writer, and return what `make` returns, which opens it; None once `stopping` is set. Blocks.

    Any number of processes may wait: `make` of all but one raises `StoreLocked`, and they go on waiting. So does one whose
    store goes away meanwhile. `encryption` says where the master key is that it will need.

    Raises:
        BadKey: the log is kept encrypted, and its master key can't be had.
        LogTooNew: a newer version writes it.
        StoreLocked: this process is the writer itself.
        StoreUnavailable: the store can't be reached at the start.
        Exception: whatever else `make` raises.
    """
    with closing(waiting_at(where)) as waiting, ExitStack() as held:
        standby = _Standby(where, waiting, held, encryption)
        while not stopping.is_set():
            try:
                if not standby.has_writer():
                    return make()
                waiting.pause(_PAUSE_S)
            except StoreLocked as locked:  # another standby was quicker
                if locked.is_here:
                    raise
                stopping.wait(_PAUSE_S)
            except StoreUnavailable as error:
                standby.check_begun(error)
                stopping.wait(_AGAIN_S)
    return None


class _Standby:
    """What a process that waits for a log knows of its writer, and says of itself."""

    def __init__(
        self, where: Located, waiting: Waits, held: ExitStack, encryption: Encryption | None
    ) -> None:
        self._where = where
        self._encryption = encryption
        self._waiting = waiting
        self._held = held
        self._known: tuple[int, str | None] | None = None
        self._is_away = False

    def has_writer(self) -> bool:
        """Return whether a writer is waited for. One that is this process itself is not: to open its log is refused."""
        writer = self._waiting.writer()
        self._is_away = False
        if writer is None or (writer.host is None and writer.pid == os.getpid()):
            _LOGGER.info("standby: %s has no other writer, and is taken over", self._where.shown)
            return False
        if self._known is None:
            self._check_begins()
            host = this_host("standby")
            self._held.enter_context(announced(self._waiting.hosts, lambda: host))
        if self._known != (writer.pid, writer.host):
            self._known = (writer.pid, writer.host)
            gateway = "" if writer.gateway is None else f", gateway {writer.gateway}"
            where = writer.host or "this machine"
            _LOGGER.info(
                "standby: %s is written by pid %d on %s%s", self._where.shown, writer.pid, where, gateway
            )
        return True

    def _check_begins(self) -> None:
        """Refuse to wait for a log that could not be written then, while somebody looks."""
        known = identity_of(self._where)
        if known is not None:
            known.check_writable(self._where.shown)
        with (
            suppress(NoSuchStore),  # its writer is making it
            open_log(self._where.url, read_only=True, encryption=self._encryption) as log,
        ):
            check_clear(log)

    def check_begun(self, error: StoreUnavailable) -> None:
        """Raise an error that is not of a store that was there and went away."""
        if type(error) is not StoreUnavailable or self._known is None:
            raise error
        if not self._is_away:
            self._is_away = True
            _LOGGER.warning("standby: waits until the store is back: %s", error)
