"""Follows a log that another process writes: by LISTEN and an occasional look, or by looking alone (`wake=poll`, and on a standby)."""

import logging
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final

import psycopg
from psycopg import sql

from intersession_events.basics.errors import LogError
from intersession_events.stores.portable.reading.recorder import Following
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.tables import channel_of

POLL_S: Final = 0.05
"""How often is looked without NOTIFY."""
NET_S: Final = 1.0
"""How often is looked beside it: a notification is lost with its connection."""
_STOP_S: Final = 0.1

_LOGGER: Final = logging.getLogger("intersession.store")


class Follower(Following):
    """A thread that notices when another process has committed, and calls back to catch up."""

    def __init__(self, address: Address, catch_up: Callable[[], int], given: Callable[[], int]) -> None:
        """Catch up, then follow. `given` returns the last position that the log has given."""
        self._address = address
        self._given = given
        self._is_out = False
        """Whether the log can't be reached, and that was said."""
        self._listens = address.notifies
        self._checks_at = 0.0
        self._is_behind = False
        """Whether the log went back, and that was said."""
        super().__init__(catch_up)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._listens:
                    self._listen()
                else:
                    self._look()
                    self._stopping.wait(POLL_S)
            except psycopg.errors.ReadOnlySqlTransaction:
                self._listens = False  # a standby tells nobody
            except (psycopg.Error, LogError) as error:
                if not self._is_out:
                    self._is_out = True
                    _LOGGER.warning("the log can't be followed now: %s", self._address.said(error))
                self._stopping.wait(NET_S)

    def _listen(self) -> None:
        with closing(psycopg.connect(self._address.conninfo, autocommit=True)) as connection:
            channel = sql.Identifier(channel_of(self._address.schema))
            connection.execute(sql.SQL("LISTEN {}").format(channel))
            self._look()  # what came before anybody listened
            quiet = 0.0
            while not self._stopping.is_set():
                heard = sum(1 for _ in connection.notifies(timeout=_STOP_S, stop_after=1))
                quiet = 0.0 if heard else quiet + _STOP_S
                if heard or quiet >= NET_S:
                    quiet = 0.0
                    self._look()

    def _look(self) -> None:
        reached = self._catch_up()
        self._is_out = False
        now = time.monotonic()
        if now >= self._checks_at:
            self._checks_at = now + NET_S
            self._check(reached)

    def _check(self, reached: int) -> None:
        """Say it once where the log lacks what was read: nobody hears of what stands there instead."""
        given = self._given()
        if given < reached and not self._is_behind:
            _LOGGER.warning(
                "the log is at position %d, and was followed up to %d: the server that answers lacks what was read. What it gets up to "
                "there is not heard of; open the log again, and build anew what was made of it",
                given,
                reached,
            )
        self._is_behind = given < reached
