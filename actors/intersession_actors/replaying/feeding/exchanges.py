"""What led to an event of an exchange: a send, a hold, a release."""

from intersession_actors.exchange import HoldExchange, OpenExchange, ReleaseExchange
from intersession_actors.policy import budget_of
from intersession_actors.replaying.feeding.fed import ToFlow
from intersession_actors.replaying.recording import Recording
from intersession_events import facts
from intersession_events.ids import session_stream
from intersession_events.log import Recorded


def to_exchange(recorded: Recorded, recording: Recording) -> ToFlow | None:
    """Return what led to the next event of an exchange."""
    stream = recorded.stream
    match recorded.event:
        case facts.HoldRequested(before=before, by=by):
            return ToFlow(stream, HoldExchange(stream=stream, before=before, by=by))
        case facts.HoldWithdrawn(by=by):
            return ToFlow(stream, ReleaseExchange(stream=stream, action="go_on", by=by))
        case facts.ExchangeReleased() as event:
            release = ReleaseExchange(
                stream=stream,
                action=event.action,
                by=event.by,
                text=event.text,
                hold_id=event.hold_id,
                for_good=event.for_good,
            )
            return ToFlow(stream, release)
        case facts.ExchangeAccepted() as event:
            return _accepted(recorded, event, recording)
        case _:
            return None


def _accepted(recorded: Recorded, accepted: facts.ExchangeAccepted, recording: Recording) -> ToFlow:
    opening: facts.SessionOpened | None = None
    timeout_ms = 0
    target = session_stream(accepted.target)
    version = recording.message_version(accepted.target, accepted.message_id) or 0
    for item in (recording.at(target, near) for near in range(version - 3, version + 3)):
        match item.event if item is not None else None:
            case facts.SessionOpened() as event:
                opening = event
            case facts.RunQueued() as event if event.run_id == accepted.run_id:
                timeout_ms = event.timeout_ms
            case _:
                pass
    budget = budget_of(accepted, recorded.correlation, recorded.time)
    command = OpenExchange(
        budget=budget,
        accepted=accepted,
        opening=opening,
        run_timeout_ms=timeout_ms,
        causation=recorded.causation,
    )
    return ToFlow(recorded.stream, command)
