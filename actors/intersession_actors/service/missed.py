"""What a flow would have been told, read from the log: where it may have missed it, or does not know it yet."""

import msgspec

from intersession_actors.service.service import Service
from intersession_actors.session import ended_again
from intersession_actors.streams import RunEnded
from intersession_events import ids


def run_ended(service: Service, stream: str, run_id: str | None) -> RunEnded | None:
    """Return what a flow is told of the end of its run; None while it is under way."""
    outcome = service.runs.get(run_id) if run_id is not None else None
    if outcome is None or not outcome.ended:
        return None
    session = ids.session_stream(outcome.session_key)
    events = service.log.stream(session, after=outcome.first_version - 1, to=outcome.last_version)
    ended = ended_again(stream, events)
    thread = service.threads.of(outcome.session_key)
    return ended if ended is None or thread is None else msgspec.structs.replace(ended, thread=thread)
