"""Stand-ins for the outside world in a replay: agents, channels, timers and a clock that give what was recorded."""

from collections.abc import Callable, Sequence
from typing import Final, cast

from intersession_actors.agents import Results
from intersession_actors.channels import (
    Attempts,
    DeliveryResult,
    NotDelivered,
    Outbound,
    ThreadOpened,
    ThreadWanted,
)
from intersession_actors.failures import FailureKind, Reports
from intersession_actors.holding import GoingOn, Ruling
from intersession_actors.policy import Reckoned
from intersession_actors.prompt import RunContext
from intersession_actors.replaying.recording import Recording
from intersession_actors.replaying.refusals import Refusals
from intersession_actors.runtime import Fire, Handler, Key, handled_here
from intersession_actors.session import ContextCache, Running
from intersession_events import facts
from intersession_events.errors import Sealed
from intersession_events.facts import Message, RunQueued
from intersession_events.ids import session_stream
from intersession_events.log import Log, Recorded

WEBCHAT: Final = "webchat"


class RecordedClock:
    """Whatever the time is for whom: what the next event of the stream that an actor works on says of the clock, or when it was recorded."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._at_hand: tuple[object, object] = (None, None)
        self._moment = 0.0

    def now_ms(self) -> int:
        """Return the time at which the next event of the stream at hand was decided, as far as that is known.

        Raises:
            Sealed: no actor asks.
        """
        stream = stream_at_hand()
        if handled_here() is None:
            raise Sealed("the replay", "the time")
        said = self._recording.clock_ahead(stream)
        return self._logged_ms(stream) if said is None else said

    def _logged_ms(self, stream: str) -> int:
        coming = self._recording.ahead(stream)
        return coming.time if coming is not None else self._recording.times.get(stream, 0)

    def monotonic(self) -> float:
        """Return the log's time in seconds, the same for all that is done on one message: it never goes back."""
        actor = cast("Handler | None", handled_here())  # there are no others in a replay
        at_hand = (actor, None if actor is None else actor.actor_inbox.current)
        if self._at_hand[0] is not at_hand[0] or self._at_hand[1] is not at_hand[1]:
            self._at_hand, self._moment = at_hand, self._logged_ms(stream_at_hand()) / 1000
        return self._moment


def stream_at_hand() -> str:
    """Return the stream on which an actor works right now; empty if none does."""
    actor = cast("Handler | None", handled_here())  # there are no others in a replay
    return "" if actor is None else _stream_of(actor)


def _stream_of(actor: Handler) -> str:
    key = getattr(actor, "key", None)
    if isinstance(key, str):
        return session_stream(key)
    current = actor.actor_inbox.current
    return str(getattr(current.message if current is not None else None, "stream", ""))


class NoTimers:
    """Timers that never fire: what a timer led to is fed as a command."""

    def after(self, delay_ms: int, key: Key, fire: Fire) -> None:
        """Do nothing."""

    def cancel(self, key: Key) -> None:
        """Do nothing."""


