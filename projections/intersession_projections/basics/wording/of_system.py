"""Events of deliveries and of the log itself in words."""

from collections.abc import Mapping
from typing import Final

from intersession_events import facts
from intersession_events.basics.times import length
from intersession_projections.basics.wording.words import Sides, Words, route_text

_SENDS: Final[Mapping[facts.Purpose, str]] = {
    "announce": "announces",
    "spawn_announce": "announces",
    "failure_notice": "tells that there is no answer",
}


def of_delivery(  # noqa: C901 - one case an event
    event: facts.DeliveryEvent, place: str, sides: Sides
) -> Words:
    """Return an event of a delivery in words; `sides` are whose text it is, and the channel."""
    whose, channel = sides
    text = f"the text of {whose}"
    match event:
        case facts.DeliveryDecided():
            how = _SENDS.get(event.purpose, "sends")
            if event.by is not None:
                how = f"{how}, as {event.by} asks"
            words = Words(event.session_key, route_text(event.route), event.text, how, event.text, "said")
            return words._replace(step=f"a text of {whose} is to go to {channel}")
        case facts.DeliveryStarted():
            return Words(None, None, f"attempt {event.attempt}", step=f"{channel} is given {text}")
        case facts.DeliveryPartDone():
            how = f"Delivered to {place} as far as character {event.sent}."
            receipt = "" if event.receipt is None else f", its receipt: {event.receipt}"
            brief = f"taken as far as character {event.sent}{receipt}"
            return Words(None, None, brief, how, step=f"{channel} has a part of {text}")
        case facts.DeliveryDone():
            how = f"Delivered to {place}."
            receipt = "" if event.receipt is None else f", its receipt: {event.receipt}"
            return Words(None, None, f"taken{receipt}", how, step=f"{channel} has {text}")
        case facts.DeliveryFailed():
            given_up = event.retry_at_ms is None
            brief = "not tried again" if given_up else "to be tried again"
            how = "given up" if given_up else "to be tried again"
            return Words(
                None,
                None,
                f"attempt {event.attempt}, {brief}: {event.error}",
                f"Not delivered to {place}, {how}: {event.error}",
                event.traceback,
                step=f"{channel} has not taken {text}, {how}",
            )
        case facts.DeliveryUnknown(error=error):
            how = "was cut off" if error is None else "is in doubt"
            brief = f"attempt {event.attempt} {how}, the channel may have it" + (
                f": {error}" if error else ""
            )
            whole = f"It is not known whether {place} got it; it is not sent again."
            step = f"{channel} may have {text}, or not"
            return Words(None, None, brief, f"{whole} {error}" if error else whole, step=step)
        case facts.DeliveryDenied():
            how = f"Not delivered to {place}: the send policy forbids it ({event.rule})."
            return Words(None, None, event.rule, how, step=f"{text} may not go to {channel}")
        case facts.DeliveryWithheld():
            how = f"Would be delivered to {place}: the channels of a fork are sealed."
            brief = f"withheld, would deliver to {event.channel}"
            return Words(None, None, brief, how, step=f"{text} would go to {channel}")
        case facts.DeliveryRetried():
            how = f"wants it delivered to {place} after all"
            return Words(event.by, None, "once more", how, step=f"{text} is to go to {channel} once more")


def _requester(event: facts.AccessEvent) -> str:
    return event.requester or (f"credential:{event.credential}" if event.credential else "operator")


def of_system(event: facts.AccessEvent | facts.SystemEvent) -> Words:  # noqa: C901, PLR0912 - one case an event
    """Return any other event: of the log, its accesses, checkpoints, notes, forks in words."""
    match event:
        case facts.AccessRecorded():
            return Words(
                _requester(event), None, f"{event.tool}: {event.allowed} allowed, {event.denied_count} denied"
            )
        case facts.SendRefused():
            brief = f"{event.tool}: {event.code}, {event.limit} is {event.value}"
            return Words(_requester(event), event.target, brief)
        case facts.LogOpened():
            return Words(None, None, f"epoch {event.epoch}, version {event.version}")
        case facts.ClockStepped():
            away = event.to_ms - event.from_ms
            brief = f"the clock stepped {'back' if away < 0 else 'ahead'} by {length(abs(away))}"
            return Words(None, None, brief)
        case facts.ConfigLoaded():
            return Words(None, None, f"configuration {event.digest}")
        case facts.CheckpointTaken():
            signed = "" if event.key_id is None else f", signed by {event.key_id}"
            return Words(None, None, f"the log up to {event.position}: {event.events_root}{signed}")
        case facts.CheckpointPublished():
            return Words(None, None, f"the checkpoint of {event.position}, to a {event.to}")
        case facts.ImportReported():
            brief = f"{event.source}: {event.sessions} sessions, {event.messages} messages"
            return Words(None, None, brief)
        case facts.InboundTaken():
            return Words(None, event.session_key, f"message {event.message_id}")
        case facts.NotePinned():
            return Words(event.by, None, f"notes at {event.position}: {event.text}", text=event.text)
        case facts.Erased():
            brief = f"{len(event.rows)} events of {event.stream}"
            return Words(event.by, None, f"{brief}: {event.reason}" if event.reason else brief)
        case facts.ForkEdited():
            edit = event.edit
            what = f"{edit.kind} {edit.key}".strip()
            return Words(event.by, None, f"edited at {edit.place}: {what}", text=edit.value or None)
        case facts.RecordingLeft():
            what = ", ".join(event.differs) or event.kind
            return Words(event.session_key, None, f"left the recording: {what}", text=event.now)
        case facts.ForkedFrom():
            edits = ", ".join(f"{edit.kind} {edit.key}".strip() for edit in event.edits) or "no edits"
            return Words(event.by, None, f"fork of {event.log_id} at position {event.position}: {edits}")
