"""Texts of a session that a door sends outside: their route, and the way into the outbox."""

import msgspec

from intersession_actors.calls.service.asking import key_conflict
from intersession_actors.calls.service.service import COMMIT_TIMEOUT_S, Service
from intersession_actors.owners.streams.commands import StepTaken
from intersession_actors.owners.streams.drafting import into_outbox
from intersession_events.basics import ids
from intersession_events.basics.errors import AppendConflict
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import Budget, DeliveryDecided, Event, Purpose, Route
from intersession_events.log.recorded import StreamAppend
from intersession_projections.views.sessions.row import SessionRow


def route_of(row: SessionRow | None, key: SessionKey) -> Route | None:
    """Return the route of a session's texts: its own, else its group (ANN-2)."""
    if row is not None and row.route is not None:
        return row.route
    if row is not None and row.last_channel is not None and row.last_to is not None:
        return Route(channel=row.last_channel, to=row.last_to)
    if key.family in {"group", "channel"} and key.channel is not None and key.peer is not None:
        return Route(channel=key.channel, to=key.peer, thread=key.thread)
    return None


def delivery_of(
    service: Service,
    *,
    key: SessionKey,
    route: Route,
    text: str,
    run_id: str,
    budget: Budget,
    purpose: Purpose,
    by: str | None = None,
    causation: str | None = None,
) -> StreamAppend:
    """Return the append that puts a session's text into the outbox; `by` is the sender of a text without a run."""
    log_id, now = service.log.log_id, service.clock.now_ms()
    own, *before = (ids.derive(log_id, "delivery", run_id, purpose) for log_id in service.log.log_ids)
    delivery_id = next((one for one in before if service.flows.delivery(one) is not None), own)
    decided = DeliveryDecided(
        delivery_id=delivery_id,
        session_key=str(key),
        route=route,
        text=text,
        key=delivery_id,
        purpose=purpose,
        run_id=run_id,
        by=by,
    )
    return into_outbox(log_id, decided, budget=budget, time=now, causation=causation)


def deliver(service: Service, append: StreamAppend) -> None:
    """Append a separate delivery and tell the outbox. An existing one stays as it is.

    So is one that a fork has from its source, and one of a log of before, which does not say who sent it.

    Raises:
        ToolRefused: another text was put there under the same key (`idempotency_conflict`).
        StoreUnavailable: the store could not take it.
    """
    there = service.log.stream(append.stream, to=1)
    if there:
        if _without_sender(there[0].event) != _without_sender(append.drafts[0].event):
            raise key_conflict("text")
        return
    try:
        committed = service.log.append_now((append,), timeout=COMMIT_TIMEOUT_S)
    except AppendConflict:
        raise key_conflict("text") from None
    if not committed.again:
        service.supervisor.tell_flow(
            append.stream, StepTaken(stream=append.stream, recorded=committed.recorded)
        )


def _without_sender(event: Event) -> Event:
    """Return an event without its sender: of equal calls under one key, the log has the first."""
    return msgspec.structs.replace(event, by=None) if isinstance(event, DeliveryDecided) else event
