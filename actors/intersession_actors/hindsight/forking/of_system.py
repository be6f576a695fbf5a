"""Forks of a running system: made of its log, opened as systems, continued; for `SessionSystem` and its gateway."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.debugger.forks import ForkViews
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.forking.carrying import Carried, Stopping, carry_on
from intersession_actors.hindsight.forking.door import ForkDoor
from intersession_actors.hindsight.forking.making import MadeFork, Wanted
from intersession_actors.hindsight.forking.playing import CarriedSystem, Cast, Forker, Opens, Playing
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.gate.limits import RUN_TIME
from intersession_actors.rules.gate.values import invalid, seconds_of
from intersession_events.stores.database import MEMORY
from intersession_events.stores.portable.log import PortableLog

S = TypeVar("S", bound=CarriedSystem)


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
        beside: Opens,
        stopping: Stopping | None,
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

    def opened(self, wanted: Wanted, playing: Playing, opening: Callable[[MadeFork, Cast], S]) -> S:
        """Make a fork, also of a fork by its id, and return the result of `opening` on it and its agents; a fork that can't be opened is removed.

        Raises:
            ToolRefused: there is no such run or place, an edit is not possible there, or an agent is invalid.
            ConfigError: a setting is invalid.
            ForkFailed: the fork can't be written; a log in memory has no place for it.
        """
        with ForkViews(View(self._service.reader)) as forks:
            inside, run, at = forks.placed(wanted.run, wanted.at, field="run")
            forker = self._forker(inside.reader)
            made = forker.make(wanted._replace(run=run, at=at), playing.agents)
            return forker.open(made, playing, opening).system

    def carried_on(self, timeout: float | None) -> Carried:
        """Wait until the forked work has ended, or stands still. `timeout` in seconds; None is no limit.

        Raises:
            ToolRefused: this log is no fork, or `timeout` is no time.
        """
        forked = self._service.log.forked
        if forked is None:
            raise invalid("log", "it is no fork, `system.fork` makes one")
        if timeout is not None:
            seconds_of("timeout", timeout, most=RUN_TIME.most)
        return carry_on(self._service, forked.flow, stopping=self._stopping, timeout=timeout)

    def _forker(self, inside: Reader | None = None, *, afar: bool = False) -> Forker:
        """Return what forks the runs of the log, or of the fork of it that a reader is `inside` of."""
        service, reader = self._service, inside or self._service.reader
        if not isinstance(reader.log, PortableLog) or reader.log.place == MEMORY:
            raise invalid("run", "a log in memory can't be forked, keep it in a file")
        return Forker(
            reader.log,
            reader,
            config=self._config(),
            new_id=service.new_id,
            named=self._named,
            afar=afar,
        )
