"""The rules of a delivery: decided, started, done with a receipt, or failed and tried again (ANN-3).

No threads, no clock, no store. It is tried until it is too old, with pauses that grow. One idempotency key serves all attempts;
a channel that does not take it is never called again once it is in doubt whether it has shown the text.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from intersession_actors.outside.channels.outcomes import Delivered, NotDelivered
from intersession_actors.owners.delivery.commands import (
    DeliveryCommand,
    DeliveryReturned,
    GiveUpDelivery,
    RetryDelivery,
    RetryDue,
    SendChecked,
    TooOld,
)
from intersession_actors.owners.streams.commands import DeliveryEnded, Refused, Resume
from intersession_actors.owners.streams.strays import foreign
from intersession_actors.rules.policy.sending import Verdict
from intersession_events import facts
from intersession_events.log.recorded import Recorded

FIRST_RETRY_MS: Final = 1_000
RETRY_FACTOR: Final = 4
LONGEST_RETRY_MS: Final = 300_000
"""No pause that follows from the number of attempts is longer. What a channel asks for may be."""
GIVEN_UP: Final = "given up by "
"""How the error of a delivery begins that somebody gave up."""
MOST_CUT_OFF: Final = 5
"""The number of consecutive attempts during which the process ended: then the delivery counts as the cause."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a delivery. `retry_at_ms` is set while it waits for a retry, after a pause of `pause_ms`.

    `decided_ms` is when it was decided, or last wanted once more, `order` where in the log. `sent` is how many characters of
    the text the channel has, `cut_off` how many attempts in a row have no outcome, the one under way among them.
    """

    decided: facts.DeliveryDecided
    decided_ms: int
    order: int = 0
    phase: Literal["decided", "started", "failed", "final"] = "decided"
    outcome: Literal["done", "failed", "unknown", "denied", "withheld"] | None = None
    attempt: int = 0
    retry_at_ms: int | None = None
    pause_ms: int = 0
    note: str | None = None
    sent: int = 0
    cut_off: int = 0


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the world that a decision needs.

    `sealed`: nothing goes to the channel in this fork. `has_channel`: somebody delivers for it here. `too_old_s` is how old a text
    may get, in seconds, where this one is older. `cut_off`: nobody makes the attempt under way any more. `idempotent`: the channel
    takes the same key twice. `now_ms` is when an attempt came back that may be made again.
    """

    sealed: bool = False
    has_channel: bool = True
    too_old_s: int = 0
    cut_off: bool = False
    idempotent: bool = False
    now_ms: int = 0


def evolve(  # noqa: C901 - one case an event
    state: Delivery | None, event: facts.DeliveryEvent, time_ms: int, position: int = 0
) -> Delivery:
    """Apply one recorded event of the delivery's stream."""
    if isinstance(event, facts.DeliveryDecided):
        return Delivery(decided=event, decided_ms=time_ms, order=position)
    if state is None:
        raise ValueError(f"a delivery can't begin with {type(event).__name__}")
    replace = msgspec.structs.replace
    match event:
        case facts.DeliveryStarted():
            return replace(
                state,
                phase="started",
                attempt=event.attempt,
                retry_at_ms=None,
                cut_off=state.cut_off + 1 if state.phase == "started" else 1,
            )
        case facts.DeliveryPartDone():
            return replace(state, sent=event.sent, cut_off=1)
        case facts.DeliveryDone():
            return replace(state, phase="final", outcome="done", note=event.receipt)
        case facts.DeliveryFailed(retry_at_ms=int() as retry_at_ms):
            return replace(
                state,
                phase="failed",
                retry_at_ms=retry_at_ms,
                pause_ms=retry_delay_ms(event.attempt) if event.later_ms is None else event.later_ms,
                note=event.error,
            )
        case facts.DeliveryFailed():
            return replace(state, phase="final", outcome="failed", note=event.error)
        case facts.DeliveryUnknown():
            return replace(state, phase="final", outcome="unknown", note="delivery_unknown")
        case facts.DeliveryDenied():
            return replace(state, phase="final", outcome="denied", note=event.rule)
        case facts.DeliveryWithheld():
            return replace(state, phase="final", outcome="withheld", note=f"would deliver to {event.channel}")
        case facts.DeliveryRetried():
            return replace(
                state,
                phase="failed",
                outcome=None,
                retry_at_ms=time_ms,
                pause_ms=0,
                note=None,
                decided_ms=time_ms,
                order=position,
            )


def fold(state: Delivery | None, recorded: Recorded) -> Delivery:
    """Apply one event as it was recorded."""
    if not isinstance(recorded.event, facts.DeliveryEvent):
        raise foreign(recorded)
    return evolve(state, recorded.event, recorded.time, recorded.position)


