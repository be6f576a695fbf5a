"""The owner of one stream: loads it, decides, appends, and gives each command its outcome. Actors are shells around owners.

A session's actor has one owner, a process manager one for each flow that it works on. The owner takes one command at a time. What the
rules decide is appended, and only when the log has it does the owner have it acted on. What is told meanwhile waits, in its order.
It does nothing itself: its `effects` are what is to be done, in order, and its actor does them (`shell.py`).

Two things can go wrong, and each has one policy, for sessions and flows alike:

- *The store is away.* Who waits for an answer is refused with `unavailable` at once. Everything else is asked of the store
  again every half second, for as long as it takes, unless it is a command that is given up (`Command.is_given_up`).
- *It can't be recorded.* `Deciding.unstorable` says what takes the place of a command with a text or a number that no store takes.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from msgspec.structs import replace

from intersession_actors.owners.chains.ledger import ChainUnread
from intersession_actors.owners.streams.commands import (
    Accepted,
    Appended,
    Ask,
    Command,
    Refused,
    Request,
    RunEnded,
    Step,
    StepTaken,
    StoreDue,
    StreamLoaded,
    WasRead,
    refusal_of,
)
from intersession_actors.owners.streams.drafting import append_of, caused_by
from intersession_actors.owners.streams.effects import (
    Abandoned,
    Answer,
    Append,
    AppendRequest,
    AskStoreAgain,
    CommandOutcome,
    Effect,
    Failed,
    Load,
    Loaded,
    Plan,
    Read,
    ReadBack,
    TellFlow,
    TellSession,
)
from intersession_actors.owners.streams.texts import TextsUnread
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.config.settings import milliseconds
from intersession_events.basics.errors import AppendConflict, NotStorable, StoreBusy, StoreUnavailable
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import Committed, Conflict, Outcome, Recorded, StreamAppend, Unavailable

S = TypeVar("S")
C = TypeVar("C", bound=Command)


class Deciding(Protocol[S, C]):
    """An owner's decisions: the rules of its stream, with their inputs."""

    def evolve(self, state: S | None, recorded: Recorded) -> S:
        """Apply one recorded event."""
        ...

    def plan(self, owner: "Owner[S, C]", command: C) -> Plan | Accepted | Refused | None:
        """Decide a command: an outcome answers it at once. None: no caller waits for an answer."""
        ...

    def record(self, command: C, plan: Plan) -> str:
        """Return the decision record of a plan; empty for none."""
        ...

    def effects(
        self, owner: "Owner[S, C]", command: C | None, before: S | None, fresh: Sequence[Recorded]
    ) -> Sequence[Effect]:
        """Return the effects of durable events. `before` is the state before them, `command` caused them, if it was ours."""
        ...

    def ahead(self, owner: "Owner[S, C]", append: StreamAppend) -> RunEnded | None:
        """Return a message to a flow about an append that is not durable yet, so that its next step shares the commit."""
        ...

    def next_decision(self, owner: "Owner[S, C]", append: StreamAppend) -> tuple[C, Plan] | None:
        """Return the owner's own next decision after an append, if it can be made before that is durable."""
        ...

    def unstorable(self, command: C, error: NotStorable) -> C | Refused | None:
        """Return a replacement for a command that can't be recorded. None: there is none, the owner can't go on."""
        ...


