"""The effects of a delivery's events, and those that an open delivery repeats after a restart. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_actors.outside.channels.channels import Outbound
from intersession_actors.outside.channels.turns import Place
from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.delivery.commands import RetryDue, SendChecked, TooOld
from intersession_actors.owners.delivery.rules import Delivery, ended_of
from intersession_actors.owners.streams.effects import (
    AttemptDue,
    DropStopwatch,
    Effect,
    Pass,
    Report,
    Sleep,
    StartStopwatch,
    StopTimer,
    TellFlow,
    Until,
)
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.policy.sending import Verdict
from intersession_actors.running.failures.failure import FailureKind
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.recorded import Recorded

_ANSWER: Final = Verdict(action="allow", rule="the answer to an owner's command: allow")


class LineUp(Effect, frozen=True):
    """Enter the text into the order of its place again, by the position of its decision (ANN-5)."""

    place: Place
    order: int


class WaitsAgain(Effect, frozen=True):
    """The text failed and will be retried: those behind it wait for that."""


class LeaveLine(Effect, frozen=True):
    """The text is finished, or has no channel here."""


class GiveBackSeat(Effect, frozen=True):
    """Free the channel's seat that was reserved for the text, if there is one."""


class AskPolicy(Effect, frozen=True):
    """Ask the session whether its texts may go out now (ANN-4)."""

    session_key: str
    channel: str
    after: int


class AttemptRecorded(Effect, frozen=True):
    """An attempt's outcome is recorded."""

    key: str
    attempt: int


class CallChannel(Effect, frozen=True):
    """Call the channel with the text, from `begins` on. `draft` is the run whose unfinished answer it may have (STREAM-5)."""

    outbound: Outbound
    attempt: int
    begins: int
    caused: CausedBy | None
    files: tuple[facts.FileBlock, ...] = ()
    draft: str | None = None


def effects(  # noqa: C901 - one case an event
    state: Delivery, recorded: Recorded, limits: Config
) -> Sequence[Effect]:
    """Return the effects of a durable event; `state` is the delivery after it."""
    event, stream = recorded.event, recorded.stream
    if not isinstance(event, facts.DeliveryEvent):
        return ()
    match event:
        case facts.DeliveryDecided():
            return Pass("A3"), ask_policy(state)
        case facts.DeliveryRetried():
            # It waits for its channel as a new one does.
            return StartStopwatch(("decided", stream)), line_up(state), ask_policy(state)
        case facts.DeliveryStarted():
            return Pass("A5"), StopTimer(("parked", stream)), call(state, recorded.id, event.attempt)
        case facts.DeliveryPartDone(attempt=attempt):
            key = state.decided.key
            return (
                AttemptRecorded(key, state.attempt),
                AttemptDue(key, attempt),
                call(state, recorded.id, attempt),
            )
        case facts.DeliveryFailed(retry_at_ms=int()):
            return (
                report("delivery_retry", state, recorded.id, event.error, **_more(event)),
                AttemptRecorded(state.decided.key, state.attempt),
                WaitsAgain(),
                StartStopwatch(("failed", stream)),
                *_retry(state, limits),
            )
        case facts.DeliveryFailed():
            failed = report("delivery_failed", state, recorded.id, event.error, **_more(event))
            return failed, *_over(state, recorded)
        case facts.DeliveryUnknown(error=error):
            said = "" if error is None else f" ({error})"
            doubt = f"the channel may have shown the text{said}"
            return report("delivery_unknown", state, recorded.id, doubt), *_over(state, recorded)
        case facts.DeliveryDenied():
            denied = report("delivery_denied", state, recorded.id, event.rule)
            return denied, *_over(state, recorded)
        case facts.DeliveryDone() | facts.DeliveryWithheld():
            return _over(state, recorded)


def carried_on(state: Delivery, cause: str | None, limits: Config, *, sealed: bool) -> Sequence[Effect]:
    """Return the effects of an open delivery after a restart; the outcome of an interrupted attempt is decided separately."""
    match state.phase:
        case "decided":
            return line_up(state), ask_policy(state)
        case "failed" if sealed:
            return (ask_policy(state),)
        case "failed":
            return line_up(state), *_retry(state, limits)
        case "started":
            return (line_up(state),)
        case "final":
            return LeaveLine(), *_told(state, cause)