def decide(
    state: Delivery, command: DeliveryCommand, now: Circumstances
) -> list[facts.DeliveryEvent] | Refused:
    """Return the events of a command; none for an outdated one, or one that has to wait."""
    match command:
        case SendChecked():
            return _checked(state, command, now)
        case DeliveryReturned():
            return _returned(state, command, now)
        case TooOld():
            return _given_up(state, now.too_old_s) if now.cut_off else []
        case RetryDelivery():
            return decide_retried(state, command.by)
        case GiveUpDelivery():
            return decide_given_up(state, command.by, cut_off=now.cut_off)
        case RetryDue():
            return []
        case Resume():
            return _resumed(state, now)


def _checked(state: Delivery, checked: SendChecked, now: Circumstances) -> list[facts.DeliveryEvent]:
    verdict = checked.verdict
    if checked.after != state.attempt:
        return []  # asked twice, before an attempt that has been made meanwhile
    if verdict.allowed and now.sealed:
        return decide_withheld(state, verdict.rule)
    if verdict.allowed and state.phase != "final":
        if now.too_old_s:
            return _given_up(state, now.too_old_s)
        if not now.has_channel:
            return []
    return decide_checked(state, verdict)


def _returned(state: Delivery, returned: DeliveryReturned, now: Circumstances) -> list[facts.DeliveryEvent]:
    attempt, begins = returned.attempt, returned.begins
    if begins != state.sent:
        return []  # it is of an earlier part, and on record
    match returned.result:
        case Delivered(receipt=receipt, sent=int(sent)):
            return decide_part_done(state, attempt, begins, sent, receipt)
        case Delivered(receipt=receipt):
            return decide_done(state, attempt, receipt)
        case NotDelivered() as failed:
            return decide_not_done(state, attempt, failed, now_ms=now.now_ms)


def _resumed(state: Delivery, now: Circumstances) -> list[facts.DeliveryEvent]:
    if state.phase != "started":
        return []
    if now.sealed:
        return decide_withheld(state, None)  # what the source's channel did with it is not the fork's
    if now.too_old_s:
        return _given_up(state, now.too_old_s)
    if not now.has_channel:
        return []  # whether it may be asked again is for the channel to say
    return decide_resume(state, idempotent=now.idempotent)


def _given_up(state: Delivery, seconds: int) -> list[facts.DeliveryEvent]:
    channel = state.decided.route.channel
    error = f"channel {channel!r} did not take it within {seconds} s (deliveries.maxAgeSeconds)"
    return decide_too_old(state, error=error)


def decide_checked(state: Delivery, verdict: Verdict) -> list[facts.DeliveryEvent]:
    """Return the events of the send policy's verdict (POL-3): a denial, or the next attempt."""
    if state.phase not in {"decided", "failed"}:
        return []
    delivery_id = state.decided.delivery_id
    if not verdict.allowed:
        return [facts.DeliveryDenied(delivery_id=delivery_id, rule=verdict.rule)]
    return [facts.DeliveryStarted(delivery_id=delivery_id, attempt=state.attempt + 1, rule=verdict.rule)]


def decide_withheld(state: Delivery, rule: str | None) -> list[facts.DeliveryEvent]:
    """Return the end of a delivery in a fork whose channels are sealed: it would be delivered (FORK-5)."""
    if state.phase == "final":
        return []
    decided = state.decided
    return [facts.DeliveryWithheld(delivery_id=decided.delivery_id, channel=decided.route.channel, rule=rule)]


def decide_done(state: Delivery, attempt: int, receipt: str | None) -> list[facts.DeliveryEvent]:
    """Return the end of a delivery that the channel took."""
    if state.phase != "started" or state.attempt != attempt:
        return []
    return [facts.DeliveryDone(delivery_id=state.decided.delivery_id, attempt=attempt, receipt=receipt)]


def decide_part_done(
    state: Delivery, attempt: int, begins: int, sent: int, receipt: str | None
) -> list[facts.DeliveryEvent]:
    """Return the events of a part that the channel took: it began behind `begins` characters, and more follow behind `sent`."""
    if state.phase != "started" or state.attempt != attempt or state.sent != begins:
        return []
    return [
        facts.DeliveryPartDone(
            delivery_id=state.decided.delivery_id, attempt=attempt, sent=sent, receipt=receipt
        )
    ]


