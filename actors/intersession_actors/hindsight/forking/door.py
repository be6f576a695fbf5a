"""Forks for callers of a running host: made in it, and continued beside it, while the caller waits or longer (FORK-10)."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.forking.describing import ForkResult
from intersession_actors.hindsight.forking.listing import Listed, forks_of, only_fork
from intersession_actors.hindsight.forking.making import MadeFork, Wanted
from intersession_actors.hindsight.forking.playing import CarriedSystem, Forker, Opened, Opens, Playing
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.errors import CorruptEvent, ForkFailed, LogError
from intersession_events.copies.forks.files import remove_fork
from intersession_events.log.log import Log

MOST_AT_ONCE: Final = 8
"""The most forks that run at a time beside a host: each is a system of its own."""


class MadeForOthers(NamedTuple):
    """A fork that was made; `coming` is done when it stands still, None if it was only made."""

    made: MadeFork
    coming: "Future[ForkResult] | None"


class ForkDoor:
    """Makes forks of a running system's log, continues, lists and deletes them.

    `forker` makes what forks them, by the configuration that is in force: the runs of the log, or those of a fork of it that a
    reader has open; `opens` starts a system on one.
    """

    def __init__(
        self, log: Log, threads: Threads, *, forker: Callable[[Reader | None], Forker], opens: Opens
    ) -> None:
        self._log = log
        self._threads = threads
        self._forker = forker
        self._opens = opens
        self._changed = threads.changed()
        self._under_way = 0
        self._ending = False

    def make(
        self, wanted: Wanted, playing: Playing, *, inside: Reader | None = None, carry_on: bool = True
    ) -> MadeForOthers:
        """Make a fork, and continue it. `inside` is open on the fork that the run belongs to, if any.

        Raises:
            ToolRefused: there is no such run or place, an edit is not possible there, an agent or a setting is invalid, the log is
                in memory, or too many forks are under way (`busy`). What goes along was changed since it was written (`unreadable`).
        """
        if carry_on:
            self._take_seat()
        try:
            forker = self._forker(inside)
            made = forker.make(wanted, playing.agents)
            if not carry_on:
                return MadeForOthers(made, None)
            opened = forker.open(made, playing, self._opens)
        except BaseException as error:
            if carry_on:
                self._leave()
            if isinstance(error, ConfigError | ForkFailed):
                raise ToolRefused("invalid_request", "; ".join(str(error).splitlines())) from None
            if isinstance(error, CorruptEvent):
                said = f"run: {error}; `intersession verify` shows all that is wrong"
                raise ToolRefused("unreadable", said) from None
            raise
        coming: Future[ForkResult] = Future()
        self._threads.start(partial(self._carry, opened, coming), name="fork")
        return MadeForOthers(made, coming)

    def listed(self, run: str | None = None) -> Listed:
        """Return the forks of the log, or of a run by its flow's id."""
        return forks_of(self._log.place, run)

    def remove(self, name: str) -> Path:
        """Delete the named fork, and return its path.

        Raises:
            ToolRefused: there is none, there are several, or somebody writes to it (`busy`).
        """
        file = only_fork(self._log.place, name)
        try:
            remove_fork(file)
        except (ForkFailed, LogError) as error:
            raise ToolRefused("busy", f"fork: {error}") from None
        return file

    def stop(self, seconds: float) -> None:
        """Give up running forks, which can be continued later, and wait at most this many seconds."""
        with self._changed:
            self._ending = True
            self._changed.wait_for(lambda: not self._under_way, seconds)

    def _carry(self, opened: Opened[CarriedSystem], coming: "Future[ForkResult]") -> None:
        try:
            coming.set_result(opened.carried_on(ending=lambda: self._ending))
        except BaseException as error:  # noqa: BLE001 - the waiting caller is told, whatever it is
            coming.set_exception(error)
        finally:
            self._leave()

    def _take_seat(self) -> None:
        with self._changed:
            if self._ending:
                raise ToolRefused("unavailable", "the system is stopping")
            if self._under_way >= MOST_AT_ONCE:
                raise ToolRefused(
                    "busy", f"{MOST_AT_ONCE} forks are carried on already, wait until one of them has ended"
                )
            self._under_way += 1

    def _leave(self) -> None:
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()
