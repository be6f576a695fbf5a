"""The message that a run answers: whoever queues a run for a session builds its message here."""

from intersession_events.facts import Message, Provenance, RunQueued


def message_for(run: RunQueued, text: str, provenance: Provenance, now_ms: int) -> Message:
    """Return the message of a run: what was said to the session, by whom, at which time (milliseconds)."""
    return Message(id=run.message_id, role="user", content=text, timestamp=now_ms, provenance=provenance)
