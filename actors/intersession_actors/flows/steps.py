"""The step of an exchange or a spawn as a command to a session's actor: the message, its run, and the flow's own events. Pure."""

from intersession_actors.session import Enqueue, message_for
from intersession_events import facts
from intersession_events.log import StreamAppend

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
    """Return the message of a run that is to be queued: what is said to the session, by whom, when its flow asks for it."""
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
