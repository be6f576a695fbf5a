"""The step of an exchange or a spawn as a command to a session's actor: the message, its run, and the flow's own events. Pure."""

from intersession_actors.owners.flows.led import Led
from intersession_actors.owners.session.commands import Enqueue, message_for
from intersession_actors.owners.streams.drafting import into_outbox
from intersession_events import facts
from intersession_events.log.recorded import StreamAppend

Appends = tuple[StreamAppend, ...]


def step_of(
    run: facts.RunQueued,
    text: str,
    appends: Appends,
    budget: facts.Budget,
    *,
    said_by: str | None,
    causation: str | None,
    channel: str | None = None,
    kind: facts.ProvenanceKind = "inter_session",
    edited_by: str | None = None,
) -> Enqueue:
    """Return the message of a run to be queued: its text, its sender, and the time of the flow's request."""
    own = appends[0]
    provenance = facts.Provenance(
        kind=kind,
        source_session_key=said_by,
        source_channel=channel,
        source_tool="sessions_send" if run.spawn_id is None else "sessions_spawn",
        exchange_id=run.exchange_id,
        turn=run.turn,
        hops=budget.hops,
        edited_by=edited_by,
    )
    return Enqueue(
        budget=budget,
        message=message_for(run, text, provenance, own.drafts[-1].time),
        queue=run,
        session_id=run.session_id,
        flow=own.stream,
        carried=appends,
        causation=causation,
    )


def announce_of(
    after: Led,
    announced: facts.AnnounceDecided,
    text: str,
    way: tuple[facts.Route | None, str],
    *,
    log_id: str,
    time: int,
    cause: str | None,
) -> StreamAppend:
    """Return the `text` of an announce for the outbox; `way` is its route and speaker.

    Raises:
        RuntimeError: there is nowhere to go: the rules decide a delivery only where there is a route.
    """
    accepted, (route, speaker) = after.accepted, way
    owner = accepted.stream
    if route is None or announced.delivery_id is None:
        raise RuntimeError(f"{owner} lost its route")
    decided = facts.DeliveryDecided(
        delivery_id=announced.delivery_id,
        session_key=speaker,
        route=route,
        text=text,
        key=announced.delivery_id,
        purpose="announce" if accepted.begins == "exchange" else "spawn_announce",
        run_id=announced.run_id or accepted.run_id,
        owner=owner,
    )
    return into_outbox(log_id, decided, budget=after.budget, time=time, causation=cause)
