"""One simulated system: begun, used, hurt, crashed and begun again; then left in peace until all is done, and checked."""

import errno
import hashlib
import os
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch
from uuid import UUID

from greenlet import getcurrent

from intersession import SessionSystem
from intersession_actors.owners.session.commands import RunReturned, StartNext
from intersession_actors.owners.session.deciding import Decider
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.effects import Abandoned, Plan
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.rules.errors import Known, Question
from intersession_actors.running.simulation.greenlets import SimulatedClock, Stuck
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.basics.errors import BackupFailed, StoreUnavailable
from intersession_events.facts import (
    AccessRecorded,
    CheckpointTaken,
    ChildArchived,
    ClockStepped,
    RunStarted,
    SessionArchived,
    ThreadUnbound,
)
from intersession_events.log.recorded import Recorded
from intersession_events.stores.backup import back_up
from intersession_events.stores.database import MEMORY
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from simulation.chance import Chance, Schedule
from simulation.clients import Answer, Client
from simulation.clumsy import CLUMSY, clumsy_calls
from simulation.disk import Disk, wrong_with_files
from simulation.door import DoorBeside
from simulation.faults import Crash, Faults, Tally
from simulation.judging import judging
from simulation.paused import Paused
from simulation.people import AGENTS, MAINS, Agents, Channels, host_rule
from simulation.settings import at_workers, settings_of
from simulation.store import SIMULATED, STORE, cut_off
from simulation.table import POINTS, SELDOM, happened
from simulation.workers import WorkerBeside
from support.faulty_store import disk_full
from support.history import Evidence, Finding, Held, Op, broken, check_views, check_whole

MOST_STEPS: Final = 20_000
SOON_S: Final = 2.0
MOST_AT_ONCE: Final = 3_000
"""More steps than these while no time passes are a storm: somebody asks without a pause."""
MOST_STARTS: Final = 40
MOST_AWAKE: Final = 500
"""The most steps that a writer does which was taken over, before it ends."""
DAY_S: Final = 86_400.0
SECRET: Final = "what nobody may ever read again"
MEMORY_DISK: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a directory of our own in it
_OWN_TIME: Final = (
    AccessRecorded | CheckpointTaken | ClockStepped | SessionArchived | ChildArchived | ThreadUnbound
)
"""What is written in its own time, or as a receipt: no trace of a call that was refused meanwhile."""
VIEWS: Final = [view.name for view in inline_views()]