class RecordedAgents:
    """The agents: asked, they say nothing; what they answered is fed."""

    closing = False

    def __init__(self, recording: Recording) -> None:
        self.results = Results()
        self.left_behind: tuple[str, int] | None = None
        """The attempt that an earlier process had begun and left behind: nobody works on it."""
        self._recording = recording

    def has(self, agent_id: str) -> bool:
        """Whether the agent was here: what was decided shows it."""
        ahead = self._recording.append_ahead(stream_at_hand())
        match [item.event for item in ahead]:
            case [facts.ExchangeReleased()]:
                return False  # else it would have gone on
            case [*_, facts.ExchangeHeld(next_end=str(reason))]:
                return reason != "no_agent"
            case [
                *_,
                facts.ExchangeHeld(step="reply", next_turn=None),
            ]:  # which did not say why nothing follows
                return self._recording.has_come(agent_id)
            case events:
                return not any(
                    isinstance(event, facts.LoopEnded) and event.reason == "no_agent" for event in events
                )

    def window(self, agent_id: str, run_id: str, attempt: int) -> Reckoned:
        """Return what was reckoned with when an attempt began; logs written before do not say it."""
        del agent_id
        for item in self._recording.of_run(run_id):
            if isinstance(item.event, facts.RunStarted) and item.event.attempt == attempt:
                return Reckoned(item.event.context_tokens, item.event.room)
        return Reckoned(None, None)

    def resumes(self, agent_id: str) -> bool:
        """Say no: each attempt is given what was recorded of it, from its beginning on."""
        del agent_id
        return False

    def start(
        self, turn: tuple[str, int], done: object, late: object = None, *, inside: object = None
    ) -> None:
        """Take note that an agent is called."""
        del done, late, inside
        self.results.called(*turn)

    def cancel(self, run_id: str) -> None:
        """Do nothing: nobody works."""

    def is_running(self, run_id: str, attempt: int) -> bool:
        """Say yes, unless it was left behind: whatever is under way comes back as it did."""
        return (run_id, attempt) != self.left_behind


def turn_of(
    *,
    agent_id: str,
    key: str,
    running: Running,
    context: RunContext,
    opened: facts.SessionOpened | None,
) -> tuple[str, int]:
    """Return which attempt is called: nobody needs more of a turn."""
    del agent_id, key, context, opened
    return running.waiting.queued.run_id, running.attempt


class RecordedChannels:
    """The channels: asked, they say nothing; their receipts are fed."""

    def __init__(self, recording: Recording) -> None:
        self.deliveries: Attempts[DeliveryResult] = Attempts()
        self.threads: Attempts[ThreadOpened | NotDelivered] = Attempts()
        self.turns = EachItsTurn()
        self._recording = recording

    def forget_attempt(self, delivery: Sequence[Recorded]) -> None:
        """Know nothing any more of the last attempt of a delivery: the process that made it is gone."""
        decided = delivery[0].event if delivery else None
        started = [item.event.attempt for item in delivery if isinstance(item.event, facts.DeliveryStarted)]
        if isinstance(decided, facts.DeliveryDecided) and started:
            self.deliveries.recorded(decided.key, started[-1])

    def has(self, name: str) -> bool:
        """Whether somebody delivered for the channel: what was decided shows it."""
        if name != WEBCHAT:
            return True  # a text that nobody took was not decided upon
        ahead = self._recording.append_ahead(stream_at_hand())
        return any(
            isinstance(item.event, facts.AnnounceDecided) and item.event.delivery_id is not None
            for item in ahead
        )

    def idempotent(self, name: str) -> bool:
        """Whether the channel takes a key twice: what became of an attempt that was cut off shows it."""
        del name
        coming = self._recording.ahead(stream_at_hand())
        return coming is not None and isinstance(coming.event, facts.DeliveryStarted | facts.DeliveryFailed)

    def has_threads(self, name: str) -> bool:
        """Say yes: who asked for a thread had asked that before."""
        del name
        return True

    def keep_seat(self, name: str, seat: str, free: object) -> bool:
        """Keep a seat: there are enough."""
        del name, seat, free
        return True

    def give_back_seat(self, seat: str) -> None:
        """Do nothing."""

    def start(self, name: str, outbound: Outbound, done: object, *, attempt: int = 1, **rest: object) -> None:
        """Take note that a channel is called."""
        del name, done, rest
        self.deliveries.begin(outbound.key, attempt)

    def open_thread(self, name: str, wanted: ThreadWanted, done: object, **rest: object) -> None:
        """Take note that a channel is asked for a thread."""
        del name, done, rest
        self.threads.begin(wanted.key, 1)


