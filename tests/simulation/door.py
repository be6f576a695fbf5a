"""A door of a simulation: a host that follows the log some positions behind, and hands on what writes (DOOR-1)."""

import sqlite3
from asyncio import run_coroutine_threadsafe
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import msgspec
from greenlet import getcurrent

from intersession import SessionSystem
from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.scopes import EVERY_SCOPE
from intersession.gateway.other_doors import Doors
from intersession.gateway.protocol.behalf import OnBehalf
from intersession.gateway.protocol.link import handed_of
from intersession_actors.calls.service import pending
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.pending import Handed
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import OnOutcome, Recorded, StreamAppend
from intersession_events.stores.portable.appends import NotTaken
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from simulation.store import STORE

if TYPE_CHECKING:
    from simulation.world import World

MOST_LATE: Final = 5
"""So many seconds its copy of the log may be behind."""
_ITS: Final = Credential(b"", Caller.by_credential("door", ("*",)), EVERY_SCOPE)


class DoorBeside:
    """Begins anew with each writer, from a copy of the log. What was committed comes there late, as on a server's replica."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._begun = 0
        self._log: SqliteLog | None = None
        self._heard: list[Recorded] = []

    @staticmethod
    @contextmanager
    def patient() -> Generator[None]:
        """Let no answer come unread: after ten seconds a door says that it is late, and answers all the same."""
        with patch.object(pending, "BEHIND_S", 1e6):
            yield

    def begin(self) -> None:
        """Begin beside a writer that has begun."""
        world, runtime = self._world, self._world.runtime
        self.end()
        self._begun += 1
        path = Path(world._copies.name, f"followed {self._begun}.db")
        _copy(path)
        log = self._log = SqliteLog(
            path,
            inline=inline_views(),
            read_only=True,
            threads=False,
            clock=world.clock.now_ms,
            monotonic=world.clock.monotonic,
        )
        self._changed = runtime.threads.changed()
        self._is_behind = False
        self._heard, self._from = [], log.head()
        more, follower = runtime._greenlets.more, _Follower()
        with patch.object(log._recorder, "follow", follower.follow):
            self.system = SessionSystem(
                log,
                config=world._config,
                clock=world.clock,
                new_id=runtime.new_id,
                runtime=runtime,
                writer=_Link(world),
            )
            log.on_committed(self._heard.extend)
        its = runtime._greenlets.more
        runtime._greenlets.more = lambda: more() or its()
        runtime.spawn(lambda: self._go(path, follower))

    def hear(self) -> None:
        """Hear that something is committed."""
        self._is_behind = True
        self._changed.notify_all()

    @contextmanager
    def asked(self) -> Generator[SessionSystem]:
        """Lend it for a call: what the calling greenlet judges, it judges by what is there."""
        assert self._log is not None
        self._world.reads[getcurrent()] = self._log
        try:
            yield self.system
        finally:
            self._world.reads.pop(getcurrent(), None)

    def end(self) -> None:
        """End it, and look at what it has heard: a prefix of the log, and nothing twice (DOOR-3)."""
        log, self._log = self._log, None
        if log is None:
            return
        log.close()
        there = {item.position: item.hash for item in self._world.log.all()}
        positions = [item.position for item in self._heard]
        if positions != sorted({*positions}) or any(
            there.get(item.position) != item.hash for item in self._heard
        ):
            self._world.wrong("followed", f"a door has heard #{positions}, and the log has {len(there)}")
        behind = [position for position in there if self._from < position <= max(positions, default=0)]
        if positions != behind:
            self._world.wrong("followed", f"a door has heard #{positions} of #{behind}")

    def _go(self, path: Path, follower: "_Follower") -> None:
        world = self._world
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_behind)
            if world.faults.strikes("door_follows_late", 0.7):
                world.runtime.pause(world.chance.fixed("follows", MOST_LATE))
            self._is_behind = False
            _copy(path)
            follower.catch_up()


class _Follower:
    """Follows a log when it is told to, and not by a thread."""

    catch_up: Callable[[], object]

    def follow(self, catch_up: Callable[[], object]) -> "_Follower":
        """Catch up, then whenever `catch_up` is called."""
        self.catch_up = catch_up
        catch_up()
        return self

    def hurry(self) -> None:
        """Nothing comes sooner because somebody waits for it."""

    def close(self) -> None:
        """There is nothing to close."""


class _Link:
    """Hands calls on to what a writer has for doors. An answer may be lost on its way: then the call is sent again."""

    standing: JsonObject = {}  # noqa: RUF012 - nobody asks

    def __init__(self, world: "World") -> None:
        self._world, system, self._runtime = world, world.system, world.runtime
        self._doors = Doors(system, lambda: system.config.gateway)
        self._loop = self._runtime.threads.new_event_loop()
        self._runtime.spawn(self._loop.run_forever)

    def ask(self, caller: Caller, method: str, params: JsonMapping) -> "Future[Handed]":
        """Have a method called for a caller."""
        number, future = self._runtime.new_id(), Future[Handed]()

        def sent(*, again: bool) -> JsonObject:
            said: JsonObject = {
                "caller": msgspec.to_builtins(OnBehalf.of(caller)),
                "method": method,
                "params": dict(params),
                "number": number,
                "again": again,
            }
            asked = run_coroutine_threadsafe(self._doors.perform(_ITS, said, stopping=None), self._loop)
            self._runtime.threads.wait(asked, None)
            return asked.result()

        def hand_on() -> None:
            answer = sent(again=False)
            while answer.get("tryAgain") or self._world.chance.departs("lost on its way", 0.1):
                self._runtime.pause(1)
                answer = sent(again=True)
            future.set_result(handed_of(answer))

        self._runtime.spawn(hand_on)
        return future

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: Any = None,
    ) -> InFlight:
        """Let receipts go: what they say is tried with real doors."""
        del on_outcome, patient, behind
        return NotTaken(batch[0].stream)

    def drain(self, seconds: float) -> None:
        """Nobody stops a door here: it ends with its writer."""

    def close(self) -> None:
        """There is nothing to close."""


def _copy(path: Path) -> None:
    assert STORE.memory is not None
    with closing(sqlite3.connect(path)) as copy:
        copy.execute("PRAGMA synchronous=OFF")
        STORE.memory.backup(copy)