class Owner(Generic[S, C]):
    """The one writer of a stream. It belongs to one actor, and only that actor's handler uses it."""

    # Each session that is awake has one: without a dictionary it takes a third less.
    __slots__ = (
        "_asked",
        "_deciding",
        "_empty",
        "_last_number",
        "_loading",
        "_reading",
        "_under_way",
        "_world",
        "asks_session",
        "cause",
        "correlation",
        "decided_at",
        "effects",
        "in_flight",
        "is_busy",
        "put_off",
        "state",
        "stream",
        "told",
        "told_ahead",
        "version",
        "waiting",
    )

    def __init__(
        self, stream: str, deciding: Deciding[S, C], world: World, *, empty: S | None = None
    ) -> None:
        """Make an owner of a stream that is not read yet."""
        self.stream = stream
        self.state = empty
        self.version = 0
        self.cause: str | None = None
        """The id of the last event: what a step of its own accord is caused by."""
        self.correlation: str | None = None
        self.decided_at = 0.0
        """When the last command was decided, or its append asked for again, in seconds of the monotonic clock.

        What it leads to has its time from then on: that the store was away shortens no attempt."""
        self._empty = empty
        self._deciding = deciding
        self._world = world
        # Lists, since both are short: an empty deque takes as much memory as ten of them, and each awake session has an owner.
        self.effects: list[Effect] = []
        """What is to be done, in order."""
        self.waiting: list[CommandOutcome[C]] = []
        """What is decided next, in order."""
        self.is_busy = False
        """Whether the stream is being read, or an append is under way."""
        self._under_way: CommandOutcome[C] | None = None
        """The command whose append is in progress."""
        self._asked: Ask | None = None
        """What its answer names."""
        self.asks_session = False
        """Whether it is a session's actor that is asked for it, and not the log."""
        self.told: str | None = None
        """The session that was told the last step over its stream."""
        self.told_ahead: str | None = None
        """The end of a run that its flow was told of before it is durable, by the id of the event."""
        self.in_flight: InFlight | None = None
        """That append, if it may be put off."""
        self._reading: Ask | None = None
        """What the answer to the last reading names, while that is under way."""
        self._loading = False
        self._last_number = 0
        self.put_off: dict[int, CommandOutcome[C]] = {}
        """What the store is asked for again, by the number of its timer: nothing new is begun meanwhile."""

    @property
    def has_work(self) -> bool:
        """Whether a command waits, is being appended, or will be retried."""
        return self.is_busy or bool(self.waiting) or bool(self.put_off)

    @property
    def under_way(self) -> C | None:
        """The command whose append is in progress."""
        return self._under_way.command if self._under_way is not None else None

    def awaits(self, ask: Ask | None) -> bool:
        """Whether an answer belongs to the present request of the command in progress, and not to an earlier one."""
        return ask is not None and ask is self._asked

    def commands(self) -> tuple[C, ...]:
        """Return the waiting commands, in order, then those whose store request will be repeated."""
        return tuple(told.command for told in (*self.waiting, *self.put_off.values()))

    # --- commands in, effects out

    def take(self, command: C) -> None:
        """Queue a command; it is decided when its turn comes."""
        self.waiting.append(CommandOutcome(command))
        if self.in_flight is not None:
            self.in_flight.hurry()  # somebody waits for it now

    def take_first(self, command: C) -> None:
        """Queue a command before all others."""
        self.waiting.insert(0, CommandOutcome(command))

    def give_up(self) -> tuple[C, ...]:
        """Stop for good; return the waiting commands."""
        waiting = self.commands()
        for kept in (self.effects, self.waiting, self.put_off):
            kept.clear()
        return waiting

    def end(self, unsure: str, refused: Refused) -> None:
        """Refuse all commands for an actor that ends; of the one whose append is in progress nobody knows whether it is recorded."""
        if self._under_way is not None:
            answer(self._under_way.command, Refused(code="unavailable", error=unsure))
        for command in self.commands():
            answer(command, refused)

    # --- reading the log

    def load(self) -> None:
        """Have the stream read; waiting commands are decided after that."""
        self._loading, self.is_busy, self._reading = True, True, Ask()
        self.effects.append(Load(self._reading))

    def reload(self) -> None:
        """Requeue the command in progress and read the stream again: it is decided anew."""
        told = self.give_back()
        if told is not None:
            # Without its append: that was decided on a state which may be outdated.
            self.waiting.insert(0, replace(told, asked=None))
        self.load()

    def read_back(self) -> None:
        """Continue from the log; effects of its events were perhaps never carried out."""
        self.reload()
        self.effects.append(ReadBack())

    def read(self, message: StreamLoaded) -> None:
        """Take a stream that was read, unless it was requested again since."""
        if message.ask is self._reading:
            self._reading = None
            self.loaded(message.recorded)

    def loaded(self, recorded: Sequence[Recorded] | Exception) -> None:
        """Take a stream that was read."""
        if isinstance(recorded, StoreUnavailable):
            self._cannot_read(recorded)
            return
        if isinstance(recorded, Exception):
            self.effects.append(Failed(recorded, None))
            return
        self.state, self.version = self._empty, 0
        if self._evolve(recorded):
            self._go_on_loaded()

    def resume(self, state: S, last: Recorded | None) -> None:
        """Go on from a state, after the stream's last event."""
        self.state, self.version = self._empty, 0
        if last is not None:
            self.state, self.version = state, last.version
            self.cause, self.correlation = last.id, last.correlation
        self._go_on_loaded()

    def _go_on_loaded(self) -> None:
        self._loading, self.is_busy = False, self._under_way is not None
        self.effects.append(Loaded())

    def _cannot_read(self, error: StoreUnavailable) -> None:
        self._world.reports.store_away(error, stream=self.stream)
        refused = Refused(code="unavailable", error=f"the store is unavailable: {error}")
        kept: list[CommandOutcome[C]] = []
        for told in self.waiting:
            if _is_waited_for(told.command):
                self._answer(told.command, refused)
            else:
                kept.append(told)
        self.waiting = kept
        self._ask_store_later(None)

    def _evolve(self, fresh: Sequence[Recorded]) -> bool:
        """Apply events, in order; the actor judges an event that the rules refuse."""
        evolve = self._deciding.evolve
        try:
            for item in fresh:
                self.state = evolve(self.state, item)
                self.version, self.cause, self.correlation = item.version, item.id, item.correlation
        except Exception as error:  # noqa: BLE001 - a rule of any kind
            self.effects.append(Failed(error, None))
            return False
        return True

    # --- deciding and appending

    def decide_next(self) -> None:
        """Decide the first waiting command."""
        told = self.waiting.pop(0)
        self.decided_at = self._world.time.clock.monotonic()
        if told.asked is not None:
            self._ask(told, told.asked)
            return
        try:
            plan = self._deciding.plan(self, told.command)
            if plan is None:
                return
            if isinstance(plan, Accepted | Refused):
                self._answer(told.command, plan)
                return
            appends = self._appends(told.command, plan)
        except NotStorable as error:
            self._not_storable(told, error)
            return
        except (ChainUnread, TextsUnread) as unread:
            self.effects.append(Read(unread, self._begin(told)))
            return
        except Exception as error:  # noqa: BLE001 - whatever a rule raises is for the actor to judge
            self.effects.append(Failed(error, told))
            return
        self.effects += plan.effects
        if not appends:
            self._answer(told.command, Accepted(recorded=()))
            return
        if plan.through is not None:
            (self.told, step), ask = plan.through(appends), self._begin(told)
            self.asks_session = True
            step = replace(step, ask=ask, behind=plan.behind or step.behind)
            self.effects.append(TellSession(self.told, step))
        else:
            ahead = self._deciding.ahead(self, appends[0]) if plan.leads_on else None
            asked = AppendRequest((*appends, *self._next_append(appends[0])), ahead)
            self._ask(told, asked, behind=plan.behind)

    def was_read(self, message: WasRead) -> None:
        """Decide the command whose missing input has been read."""
        told = self.give_back() if self.awaits(message.ask) else None
        if told is None:
            return
        if not isinstance(message.found, Exception):
            self.decide_again(told)
        elif isinstance(message.found, StoreUnavailable):
            self.store_away(told, message.found)
        else:
            self.effects.append(Failed(message.found, told))

    def _ask(self, told: CommandOutcome[C], asked: AppendRequest, *, behind: InFlight | None = None) -> None:
        """Ask the store for an append."""
        self.told_ahead = asked.ahead.cause if asked.ahead is not None else None
        # One that is behind another is void with it, and is decided anew.
        ask = self._begin(CommandOutcome(told.command, told.away_since, asked if behind is None else None))
        self.effects.append(Append(asked, ask, behind))

    def _begin(self, told: CommandOutcome[C]) -> Ask:
        """Make a command the one in progress; return the token for the answer to its request."""
        self._under_way, self._asked, self.asks_session, self.is_busy = told, Ask(), False, True
        return self._asked

    def _appends(self, command: C, plan: Plan) -> tuple[StreamAppend, ...]:
        if not plan.events and not plan.carried and plan.through is None:
            return ()
        own = append_of(
            self._world.log.log_id,
            self.stream,
            self.version,
            plan.events,
            time=self._world.time.clock.now_ms(),
            causation=plan.cause,
            correlation=plan.correlation,
            decision=self._deciding.record(command, plan) if plan.events else "",
        )
        if not plan.carried_by_last:
            return (own, *plan.carried)
        return (own, *(caused_by(own.drafts[-1].id, carried) for carried in plan.carried))

    def _next_append(self, own: StreamAppend) -> tuple[StreamAppend, ...]:
        """Return the owner's own next decision behind an append, so that both share the commit; each has its record.

        Nothing where commands wait: those come first.
        """
        if self.waiting or self.put_off:
            return ()
        try:
            following = self._deciding.next_decision(self, own)
            if following is None:
                return ()
            command, plan = following
            return (
                append_of(
                    self._world.log.log_id,
                    self.stream,
                    own.expected + len(own.drafts),
                    plan.events,
                    time=own.drafts[-1].time,
                    causation=plan.cause,
                    correlation=plan.correlation,
                    decision=self._deciding.record(command, plan),
                ),
            )
        except Exception:  # noqa: BLE001 - what it fails on must not keep the append from the log: it is met again, decided by itself
            return ()

    def appended(self, message: Appended) -> None:
        """Take the log's answer to the append in progress."""
        if message.ask is not self._asked:
            self._answered_late(message.outcome)
            return
        told, self.in_flight = self._under_way, None
        match message.outcome:
            case Committed(recorded=recorded, again=again):
                self._world.reports.store_back()
                if again and self.version == 0 and self.state is self._empty:
                    self.read_back()  # begun in a life before ours: the log has the whole story
                    return
                self.committed(recorded, again=again)
            case Conflict(stream=stream, actual=actual) as conflict if stream != self.stream:
                # A carried append of another stream is outdated. Reading ours again would decide the same: the actor judges.
                self.give_back()
                if told is not None:
                    self.effects.append(Failed(AppendConflict(stream, conflict.expected, actual), told))
            case Conflict():
                # Somebody else wrote: an import, or we ourselves before a commit whose answer was lost.
                self.read_back()
            case Unavailable(error=error):
                self.give_back()
                if told is not None:
                    self._not_appended(told, error)

    def give_back(self) -> CommandOutcome[C] | None:
        """Return the command in progress; no answer is expected for it any more."""
        told, self._under_way, self._asked, self.asks_session = self._under_way, None, None, False
        self.is_busy = self._loading
        return told

    def _answered_late(self, outcome: Outcome) -> None:
        """Take a late answer: its command is queued again, so read the stream if the append succeeded."""
        if isinstance(outcome, Committed) and self.is_fresh(outcome.recorded):
            self.read_back()

    def is_fresh(self, recorded: Sequence[Recorded]) -> bool:
        """Whether there are events of the stream that are new here."""
        return any(item.stream == self.stream and item.version > self.version for item in recorded)

    def _not_appended(self, told: CommandOutcome[C], error: Exception) -> None:
        if isinstance(error, NotStorable):
            self._not_storable(told, error)
        elif isinstance(error, StoreUnavailable):
            self.store_away(told, error)
            if _is_waited_for(told.command) and not isinstance(error, StoreBusy):
                self.read_back()  # it was refused, and is perhaps in the log all the same
        else:
            # Not the store but the stream: its last row is damaged, and nothing can follow that.
            self.effects.append(Failed(error, told))

    def committed(self, recorded: tuple[Recorded, ...], *, again: bool = False) -> None:
        """Take a durable append's events, have their effects carried out, and go on."""
        told = self.give_back()
        command = told.command if told is not None else None
        fresh, others = list[Recorded](), dict[str, list[Recorded]]()
        for item in recorded:
            if item.stream != self.stream:
                others.setdefault(item.stream, []).append(item)
            elif item.version > self.version:
                fresh.append(item)
        before = self.state
        if isinstance(command, Request) and command.answer is not None:
            # The log has it, whatever fails here next: the waiting caller must not wait for that.
            self.effects.append(Answer(command, Accepted(recorded=recorded)))
        if not self._evolve(fresh):
            return
        for stream, items in others.items():
            if not stream.startswith("session:"):  # its actor made the append, and knows
                ask = command.ask if isinstance(command, Step) and command.flow == stream else None
                # A flow may have heard of what had been recorded before, and has to look how far it has come.
                told_of = () if again else tuple(items)
                self.effects.append(TellFlow(StepTaken(stream=stream, recorded=told_of, ask=ask)))
        try:
            self.effects += self._deciding.effects(self, command, before, fresh)
        except Exception as error:  # noqa: BLE001 - a rule of any kind
            self.effects.append(Failed(error, None))

    def _answer(self, command: C, outcome: Accepted | Refused) -> None:
        """Give a command its outcome. The flow of a step is told of a refusal, and of a step that was taken before."""
        if isinstance(command, Step) and command.flow is not None:
            if isinstance(outcome, Refused):
                self.effects.append(TellFlow(refusal_of(command, command.flow, outcome)))
            elif not outcome.recorded:
                self.effects.append(TellFlow(StepTaken(stream=command.flow, recorded=(), ask=command.ask)))
        self.effects.append(Answer(command, outcome))

    def decide_again(self, told: CommandOutcome[C]) -> None:
        """Decide a command again, before all others."""
        self.waiting.insert(0, told)

    def drop(self, command: C) -> None:
        """Finish a command that has no new effect."""
        self._answer(command, Accepted(recorded=()))

    # --- what can't be recorded, and a store that is away

    def _not_storable(self, told: CommandOutcome[C], error: NotStorable) -> None:
        told = replace(told, asked=None)
        instead = self._deciding.unstorable(told.command, error)
        if isinstance(instead, Refused):
            self._answer(told.command, instead)
        elif instead is None:
            self.effects.append(Failed(error, told))
        else:
            self.waiting.insert(0, CommandOutcome(instead))

    def store_away(self, told: CommandOutcome[C], error: Exception) -> None:
        """Refuse to waiting callers; repeat the store request for all other commands."""
        self._world.reports.store_away(error, stream=self.stream)
        if _is_waited_for(told.command):
            refused = Refused(code="unavailable", error=f"the store is unavailable: {error}")
            self._answer(told.command, refused)
            return
        now = self._world.time.clock.monotonic()
        # Counted for each command by itself: trouble that is long over must not shorten the patience with the next.
        since = now if told.away_since is None else told.away_since
        limit_ms = milliseconds(self._world.limits.runs.store_retry_max_seconds)
        if told.command.is_given_up and 0 < limit_ms < round((now - since) * 1000):
            self.effects.append(Abandoned(told.command))
            return
        self._ask_store_later(replace(told, away_since=since))

    def _ask_store_later(self, told: CommandOutcome[C] | None) -> None:
        if told is not None:
            same = next((number for number, one in self.put_off.items() if one.command == told.command), None)
            if same is not None:
                # Each reading of the stream may take the same once more, and that many would all ask at once. What was decided
                # last holds: the log may have what was decided before, and have gone on.
                self.put_off[same] = replace(told, away_since=self.put_off[same].away_since)
                return
        self._last_number += 1
        number = self._last_number
        if told is not None:
            self.put_off[number] = told
        self.effects.append(AskStoreAgain(number))

    def ask_store_again(self, due: StoreDue) -> None:
        """Repeat what the store could not do half a second ago: an append, or else reading the stream."""
        told = self.put_off.pop(due.number, None)
        if told is not None:
            self.waiting.append(told)
        elif self._loading:
            self.load()


def answer(command: Command, outcome: Accepted | Refused) -> None:
    """Give a command's outcome to its waiting caller, if there is one."""
    if isinstance(command, Request) and command.answer is not None:
        command.answer(outcome)


def _is_waited_for(command: Command) -> bool:
    """Whether a door or a flow waits for the outcome, and can ask again."""
    return isinstance(command, Request) and command.is_waited_for