class EachItsTurn:
    """Whose turn it is: that of each text, when what became of it is fed."""

    def enter(self, place: object, key: str, order: int) -> None:
        """Do nothing."""

    def take(self, place: object, key: str, order: int, free: object) -> bool:
        """Say yes."""
        del place, key, order, free
        return True

    def waits(self, key: str) -> bool:
        """Say no."""
        del key
        return False

    def failed(self, key: str) -> None:
        """Do nothing."""

    def over(self, key: str, *, arrived: bool = False) -> None:
        """Do nothing."""


class RecordedRule:
    """The rule of the host's for what is held: it says what it said. One that held only what a refusal led to had let go on before."""

    def __init__(self, recording: Recording, refusals: Refusals) -> None:
        self._recording = recording
        self._refusals = refusals

    def rules_on(
        self,
        hold_id: str,
        stream: str,
        going: GoingOn,
        done: Callable[[Ruling], None],
        *,
        inside: object = None,
    ) -> None:
        """Say whether the text was held."""
        del hold_id, going, inside
        ahead = (item.event for item in self._recording.append_ahead(stream))
        held = next((event for event in ahead if isinstance(event, facts.ExchangeHeld)), None)
        if held is None or self._refusals.come_before(stream, held):
            done(Ruling(holds=False))
        else:
            done(Ruling(holds=True, note=held.note))


class RecordedContexts(ContextCache):
    """The contexts of runs, each when its run was recorded to start: then the transcript is as its agent was given it."""

    def __init__(self, log: Log, recording: Recording) -> None:
        super().__init__(log)
        self._recording = recording
        self.wanted: list[tuple[str, str, Callable[[], None]]] = []
        """Contexts that are asked for: of which session and run, and how it is read."""

    def read(
        self,
        key: str,
        run_id: str,
        on_context: Callable[[RunContext | Exception], None],
        *,
        version: int,
        room: int | None = None,
    ) -> None:
        """Have a context read when its turn has come."""
        read = super().read
        self.wanted.append((key, run_id, lambda: read(key, run_id, on_context, version=version, room=room)))

    def at(self, key: str, run_id: str, version: int, room: int | None = None) -> RunContext | None:
        """Return a context if its run starts next."""
        return super().at(key, run_id, version, room) if self.starts(key, run_id) else None

    def ahead(
        self, key: str, queued: RunQueued, message: Message, *, at: int, version: int, room: int | None = None
    ) -> RunContext | None:
        """Return the context of a run that starts in the append that queues it, where it did."""
        start = self._recording.at(session_stream(key), version + 1)
        said = self._recording.at(session_stream(key), self._recording.message_version(key, message.id) or 0)
        asked = self._recording.at(session_stream(key), version)
        if start is None or said is None or asked is None:
            return None
        if not isinstance(start.event, facts.RunStarted) or start.event.run_id != queued.run_id:
            return None
        if (start.time, start.causation, start.position) != (asked.time, asked.id, asked.position + 1):
            return None  # it started later
        if isinstance(said.event, facts.MessageRecorded) and isinstance(asked.event, RunQueued):
            # What was recorded is what the agent was given, also where a time of it differs from now.
            queued, message = asked.event, said.event.message
        return super().ahead(key, queued, message, at=at, version=version, room=room)

    def starts(self, key: str, run_id: str) -> bool:
        """Whether the next event of a session decides on the start of a run."""
        return self._next(key) == run_id

    def starts_any(self, key: str) -> bool:
        """Whether the next event of a session decides on the start of any run."""
        return self._next(key) is not None

    def _next(self, key: str) -> str | None:
        coming = self._recording.ahead(session_stream(key))
        match coming.event if coming is not None else None:
            case facts.RunStarted() as started:
                return started.run_id
            case facts.RunFailed(code="limit") as failed:
                return failed.run_id
            case _:
                return None


def is_session(stream: str) -> bool:
    """Whether a stream is a session's."""
    return stream.startswith("session:")


class NoReports(Reports):
    """Tells nobody: what went wrong then was told then."""

    def tell(self, kind: FailureKind, **fields: object) -> None:
        """Tell nobody."""
