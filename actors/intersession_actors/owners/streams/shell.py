"""The actor around owners of streams: it carries out their effects in order. Base of session actors and managers."""

from collections import deque
from functools import partial
from typing import Final, Generic, TypeVar

import pykka
from msgspec.structs import replace
from pykka._envelope import Envelope

from intersession_actors.owners.chains.ledger import ChainUnread
from intersession_actors.owners.streams.commands import (
    Accepted,
    Appended,
    Ask,
    Command,
    Refused,
    StoreDue,
    StreamLoaded,
    WasRead,
)
from intersession_actors.owners.streams.effects import (
    Abandoned,
    Answer,
    Append,
    AskStoreAgain,
    CommandOutcome,
    DropStopwatch,
    Effect,
    Failed,
    Load,
    Loaded,
    Pass,
    Read,
    ReadBack,
    Report,
    Sleep,
    StartStopwatch,
    StopTimer,
    TellFlow,
    TellSession,
    Unread,
)
from intersession_actors.owners.streams.owner import Owner, answer
from intersession_actors.owners.streams.world import World
from intersession_actors.running.runtime.actor import Handler
from intersession_events.basics.crash_points import crash_point

S = TypeVar("S")
C = TypeVar("C", bound=Command)

_OWNERS: Final = (Answer, Append, AskStoreAgain, Failed, Abandoned, Load, Loaded, Read, ReadBack)
"""What an owner itself asks for: where that fails, its actor does."""
STORE_RETRY_MS: Final = 500
"""How long to wait before the store is asked again for what it could not do."""


RESTARTS: Final = 3
WITHIN_S: Final = 5.0