def retry_delay_ms(attempt: int) -> int:
    """Return the pause after a failed attempt, if its channel does not name one."""
    delay = FIRST_RETRY_MS
    for _ in range(attempt - 1):
        delay = min(delay * RETRY_FACTOR, LONGEST_RETRY_MS)
        if delay == LONGEST_RETRY_MS:
            break
    return delay


def decide_not_done(
    state: Delivery, attempt: int, failed: NotDelivered, *, now_ms: int
) -> list[facts.DeliveryEvent]:
    """Return the events of a failed attempt: a later retry, the end, or doubt.

    In doubt the channel may have shown it. Only one that takes a key twice may be asked again then.
    """
    if state.phase != "started" or state.attempt != attempt:
        return []
    if failed.in_doubt and not failed.retry:
        return [
            facts.DeliveryUnknown(delivery_id=state.decided.delivery_id, attempt=attempt, error=failed.error)
        ]
    again = failed.retry
    later_ms = failed.later_ms if again else None
    pause_ms = retry_delay_ms(attempt) if later_ms is None else later_ms
    return [
        facts.DeliveryFailed(
            delivery_id=state.decided.delivery_id,
            attempt=attempt,
            error=failed.error,
            retry_at_ms=now_ms + pause_ms if again else None,
            traceback=failed.traceback,
            failed_ms=now_ms if again else None,
            later_ms=later_ms,
        )
    ]


def decide_resume(state: Delivery, *, idempotent: bool) -> list[facts.DeliveryEvent]:
    """Return the outcome of an attempt that was interrupted between call and receipt (crash points A5, A6).

    A text that ends the process each time it goes out is not sent for ever.
    """
    if state.phase != "started":
        return []
    if idempotent and state.cut_off >= MOST_CUT_OFF:
        error = f"cut off in the middle of attempt {state.attempt}, the last one"
        return [
            facts.DeliveryFailed(delivery_id=state.decided.delivery_id, attempt=state.attempt, error=error)
        ]
    if idempotent:
        return [facts.DeliveryStarted(delivery_id=state.decided.delivery_id, attempt=state.attempt + 1)]
    return [facts.DeliveryUnknown(delivery_id=state.decided.delivery_id, attempt=state.attempt)]


def decide_retried(state: Delivery, by: str) -> list[facts.DeliveryEvent] | Refused:
    """Return the events of the operator's retry: one more attempt, whatever the earlier outcomes (ANN-3)."""
    if state.outcome == "done":
        return Refused(
            code="invalid_request", error="deliveryId: it was delivered, send it anew if you mean to"
        )
    if state.phase == "started":
        return Refused(
            code="busy", error="deliveryId: it is being delivered right now, wait what comes of it"
        )
    return [facts.DeliveryRetried(delivery_id=state.decided.delivery_id, by=by)]


def decide_given_up(state: Delivery, by: str, *, cut_off: bool) -> list[facts.DeliveryEvent] | Refused:
    """Return the end of a delivery that is given up on request; `cut_off`: its last attempt was interrupted."""
    if state.phase == "final":
        return Refused(code="invalid_request", error="deliveryId: it is over already")
    if state.phase == "started" and not cut_off:
        return Refused(
            code="busy", error="deliveryId: it is being delivered right now, wait what comes of it"
        )
    return decide_too_old(state, error=f"{GIVEN_UP}{by}")


def decide_too_old(state: Delivery, *, error: str) -> list[facts.DeliveryEvent]:
    """Return the end of a delivery whose channel did not come in time: the text is outdated.

    One that a crash cut off in the middle of a call may have been shown, so it ends in doubt.
    """
    match state.phase:
        case "decided" | "failed":
            return [
                facts.DeliveryFailed(
                    delivery_id=state.decided.delivery_id, attempt=state.attempt, error=error
                )
            ]
        case "started":
            return [facts.DeliveryUnknown(delivery_id=state.decided.delivery_id, attempt=state.attempt)]
        case "final":
            return []


def ended_of(state: Delivery, cause: str | None) -> DeliveryEnded | None:
    """Return the message to the flow that waits for a delivery; None while it is open, or if no flow waits."""
    owner = state.decided.owner
    if owner is None or state.outcome is None:
        return None
    return DeliveryEnded(
        stream=owner,
        delivery_id=state.decided.delivery_id,
        outcome=state.outcome,
        note=state.note if state.outcome != "done" else None,
        cause=cause,
    )


def ended_in(stream: Iterable[Recorded]) -> DeliveryEnded | None:
    """Return the message to a delivery's flow, from its whole stream; None while it is open."""
    state: Delivery | None = None
    cause: str | None = None
    for recorded in stream:
        state, cause = fold(state, recorded), recorded.id
    return ended_of(state, cause) if state is not None else None
