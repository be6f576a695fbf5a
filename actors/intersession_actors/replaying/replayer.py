"""Executes a recording: today's actors in a simulation, fed with what came from outside; the first difference ends it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from intersession_actors.agents import AgentExecutor
from intersession_actors.channels import ChannelCaller
from intersession_actors.config import Config, milliseconds
from intersession_actors.delivery import Outbox
from intersession_actors.exchange import Coordinator, OpenExchange, fixed_by
from intersession_actors.holding import Holds, RuleCaller
from intersession_actors.replaying.at_hand import command_at_hand, in_words
from intersession_actors.replaying.difference import Difference, erased, failed, missing, refused, stuck
from intersession_actors.replaying.doors import Doors, Refusal
from intersession_actors.replaying.feeding import ToFlow, ToSession, command_for, goes_on
from intersession_actors.replaying.held_steps import HeldSteps
from intersession_actors.replaying.looked_at import (
    OwnThreads,
    RecordedGenerations,
    RecordedHolds,
    RecordedLedger,
    RecordedStopwatch,
    RecordedWorld,
    RunsOfChains,
)
from intersession_actors.replaying.outside import (
    NoReports,
    NoTimers,
    RecordedAgents,
    RecordedChannels,
    RecordedClock,
    RecordedContexts,
    RecordedRule,
    is_session,
    stream_at_hand,
    turn_of,
)
from intersession_actors.replaying.recording import MANAGED, Recording
from intersession_actors.replaying.refusals import Refusals
from intersession_actors.replaying.sealed_log import SealedLog
from intersession_actors.replaying.settings import RecordedSettings
from intersession_actors.replaying.told import Told
from intersession_actors.runtime import Failure, Handler, Ref
from intersession_actors.session import (
    Archive,
    CheckSend,
    Enqueue,
    ReadAgain,
    RunReturned,
    SessionActor,
)
from intersession_actors.simulation import SimulatedRuntime
from intersession_actors.spawn import OpenSpawn, Spawner
from intersession_actors.streams import (
    ChildGone,
    Command,
    DeliveryEnded,
    ForkOf,
    Mail,
    OfStream,
    RulesInForce,
    RunEnded,
    Standing,
    StepRefused,
    StepTaken,
    Time,
)
from intersession_actors.tools import tools_offered
from intersession_events import facts
from intersession_events.ids import session_stream
from intersession_events.log import HostLog, Recorded

T = TypeVar("T")
MANAGERS: Mapping[str, type[Handler]] = {"delivery": Outbox, "exchange": Coordinator, "spawn": Spawner}


class Outcome(NamedTuple):
    """What came of a replay: events decided anew, events given as they were, later rules in words, what could not be judged, the first difference."""

    decided: int
    given: int
    later: tuple[str, ...]
    unjudged: tuple[str, ...]
    difference: Difference | None


class Replayer:
    """Replays one recording, once. `configs` says which settings were in force at a position."""

    def __init__(self, recording: Recording, configs: RecordedSettings) -> None:
        self._recording = recording
        self._configs = configs
        self._runtime = SimulatedRuntime()
        self._difference: Difference | None = None
        self._log = SealedLog(recording, command=self._led_to, differs=self._differs)
        self._sessions: dict[str, Ref] = {}
        self._led: dict[str, str | None] = {}
        """What led to the step of a flow, in words."""
        self._told = Told()
        self._fed: set[int] = set()
        self._resumed: set[int] = set()
        self._given = 0
        self._position = 0
        self._progress = (0, 0)
        """How much has happened, and what was done since in vain."""
        self._most_idle = _IDLE * (1 + recording.number_of_streams)
        log, clock = cast("HostLog", self._log), RecordedClock(recording)
        self._agents = RecordedAgents(recording)
        self._channels = RecordedChannels(recording)
        self._contexts = RecordedContexts(log, recording)
        self._runs = RunsOfChains(recording)
        self._log.on_committed(self._runs.take)
        self._refusals = Refusals(recording)
        self._chains = RecordedLedger(log, self._runs.of, recording, self._refusals)
        rule = RecordedRule(recording, self._refusals) if recording.was_ruled else None
        holds = Holds(RecordedHolds(recording, self._refusals), cast("RuleCaller | None", rule))
        holds.sessions.take(recording.order_so_far())
        self._log.on_committed(holds.sessions.take)
        self._world = RecordedWorld(
            recording=recording,
            refusals=self._refusals,
            log=log,
            time=Time(
                clock,
                NoTimers(),
                RecordedStopwatch(
                    clock,
                    recording,
                    oldest_ms=lambda: milliseconds(self._world.limits.deliveries.max_age_seconds),
                ),
            ),
            mail=Mail(
                tell_session=self._tell_session,
                tell_flow=self._tell_flow,
                set_aside=self._set_aside,
                resume_flow=_nothing,
                read_back=_nothing,
                passivated=_nothing,
                on_disk=_never_done,
            ),
            reports=NoReports(clock=self._runtime.clock, threads=self._runtime.threads),
            agents=cast("AgentExecutor", self._agents),
            channels=cast("ChannelCaller", self._channels),
            rules=RulesInForce(
                self._config,
                offered=tools_offered,
                has_channel=self._channels.has,
                transcript_path=recording.transcripts.get,
            ),
            chains=self._chains,
            standing=Standing(holds, RecordedGenerations(recording), OwnThreads()),
            fork=ForkOf(
                accepted_as=lambda accepted: fixed_by(self._config(), configs.edits, accepted),
                sealed=recording.withheld.__contains__,
            ),
            limits=self._config(),
        )
        self._doors = Doors(recording, self._world.rules)
        self._steps = HeldSteps(
            recording,
            self._contexts,
            self._doors,
            tell_session=self._to_session,
            tell_flow=self._to_flow,
        )
        self._managers = {
            prefix: self._runtime.start(
                manager, self._world, name=prefix, on_failure=partial(self._failed, prefix)
            )
            for prefix, manager in MANAGERS.items()
        }

    def run(self, progress: Callable[[int, int], None] | None = None) -> Outcome:
        """Replay it all, or up to the first difference. `progress` gets how many events are done, and how many there are."""
        order = self._recording.order_to_come()
        for number, recorded in enumerate(order):
            while self._difference is None and self._recording.version(recorded.stream) < recorded.version:
                self._position = recorded.position
                self._settle(recorded)
                if self._difference is None and self._recording.version(recorded.stream) < recorded.version:
                    try:
                        self._bring_about(recorded)
                    except Exception as error:  # noqa: BLE001 - whatever a recording has that nothing can have led to
                        self._differs(failed(recorded.stream, recorded.version, error, command_at_hand()))
                    self._note_progress(recorded)
            if self._difference is not None:
                break
            if progress is not None and number % 500 == 0:
                progress(number, len(order))
        self._end()
        self._runtime.stop(0)
        if progress is not None and self._difference is None:
            progress(len(order), len(order))
        difference, unjudged = self._log.times.judged(self._difference)
        if self._log.erased:
            unjudged += (
                f"erased text, and what was given of it to agents, in events of which all else is the same: {self._log.erased}",
            )
        return Outcome(self._log.decided, self._given, tuple(self._log.later), unjudged, difference)

    def _end(self) -> None:
        """Have decided what nobody has recorded: behind the end of a stream there may be nothing."""
        self._settle(None)
        while self._difference is None and (self._told.hand_on_any() or self._steps.release_any()):
            self._settle(None)
            self._note_progress(None)

    def _settle(self, recorded: Recorded | None) -> None:
        """Have actors do all that they have to do. Those that go on and on are stopped: no recording can make them."""
        happened = -1
        while self._difference is None and self._runtime.run(most=_STEPS) == _STEPS:
            if happened == self._log.happened:
                self._differs(stuck(recorded, command_at_hand()))
            happened = self._log.happened

    def _note_progress(self, recorded: Recorded | None) -> None:
        """End a replay that goes on and on without anything that happens, whatever it was given."""
        if self._progress[0] != self._log.happened:
            self._progress = self._log.happened, 0
        self._progress = self._log.happened, self._progress[1] + 1
        if self._progress[1] > self._most_idle:
            self._differs(stuck(recorded, command_at_hand()))

    # --- what happens next

    def _bring_about(self, recorded: Recorded) -> None:
        """Do what leads to the first event that has not happened: nothing is under way any more.

        First comes what somebody outside did, then what actors had told the stream's, then that of a start of the process.
        """
        if self._steps.release(recorded):
            return
        if recorded.position not in self._fed:
            self._fed.add(recorded.position)
            self._world.limits = self._config()
            if not recorded.stream.startswith(MANAGED) or self._recording.is_imported(recorded):
                self._give(recorded)
                return
            if self._feed(recorded):
                return
        stream = self._recording.decided_in(recorded)
        if self._steps.release_of(stream) or self._told.hand_on(_box(stream, recorded.event)):
            return
        if recorded.position not in self._resumed:
            self._resumed.add(recorded.position)
            if self._resume(recorded):
                return
        if not self._steps.release_any():
            self._differs(missing(recorded))

    def _feed(self, recorded: Recorded) -> bool:
        """Tell an actor what somebody outside did; False where nobody did anything, so that an actor decides it by itself."""
        match command_for(recorded, self._recording):
            case ToSession(key, _, tuple() as left_behind) if self._configs.recorded_at(self._position):
                # How often it may be tried again is known: the session finds it left behind, as it did then.
                self._agents.left_behind = left_behind
                self._to_session(key, ReadAgain())
            case ToSession(key, command):
                if isinstance(command, RunReturned):
                    self._agents.results.keep(command.run_id, command.attempt, command.result)
                if isinstance(command, Enqueue) and (limits := self._configs.limits_at(self._position)):
                    command = self._doors.asked(key, command, limits)
                self._to_session(key, command)
            case ToFlow(stream, command, cut_off):
                if cut_off:
                    self._channels.forget_attempt(self._recording.past(stream))
                self._to_flow(stream, self._judged_today(recorded, command))
            case None if (
                isinstance(recorded.event, facts.DeliveryDecided) and recorded.event.purpose in _AT_A_DOOR
            ):
                self._give(recorded)
                self._to_flow(recorded.stream, StepTaken(stream=recorded.stream, recorded=(recorded,)))
            case None:
                return False
        return True

    def _resume(self, recorded: Recorded) -> bool:
        """Tell whoever leads a stream to go on, as a start does: a process that ended in between had told nobody."""
        match goes_on(recorded, self._recording):
            case ToSession(key, command):
                self._to_session(key, command)
            case ToFlow(stream, command):
                self._to_flow(stream, command)
            case None:
                return False
        return True

    def _judged_today(self, recorded: Recorded, command: Command) -> Command:
        """Have what a door let in judged again by today's code and the configuration in force then, where that was recorded."""
        settings = self._configs.recorded_at(self._position)
        if settings is None or not isinstance(command, OpenExchange | OpenSpawn):
            return command
        began = self._recording.ahead(command.stream) or recorded
        judged = self._doors.judged(began, command, settings)
        if isinstance(judged, Refusal):
            self._differs(refused(began, *judged))
            return command
        return judged

    def _give(self, recorded: Recorded) -> None:
        """Let an event have happened that no actor decided."""
        self._given += 1
        self._log.commit((recorded,))
        if isinstance(recorded.event, facts.LogOpened):
            self._chains.restart()
            self._told.forget()  # another process begins, and reads what was left open
        if is_session(recorded.stream):
            key = recorded.stream.partition(":")[2]
            if key in self._sessions:
                self._to_session(key, ReadAgain())

    # --- who is told

    def _tell_session(self, key: str, command: Command) -> None:
        if isinstance(command, Enqueue | Archive) and command.flow is not None:
            self._steps.keep(key, command)
            self._led[command.flow] = command_at_hand()
        elif isinstance(command, CheckSend):
            delivery = stream_at_hand()
            judged = self._doors.checked(delivery, command, key)
            self._told.keep(delivery, lambda: self._to_session(key, judged))
        elif self._recording.has(session_stream(key)):
            self._to_session(key, command)

    def _to_session(self, key: str, command: Command) -> None:
        ref = self._sessions.get(key)
        if ref is None:
            ref = self._sessions[key] = self._runtime.start(
                SessionActor,
                self._world,
                self._contexts,
                turn_of,
                key,
                name=key,
                on_failure=partial(self._failed, session_stream(key)),
            )
        ref.tell(command, urgent=True)

    def _tell_flow(self, stream: str, command: Command) -> None:
        if not self._recording.has(stream):
            return
        if isinstance(command, ChildGone):
            self._told.keep(f"gone {stream}", lambda: self._to_flow(stream, command))
        elif isinstance(command, RunEnded | DeliveryEnded):
            self._told.keep(stream, lambda: self._to_flow(stream, command))
        else:
            self._to_flow(stream, command)

    def _to_flow(self, stream: str, command: Command) -> None:
        if isinstance(command, StepRefused) and command.code != "unavailable":
            self._refusals.take(stream)
        if self._recording.has(stream):
            self._managers[stream.partition(":")[0]].tell(command, urgent=True)

    # --- what goes wrong

    def _led_to(self, stream: str) -> str | None:
        """Return what led to what is appended to a stream: a session only makes the append of a flow's step."""
        return command_at_hand() if is_session(stream) else self._led.pop(stream, None) or command_at_hand()

    def _differs(self, difference: Difference) -> None:
        if self._difference is None:
            self._difference = erased(difference) if self._recording.has_erased() else difference

    def _failed(self, stream: str, failure: Failure) -> None:
        message = failure.message
        name = message.stream if ":" not in stream and isinstance(message, OfStream) else stream
        version = self._recording.version(name) + 1
        self._differs(failed(name, version, failure.error, in_words(message)))

    def _set_aside(self, stream: str, reason: str) -> None:
        version = self._recording.version(stream) + 1
        self._differs(failed(stream, version, RuntimeError(reason), command_at_hand()))

    # --- the settings that were in force

    def _config(self) -> Config:
        return self._configs.at(self._position)


_STEPS: Final = 2_000
"""In so many steps of actors something happens, or nothing ever will."""
_IDLE: Final = 20
"""So much may be done in vain for each stream: a word to it is kept, a step or a context of it is asked for, its owner is told to go on."""

_AT_A_DOOR = {"send", "command_reply"}
"""What is delivered because somebody at a door said it; all else an actor decides."""


def _box(stream: str, event: facts.Event) -> str:
    """Return where the words to a stream are kept that an event can follow from: that a child is gone leads to one kind alone."""
    is_gone = isinstance(event, facts.ChildArchived) and event.reason == "deleted"
    return f"gone {stream}" if is_gone else stream


def _never_done(work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
    """Do nothing on the disk; what came of it is fed."""


def _nothing(_: object) -> None:
    return
