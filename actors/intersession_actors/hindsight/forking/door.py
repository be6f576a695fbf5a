"""Forks of a running system: made of its log, opened and continued beside it, for `SessionSystem` and for callers of its host (FORK-10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.forking import on_call
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.rules.gate.limits import RUN_TIME
from intersession_actors.rules.gate.values import invalid, seconds_of
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.errors import CorruptEvent, ForkFailed, LogError
from intersession_events.log.log import Log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.portable.log import PortableLog

S = TypeVar("S", bound="on_call.CarriedSystem")

MOST_AT_ONCE: Final = 8
"""The most forks that run at a time beside a host: each is a system of its own."""


class MadeForOthers(NamedTuple):
    """A fork that was made; `coming` is done when it stands still, None if it was only made."""

    made: on_call.MadeFork
    coming: Future[on_call.ForkResult] | None


class ForkDoor:
    """Makes forks of a running system's log, continues, lists and deletes them.

    `forker` makes what forks them, by the configuration that is in force: the runs of the log, or those of a fork of it that a
    reader has open; `opens` starts a system on one.
    """

    def __init__(
        self,
        log: Log,
        threads: Threads,
        *,
        forker: Callable[[Reader | None], on_call.Forker],
        opens: on_call.Opens,
    ) -> None:
        self._log = log
        self._threads = threads
        self._forker = forker
        self._opens = opens
        self._changed = threads.changed()
        self._under_way = 0
        self._ending = False

    def make(
        self,
        wanted: on_call.Wanted,
        playing: on_call.Playing,
        *,
        inside: Reader | None = None,
        carry_on: bool = True,
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
        coming: Future[on_call.ForkResult] = Future()
        self._threads.start(partial(self._carry, opened, coming), name="fork")
        return MadeForOthers(made, coming)

    def listed(self, run: str | None = None) -> on_call.Listed:
        """Return the forks of the log, or of a run by its flow's id."""
        return on_call.forks_of(self._log.place, run)

    def remove(self, name: str) -> Path:
        """Delete the named fork, and return its path.

        Raises:
            ToolRefused: there is none, there are several, or somebody writes to it (`busy`).
        """
        file = on_call.only_fork(self._log.place, name)
        try:
            on_call.remove_fork(file)
        except (ForkFailed, LogError) as error:
            raise ToolRefused("busy", f"fork: {error}") from None
        return file

    def stop(self, seconds: float) -> None:
        """Give up running forks, which can be continued later, and wait at most this many seconds."""
        with self._changed:
            self._ending = True
            self._changed.wait_for(lambda: not self._under_way, seconds)

    def _carry(
        self, opened: on_call.Opened[on_call.CarriedSystem], coming: Future[on_call.ForkResult]
    ) -> None:
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


class Forks:
    """The forks of one system. `named` are its agents; `stopping` was passed in if it is a fork itself.

    By the `door` others have forks made and carried on beside it, each opened by `beside`.
    """

    def __init__(
        self,
        service: Service,
        *,
        named: Mapping[str, Agent],
        config: Callable[[], Config],
        beside: on_call.Opens,
        stopping: on_call.Stopping | None,
    ) -> None:
        self._service = service
        self._named = named
        self._config = config
        self._stopping = stopping
        if stopping is not None and service.log.forked is not None:
            stopping.opened_on(service)
        self.door = ForkDoor(
            service.log, service.blocking, forker=partial(self._forker, afar=True), opens=beside
        )

    def opened(
        self,
        wanted: on_call.Wanted,
        playing: on_call.Playing,
        opening: Callable[[on_call.MadeFork, on_call.Cast], S],
    ) -> S:
        """Make a fork, also of a fork by its id, and return the result of `opening` on it and its agents; a fork that can't be opened is removed.

        Raises:
            ToolRefused: there is no such run or place, an edit is not possible there, or an agent is invalid.
            ConfigError: a setting is invalid.
            ForkFailed: the fork can't be written; a log in memory has no place for it.
        """
        with on_call.ForkViews(on_call.View(self._service.reader)) as forks:
            inside, run, at = forks.placed(wanted.run, wanted.at, field="run")
            forker = self._forker(inside.reader)
            made = forker.make(wanted._replace(run=run, at=at), playing.agents)
            return forker.open(made, playing, opening).system

    def carried_on(self, timeout: float | None) -> on_call.Carried:
        """Wait until the forked work has ended, or stands still. `timeout` in seconds; None is no limit.

        Raises:
            ToolRefused: this log is no fork, or `timeout` is no time.
        """
        forked = self._service.log.forked
        if forked is None:
            raise invalid("log", "it is no fork, `system.fork` makes one")
        if timeout is not None:
            seconds_of("timeout", timeout, most=RUN_TIME.most)
        return on_call.carry_on(self._service, forked.flow, stopping=self._stopping, timeout=timeout)

    def _forker(self, inside: Reader | None = None, *, afar: bool = False) -> on_call.Forker:
        """Return what forks the runs of the log, or of the fork of it that a reader is `inside` of."""
        service, reader = self._service, inside or self._service.reader
        if not isinstance(reader.log, PortableLog) or reader.log.place == MEMORY:
            raise invalid("run", "a log in memory can't be forked, keep it in a file")
        return on_call.Forker(
            reader.log,
            reader,
            config=self._config(),
            new_id=service.new_id,
            named=self._named,
            afar=afar,
        )