class Failures:
    """Counts the failures of one actor or one flow: three within five seconds are retried, the fourth is too many."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=RESTARTS + 1)

    def too_many(self, now: float) -> bool:
        """Count one more, at a time of the monotonic clock, and return whether that is too many."""
        self._times.append(now)
        return len(self._times) > RESTARTS and now - self._times[0] <= WITHIN_S


class Shell(Handler, Generic[S, C]):
    """Base of the actors that own streams."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.monotonic = world.time.clock.monotonic

    def slow(self, message: object, seconds: float) -> None:
        """Report a slow handler: all other messages had to wait."""
        self.world.reports.slow_handler(str(self), type(message).__name__, seconds)

    def tell_self(self, command: Command) -> None:
        """Put a message into this actor's own inbox, from any thread."""
        try:
            self.actor_inbox.put(Envelope(command), urgent=True)
        except pykka.ActorDeadError:
            return  # stopped or started again; the log has what matters

    def do(self, owner: Owner[S, C]) -> None:  # noqa: C901, PLR0912 - one case an effect
        """Carry out an owner's effects in order, until it waits for an answer or is done."""
        world, effects = self.world, owner.effects
        while True:
            if not effects:
                if owner.is_busy or not owner.waiting:
                    break
                owner.decide_next()
                continue
            effect = effects.pop(0)
            try:
                match effect:  # the most frequent first
                    case Append():
                        self._append(owner, effect)
                    case TellFlow(command):
                        world.mail.tell_flow(command.stream, command)
                    case DropStopwatch(watch):
                        world.time.stopwatch.forget(*watch)
                    case StartStopwatch(watch):
                        world.time.stopwatch.begin(*watch, at=owner.decided_at)
                    case StopTimer(timer):
                        world.time.timers.cancel(timer)
                    case Sleep():
                        self.set_timer(effect)
                    case TellSession(key, command):
                        world.mail.tell_session(key, command)
                    case Pass(point):
                        crash_point(point)
                    case Answer(command, outcome):
                        self.answered(command, outcome)
                    case _:
                        self.act(owner, effect)
            except Exception as error:
                if isinstance(effect, _OWNERS):
                    raise
                # What an event asks for: as if the process had been killed there.
                self.cannot_go_on(owner, error, None)
        if not owner.is_busy:
            self.at_rest(owner)

    def stopped(self, owner: Owner[S, C]) -> None:
        """Tell the waiting doors of an owner that the system stops: an outcome that comes now reaches this actor no more."""
        owner.end(
            "the system stopped, and it is not known whether this is recorded, look, or try again",
            Refused(code="unavailable", error="the system is stopping, try again"),
        )

    def set_timer(self, effect: Sleep) -> None:
        """Set a timer; from any thread. It does not hold this actor: that may be restarted, or asleep, when it fires."""
        mail, time, then = self.world.mail, self.world.time, effect.then
        after_ms = effect.after_ms
        for number, one in enumerate(effect.until):
            left_ms = one.lasts_ms - time.stopwatch.elapsed_ms(*one.watch, since_ms=one.since_ms)
            after_ms = min(after_ms, left_ms) if number else left_ms

        def fire() -> None:
            if isinstance(then, TellFlow):
                mail.tell_flow(then.command.stream, then.command)
            else:
                mail.tell_session(then.key, then.command)

        time.timers.after(after_ms, effect.timer, fire)

    def _append(self, owner: Owner[S, C], append: Append) -> None:
        stream, asked, ask, tell = owner.stream, append.asked, append.ask, self.tell_self
        in_flight = self.world.log.append(
            asked.appends,
            lambda outcome: tell(Appended(stream=stream, outcome=outcome, ask=ask)),
            patient=asked.ahead is not None,
            behind=append.behind,
        )
        if (ended := asked.ahead) is not None:
            owner.in_flight = in_flight
            self.world.mail.tell_flow(ended.stream, replace(ended, behind=in_flight))

    def _read(self, stream: str, unread: Unread, ask: Ask) -> None:
        world, tell = self.world, self.tell_self
        if isinstance(unread, ChainUnread):
            root = unread.root
            world.mail.on_disk(
                lambda: world.chains.read(root),
                lambda found: tell(WasRead(stream=stream, ask=ask, found=found)),
            )
        else:
            run_id = unread.run_id
            world.mail.on_disk(
                lambda: world.mail.texts_of(run_id),
                lambda found: tell(WasRead(stream=stream, ask=ask, found=found, run_id=run_id)),
            )

    # --- what each kind of actor does in its own way

    def act(self, owner: Owner[S, C], effect: Effect) -> None:
        """Carry out an effect of this actor's own kind; here, the rare ones of all actors."""
        world, stream = self.world, owner.stream
        match effect:
            case Load(ask):
                self.load(stream, ask)
            case Loaded():
                self.loaded(owner)
            case ReadBack():
                self.read_back(owner)
            case Abandoned(command):
                self.give_up(owner, command)
            case Failed(error, told):
                self.cannot_go_on(owner, error, told)
            case Read(unread, ask):
                self._read(stream, unread, ask)
            case AskStoreAgain(number):
                due = partial(self.tell_self, StoreDue(stream=stream, number=number))
                world.time.timers.after(STORE_RETRY_MS, ("store", stream, str(number)), due)
            case Report(kind, fields, caused):
                world.reports.tell(kind, inside=world.inside(caused), **fields)
            case _:
                raise NotImplementedError(type(effect).__name__)

    def answered(self, command: C, outcome: Accepted | Refused) -> None:
        """Tell the waiting caller of a command its outcome."""
        answer(command, outcome)

    def load(self, stream: str, ask: Ask) -> None:
        """Have a stream read."""
        tell = self.tell_self
        self.world.log.load(
            stream, lambda recorded: tell(StreamLoaded(stream=stream, recorded=recorded, ask=ask))
        )

    def loaded(self, owner: Owner[S, C]) -> None:
        """Continue from the stream that was read."""
        raise NotImplementedError

    def read_back(self, owner: Owner[S, C]) -> None:
        """Have missed effects carried out."""
        raise NotImplementedError

    def give_up(self, owner: Owner[S, C], command: C) -> None:
        """Drop a command for which the store was away too long."""

    def cannot_go_on(self, owner: Owner[S, C], error: Exception, told: CommandOutcome[C] | None) -> None:
        """Handle an owner that can't go on."""
        raise NotImplementedError

    def at_rest(self, owner: Owner[S, C]) -> None:
        """Do what is due when nothing waits and nothing is in progress."""
        raise NotImplementedError