def parked(state: Delivery, limits: Config) -> Sequence[Effect]:
    """Return the effects of a text whose channel is missing: it waits like a run for its agent, but not for ever."""
    given_up = TellFlow(TooOld(stream=_stream(state)))
    age = _age(state, limits)
    return LeaveLine(), *(Sleep(("parked", _stream(state)), given_up, until=(one,)) for one in age)


def line_up(state: Delivery) -> LineUp:
    """Return the effect that orders a text behind those that were decided before it."""
    return LineUp(Place.of(state.decided.route), state.order)


def ask_policy(state: Delivery) -> Effect:
    """Return the effect that asks whether the text may go out now.

    The answer to an owner's command is the system's word, so `/send off` is answered too (INB-3).
    """
    decided, after = state.decided, state.attempt
    if decided.purpose == "command_reply":
        return TellFlow(SendChecked(stream=_stream(state), verdict=_ANSWER, after=after))
    return AskPolicy(decided.session_key, decided.route.channel, after)


def call(state: Delivery, started: str | None, attempt: int) -> CallChannel:
    """Return the effect that calls the channel; `started` is the event that it follows from."""
    decided, route = state.decided, state.decided.route
    outbound = Outbound(
        channel=route.channel,
        to=route.to,
        thread=route.thread,
        account=route.account,
        text=decided.text,
        key=decided.key,
        receipt=None if decided.edits is None else msgspec.json.decode(decided.edits),
    )
    draft = None if decided.edits is None else decided.run_id
    return CallChannel(outbound, attempt, state.sent, _caused(state, started, attempt), decided.files, draft)


def report(kind: FailureKind, state: Delivery, cause: str | None, error: str, **more: object) -> Report:
    """Return the report of a delivery to the operator."""
    decided = state.decided
    fields = {
        "session_key": decided.session_key,
        "run_id": decided.run_id,
        "stream": _stream(state),
        "channel": decided.route.channel,
        "attempt": state.attempt or None,
        "error": error,
    }
    return Report(kind, fields | more, _caused(state, cause))


def _more(failed: facts.DeliveryFailed) -> dict[str, object]:
    return {"retry_at_ms": failed.retry_at_ms, "traceback": failed.traceback}


def _over(state: Delivery, recorded: Recorded) -> Sequence[Effect]:
    return (
        Pass("A7"),
        AttemptRecorded(state.decided.key, state.attempt),
        LeaveLine(),
        DropStopwatch(("decided", recorded.stream)),
        DropStopwatch(("failed", recorded.stream)),
        *_told(state, recorded.id),
    )


def _told(state: Delivery, cause: str | None) -> Sequence[Effect]:
    ended = ended_of(state, cause)
    return () if ended is None else (TellFlow(ended),)


def _retry(state: Delivery, limits: Config) -> Sequence[Effect]:
    if state.retry_at_ms is None:
        return ()
    stream = _stream(state)
    pause = Until(("failed", stream), state.retry_at_ms - state.pause_ms, state.pause_ms)
    due = TellFlow(RetryDue(stream=stream, attempt=state.attempt))
    # It is given up on time, however long the pause.
    return (Sleep(("retry", stream), due, until=(pause, *_age(state, limits))),)


def _age(state: Delivery, limits: Config) -> Sequence[Until]:
    longest_ms = milliseconds(limits.deliveries.max_age_seconds)
    return (Until(("decided", _stream(state)), state.decided_ms, longest_ms),) if longest_ms else ()


def _caused(state: Delivery, event: str | None, attempt: int | None = None) -> CausedBy | None:
    """Return what code of the host's is called for because of a delivery: it goes on with the delivery's chain (LOOP-5)."""
    decided = state.decided
    if decided.budget is None:
        return None
    return CausedBy(
        session_key=decided.session_key,
        budget=decided.budget,
        event=event,
        of=None if attempt is None else decided.delivery_id,
        attempt=attempt or 1,
    )


def _stream(state: Delivery) -> str:
    return ids.delivery_stream(state.decided.delivery_id)