class World:
    """A system, its clients, and what happens to them."""

    runtime: SimulatedRuntime
    log: SqliteLog
    system: SessionSystem

    def __init__(self, seed: int, keep: Collection[str] | None = None) -> None:
        self.chance = Chance(seed, keep)
        self.tally = Tally()
        self.faults = Faults(self.chance, self.tally)
        self.clock = SimulatedClock()
        self.ops: list[Op] = []
        self._once: dict[str, int] = {}
        self._copies = TemporaryDirectory(dir=MEMORY_DISK)
        self.disk = Disk(self._disk_called)
        self.findings: list[Finding] = []
        self.agents = Agents(self)
        self.channels = Channels(self)
        has_door = "door_follows_late" in self.faults.enabled and self.chance.fixed("door", 3) == 0
        self.door = DoorBeside(self) if has_door else None
        self.reads: dict[object, SqliteLog] = {}
        """The logs by which greenlets judge that ask at the door."""
        self.clients = [Client(self, number) for number in range(1 + self.chance.pick("clients", 3))]
        self.steps = 0
        self.log_id = str(UUID(int=seed))
        self.is_new = not self.chance.fixed("new", 7)
        """Whether the log is made in the simulation; else it was there, and nothing had happened in it."""
        self._starts = self._at_once = self._storms = 0
        self._now = 0.0
        self._opened: SqliteLog | None = None
        self._zombie: SqliteLog | None = None
        self._paused: Paused | None = None
        self.is_deposed = False
        """Whether what happens now is done by a writer that was taken over."""
        self._passed: dict[int, float] = {}
        self._decided: dict[str, int] = {}
        """How far the log had come when the first start of a run was decided."""
        self._held: dict[tuple[str, int, str], Held] = {}
        self._judged: list[tuple[int, Question, Known]] = []
        self._given_up: set[tuple[str, int]] = set()
        """The attempts whose answers the store could not take for longer than it is asked to."""
        self.aborts: set[str] = set()
        self._begun = self._begun_ms = 0
        self._clock_was_set = False
        self._crashed = False
        self._down_until = 0.0
        self._in_peace = False
        self._dies_at: str | None = None
        self._passes = 0
        """So often the point at which it dies is passed before."""
        if "crash_point" in self.faults.enabled and self.chance.departs("aims", 0.5):
            self._dies_at = POINTS[self.chance.fixed("aimed at", len(POINTS) - 1)]
            self._passes = self.chance.fixed("passes", 2)
        self.holds = self.faults.enabled & {"hold", "hold_rule", "hold_setting"}
        """What stops exchanges in this simulation."""
        self._config, self.attempts = settings_of(self.faults, self.chance)
        self.worker = WorkerBeside(self) if at_workers(self.faults) else None

    # --- what others tell

    def check_alive(self) -> None:
        """Let nobody of a process that has ended do anything more: a thread of it may be handed its next job while it goes."""
        if self._crashed:
            raise Crash

    def saw(self, kind: str, answer: Answer | Any) -> None:  # an answer of any tool
        """Count how a call was refused."""
        code = answer.get("code") if isinstance(answer, Mapping) else None
        if code is not None:
            self.tally.add("refusal", code)
            if code == "limit":
                self.tally.add("guard", answer["limit"].rpartition(".")[2])
            if code == "internal":
                self.wrong("internal", f"{kind} answers {answer}")

    def drawn(self, what: str, most: int) -> int:
        """Return what was drawn for something, the same each time."""
        if what not in self._once:
            self._once[what] = self.chance.fixed(what, most)
        return self._once[what]

    def wrong(self, law: str, words: str) -> None:
        """Note what is wrong whatever the log says."""
        self.findings.append(Finding(law, words))

    # --- life and death

    def begin(self) -> None:
        """Begin a process on the store; it may crash while it begins."""
        for _ in range(MOST_STARTS):
            self._starts += 1
            self._crashed = False
            try:
                self._start()
            except StoreUnavailable:
                self._crashed = True
                # Whoever looks after a process starts it again.
                self.clock.advance(max(5.0, self._down_until - self.clock.monotonic()))
            except (Crash, Exception):
                if not self._crashed:
                    raise
            if not self._crashed:
                break
            self._after_crash()
        else:
            raise RuntimeError("it never comes up")
        self.log.on_committed(self._note_time)
        if self.worker is not None:
            self.runtime.spawn(self.worker.go)
        if self.door is not None:
            self.door.begin()
        for client in self.clients:
            if not client.is_done:
                self.runtime.spawn(client.go)

    def _note_time(self, batch: Sequence[Recorded]) -> None:
        if self.is_deposed:
            return
        for item in batch:
            self._passed[item.position] = self.clock.monotonic()
        if self.door is not None:
            self.door.hear()

    def _start(self) -> None:
        enabled = self.faults.enabled
        self.runtime = SimulatedRuntime(seed=self._starts, clock=self.clock)
        self.runtime._greenlets._rng = Schedule(self.chance, reorders=0.3 if "reorder" in enabled else 0.0)
        self._watch_steps()
        self._clock_was_set = False
        self.log = self._opened = SqliteLog(
            MEMORY,
            inline=inline_views(),
            threads=False,
            clock=self.clock.now_ms,
            monotonic=self.clock.monotonic,
            entropy=self.runtime.entropy,
            new_log_id=lambda: self.log_id,
            environment=SIMULATED,
        )
        self._begun, self._begun_ms = self.log.head(), self.clock.now_ms()
        late_agent = not self._in_peace and self.faults.strikes("late_agent", 0.5)
        late_channel = not self._in_peace and self.faults.strikes("late_channel", 0.5)
        agents = {name: self.agents.all[name] for name in AGENTS if not (late_agent and name == "desk")}
        channels = {} if late_channel or self.worker is not None else self.channels.all
        self._late = (late_agent, late_channel)
        self.system = SessionSystem(
            self.log,
            agents=agents,
            channels=channels,
            config=self._config,
            hold=host_rule(self) if "hold_rule" in enabled else None,
            clock=self.clock,
            new_id=self.runtime.new_id,
            runtime=self.runtime,
        )

    def _pass(self, point: str) -> None:
        """Pass a crash point."""
        if self._crashed:
            raise Crash
        if self.is_deposed:
            return
        self.tally.add("passed", point)
        often = 0.15 if point in SELDOM else 0.03
        if point == self._dies_at and not self._in_peace and self._passes:
            self._passes -= 1
            return
        if point == self._dies_at:
            self._dies_at = None
        elif self._in_peace or not self.faults.strikes("crash_point", often, where=point):
            return
        self.tally.add("crash", point)
        self._crash()
        raise Crash

    def _commit(self, moment: str) -> None:
        """Pass a commit of the store."""
        if self._crashed:
            raise Crash
        if self._in_peace or self.is_deposed:
            return
        if self.clock.monotonic() < self._down_until:
            if moment == "before":
                raise disk_full()
            return
        if moment == "before" and self.faults.strikes("store_down", 0.02):
            self._down_until = self.clock.monotonic() + 1 + self.chance.fixed("down", 100)
            raise disk_full()
        if self.faults.strikes(f"store_{moment}", 0.05):
            raise disk_full() if moment == "before" else cut_off()

    def _disk_called(self, call: str) -> None:
        """Pass a call of the disk."""
        if self._crashed:
            raise Crash
        if self._in_peace or self.is_deposed:
            return
        if self.faults.strikes("disk_dies", 0.01, where=call):
            self.tally.add("crash", "disk")
            self._crash()
            raise Crash
        if self.faults.strikes("disk_fails", 0.004, where=call):
            number = (errno.EIO, errno.ENOSPC, errno.EROFS)[self.chance.fixed("disk fails", 2)]
            raise OSError(number, os.strerror(number), call)

    def _crash(self) -> None:
        """End the process here and now."""
        self._crashed = True

    def _after_crash(self) -> None:
        """Take away what is left of a process that has ended."""
        self._cut_off()
        if self.faults.strikes("power", 0.3):
            self.disk.lose_power(self.chance.fixed)
        log, self._opened = self._opened, None
        if log is not None and self._zombie is None and self.faults.strikes("zombie", 0.5):
            self._zombie = log  # it does not know yet that it is dead
        elif log is not None:
            with suppress(Crash):
                log.crash()
        with suppress(Crash, Stuck):
            self.runtime.crash()

    def _cut_off(self) -> None:
        """Let those outside know no more of the process that was there."""
        for client in self.clients:
            client.cut_off()
        self.channels.doubt()

    def _take_over(self) -> None:
        """Let another process take the log over, while the one that has written it is paused and does not end."""
        self._paused = Paused(self)
        self._opened = None
        self._cut_off()
        self.begin()

    def _lay_paused(self) -> None:
        """Let a writer that was paused do all that it still can, and go."""
        paused, self._paused = self._paused, None
        if paused is not None:
            paused.wake(MOST_AWAKE)
            paused.end()

    def _lay_zombie(self) -> None:
        """Let a writer that was thought to be dead write what it had before it, and go."""
        log, self._zombie = self._zombie, None
        if log is not None:
            log.step()
            log.crash()

    # --- what happens

    def happens(self) -> None:
        """Let everything happen, then go on in peace until all is done."""
        self.begin()
        while not all(client.is_done for client in self.clients) and self.steps < MOST_STEPS:
            self._step()
        if self.holds:
            self.runtime.spawn(self.release)
        for _ in range(self.chance.pick("further", 200)):
            self._step()
        if self.steps >= MOST_STEPS:
            self.wrong(
                "storm", f"{MOST_STEPS} steps, and clients still wait: somebody asks more than has to be"
            )
        self.chance.is_over = self._in_peace = True
        self._dies_at = None
        self._lay_zombie()
        self._lay_paused()
        if self.faults.enabled & {"crash_between"} and self.chance.fixed("last", 1):
            self._crash()
        if self._crashed:
            self._after_crash()
            self.begin()
        self._all_there()
        self._comes_to_rest()
        if self.chance.fixed("long after", 1):  # what is to happen in its own time has happened
            self.runtime.run_for(2 * 3_600.0)

    def _step(self) -> None:
        self.steps += 1
        if self.faults.strikes("early", 0.03):
            # Time passes although there is work: what is to happen soon races with it.
            self.runtime._greenlets._pass_time(self.clock.monotonic() + SOON_S)
        try:
            moved = self.runtime.step()
        except Crash:
            moved = True
        if self.faults.strikes("crash_between", 0.002):
            self.tally.add("crash", "between")
            self._crash()
        if self._crashed:
            self._after_crash()
            self.begin()
            return
        if self._paused is None and self.faults.strikes("standby_takes", 0.004):
            self._take_over()
        self._beside()
        if not moved:
            self._all_there()
            self.clock.advance(1)

    def _beside(self) -> None:
        """Do what nobody in the system does."""
        if self.faults.strikes("clock_step", 0.003):
            hours = (-1, 1, -24, 24, -0.001)[self.chance.fixed("hours", 4)]
            self._clock_was_set = True
            self.clock.set_wall(self.clock.now_ms() + round(hours * 3_600_000))
        if self._zombie is not None and self.chance.departs("lies", 0.05):
            self._lay_zombie()
        if self._paused is not None and self.chance.departs("wakes", 0.05):
            self._paused.wake(1 + self.chance.fixed("awake", 50))
            if self.chance.departs("goes", 0.2):
                self._lay_paused()
        if self._late != (False, False) and self.chance.departs("comes", 0.01):
            self._all_there()

    def _watch_steps(self) -> None:
        """Look for storms at each step of the process that begins, whoever drives it: each call from outside does."""
        step = self.runtime._greenlets.step

        def watched(*, early: float = 0.0, until: float | None = None) -> bool:
            self._notice_storms()
            return step(early=early, until=until)

        self.runtime._greenlets.step = watched  # type: ignore[method-assign]

    def _notice_storms(self) -> None:
        now = self.clock.monotonic()
        self._at_once = self._at_once + 1 if now == self._now else 0
        self._now = now
        if self._at_once == MOST_AT_ONCE:
            self.wrong("storm", f"{MOST_AT_ONCE} steps at {now} s")
            self._storms += 1
            self.clock.advance(60.0 * 2**self._storms)  # else no time would ever pass

    def _all_there(self) -> None:
        """Register who came late."""
        late_agent, late_channel = self._late
        self._late = (False, False)
        if late_agent:
            self.system.register_agent("desk", self.agents.all["desk"])
        if late_channel:
            for name, channel in self.channels.all.items():
                self.system.register_channel(name, channel)

    def release(self) -> None:
        """Let go on what is held, in one way or another, as whoever looks after it does."""
        operate = self.system.gateway.call
        if "hold_again" in self.faults.enabled:
            for one in operate("exchanges.held", {}).get("held", []):
                if self.faults.strikes("hold_again", 0.5):  # whoever held it may want to hold it again
                    self.saw("exchanges.release", operate("exchanges.release", {"runId": one["runId"]}))
        for key in MAINS:
            how = self.chance.pick(f"release {key}", 3)
            action: dict[str, Any] = ({}, {"action": "drop"}, {"action": "end"}, {"text": "another text"})[
                how
            ]
            answer = operate("exchanges.release", {"sessionKey": key} | action)
            if answer.get("code") == "invalid_request":  # one text, and not one exchange that is held
                answer = operate("exchanges.release", {"sessionKey": key})
            self.saw("exchanges.release", answer)
            if answer.get("released"):
                self.tally.add("released", ("go_on", "drop", "end", "edit")[how])

    def back_up(self) -> None:
        """Copy the log while it is in use: what has the copy's name is whole."""
        copy = Path(self._copies.name, f"{self.chance.fixed('copies', 2**60)}.db")
        head = self.log.head()
        try:
            back_up(self.log, copy)
        except Crash:
            if copy.exists():
                self.wrong("backup", f"{copy.name} is there, and nobody has verified it")
            raise
        except BackupFailed as error:
            self.wrong("backup", str(error))
            return
        if self.is_deposed:
            return  # the copy has more than this writer knows of
        with SqliteLog(copy, read_only=True) as read:
            if [item.hash for item in read.all()] != [
                item.hash for item in self.log.all() if item.position <= head
            ]:
                self.wrong("backup", f"the copy is not the log up to #{head}")
        copy.unlink()

    def _comes_to_rest(self) -> None:
        # An exchange of which every text is held is let go on as often as it has texts.
        for seconds in (*(120.0,) * 8, 1200.0, 7200.0, DAY_S, 2 * DAY_S):
            if self.holds:
                self.release()
            self.runtime.run_for(seconds)
            if all(client.is_done for client in self.clients) and not self._open():
                return

    def _open(self) -> list[str]:
        service = self.system.service
        return [
            *service.flows.open_exchanges(),
            *service.flows.open_spawns(),
            *service.flows.open_deliveries(),
            *(run.run_id for run in service.runs.open_runs()),
        ]

    # --- the verdict

    @contextmanager
    def noting_starts(self) -> Generator[None]:
        """Note what is known to whoever decides on the start of a run, and what the world holds at each decision of a flow."""
        plan = Decider.plan

        def noted(deciding: Decider, owner: Any, command: Any) -> Plan | Refused | None:
            head = deciding.world.log.head()
            decided = plan(deciding, owner, command)
            if self.is_deposed:
                return decided
            if isinstance(command, StartNext) and isinstance(decided, Plan):
                first = (
                    event for event in decided.events if isinstance(event, RunStarted) and event.attempt == 1
                )
                self._decided.update((event.run_id, head) for event in first)
            return decided

        appends = Owner._appends

        def appended(owner: Any, command: Any, plan: Any) -> Any:
            made = appends(owner, command, plan)
            if made and made[0].drafts and made[0].drafts[0].decision and not self.is_deposed:
                absent = frozenset({"desk"} if self._late[0] else ())
                held = Held(
                    head=self.log.head(),
                    absent=absent,
                    now_ms=owner._world.time.clock.now_ms(),
                    seconds=self.clock.monotonic(),
                    asked=self.clock.monotonic(),
                    begun=self._begun,
                    begun_ms=self._begun_ms,
                    was_set=self._clock_was_set,
                    tools=self._tools_of(owner),
                )
                self._held[owner.stream, owner.version + 1, made[0].drafts[0].decision] = held
            return made

        away = Owner.store_away

        def given_up(owner: Any, told: Any, error: Exception) -> None:
            away(owner, told, error)
            if (
                isinstance(told.command, RunReturned)
                and Abandoned(told.command) in owner.effects
                and not self.is_deposed
            ):
                self._given_up.add((told.command.run_id, told.command.attempt))

        ask = Owner._ask

        def asked_for(owner: Any, told: Any, asked: Any, **given: Any) -> None:
            drafts = asked.appends[0].drafts
            moment = (owner.stream, owner.version + 1, drafts[0].decision if drafts else "")
            # The store could not take it before.
            if told.asked is not None and moment in self._held and not self.is_deposed:
                self._held[moment] = self._held[moment]._replace(asked=self.clock.monotonic())
            ask(owner, told, asked, **given)

        with (
            patch.object(Decider, "plan", noted),
            patch.object(Owner, "_appends", appended),
            patch.object(Owner, "_ask", asked_for),
            patch.object(Owner, "store_away", given_up),
            judging(self._hears),
            DoorBeside.patient(),
        ):
            yield

    def _hears(self, asked: Question, known: Known) -> None:
        """Note what is judged, and how far the log was that it is judged by."""
        if not self.is_deposed:
            self._judged.append((self.reads.get(getcurrent(), self.log).head(), asked, known))

    @staticmethod
    def _tools_of(owner: Any) -> tuple[str, ...] | None:
        """Return the tools that the session of an owner has; None where it has been opened by nobody, or is none."""
        opened = getattr(owner.state, "opened", None)
        return None if opened is None else owner._world.rules.tools_of(opened)

    def evidence(self, events: Sequence[Recorded]) -> Evidence:
        """Return all that is known, with what was recorded."""
        return Evidence(
            events=list(events),
            ops=self.ops,
            asked=self.agents.asked,
            called=self.channels.called,
            shown=self.channels.shown,
            aborts=self.aborts,
            passed=self._passed,
            decided=self._decided,
            held=self._held,
            judged=self._judged,
            answers={run: said for run, said in self.agents.answers.items() if run not in self._given_up},
            attempts=self.attempts,
            windows={
                agent["id"]: agent["contextTokens"]
                for agent in self._config["agents"]["list"]
                if "contextTokens" in agent
            },
            until=self.clock.monotonic(),
            ended=True,
        )

    def judged(self, events: Sequence[Recorded]) -> list[Finding]:
        """Return what is wrong, by what was recorded and by what is left."""
        if self.door is not None:
            self.door.end()
        found = broken(self.evidence(events))
        found += [Finding("files", words) for words in wrong_with_files(self.disk, events)]
        found += [Finding("unanswered", client.name) for client in self.clients if not client.is_done]
        for kind, name in happened(events):
            self.tally.add(kind, name)
        self._ask_clumsily()
        if "erase" in self.faults.enabled and not self.chance.fixed("erased", 3):
            self._erase()
        degraded = self.system.status()["degraded"]
        if degraded:
            found.append(Finding("degraded", str(degraded)))
        self.system.close()
        found += check_whole(self.log)
        if not self.chance.fixed("rebuilt", 3):  # it takes as long as a tenth of the rest
            found += check_views(self.log, VIEWS)
        self.log.close()
        self._copies.cleanup()
        return [*self.findings, *found]

    def _ask_clumsily(self) -> None:
        """Make calls that are refused: each says why, and nothing is written for it."""
        calls = clumsy_calls(self)
        for _ in range(3):
            code, before = calls[self.chance.fixed("clumsy", len(calls) - 1)], self.log.head()
            answer = CLUMSY[code](self)
            self.saw("clumsy", answer)
            self.runtime.run_for(1)  # what is written for it is written by then: a receipt, perhaps
            written = [
                item.topic
                for item in self.log.all()
                if item.position > before and not isinstance(item.event, _OWN_TIME)
            ]
            if answer.get("code") != code or written:
                self.wrong(
                    "refused", f"what is to be refused as {code} is {answer}, and {written} is written"
                )

    def _erase(self) -> None:
        """Erase what was said in a session: nothing of it is left in the store, though a crash cuts it short."""
        key = MAINS[0]
        self.system.inbound(
            channel="keyed", chat_id="room", sender="late", text=SECRET, agent_id="main", wait=30.0
        )
        self.runtime.run_for(DAY_S)
        self._passes = 0
        self._dies_at = ("E1", "E2", None)[self.chance.fixed("erase", 2)]
        self.tally.add("fault", "erase")
        answer: dict[str, Any] = {}
        for _ in range(2):
            try:
                answer = self.system.gateway.call("sessions.erase", {"key": key, "reason": "asked for"})
            except Crash:
                answer = {"code": "crashed"}
            if not self._crashed:
                break
            self._after_crash()
            self.begin()
        assert STORE.memory is not None
        if answer.get("ok") is not True:
            self.wrong("erased", f"sessions.erase answers {answer}")
        elif SECRET.encode() in STORE.memory.serialize():
            self.wrong("erased", "the store still has words that were erased")

    def trace(self, events: Sequence[Recorded]) -> str:
        """Return a hash over what was recorded, asked, answered and shown."""
        digest = hashlib.sha256()
        for item in events:
            digest.update(item.hash.encode())
        digest.update(repr((self.ops, self.agents.asked, self.channels.shown)).encode())
        return digest.hexdigest()
