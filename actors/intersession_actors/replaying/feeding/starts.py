"""What a start tells whoever leads a stream that was open, where the process that was to tell it had ended."""

from collections.abc import Sequence

import msgspec

from intersession_actors.delivery import ended_in
from intersession_actors.replaying.feeding.fed import ToFlow, ToSession
from intersession_actors.replaying.recording import Recording
from intersession_actors.session import Wake, ended_again
from intersession_actors.streams import ChildGone, Resume, RunEnded
from intersession_events import facts
from intersession_events.ids import delivery_stream
from intersession_events.log import Recorded


def goes_on(recorded: Recorded, recording: Recording) -> ToSession | ToFlow | None:
    """Return what a start tells whoever leads a stream that was open; None where it had not begun.

    A process that has come to its end is an outside event that the log doesn't have: what was to be told was not told then.
    """
    stream = recording.decided_in(recorded)
    past = recording.past(stream)
    if stream.startswith("session:"):
        return ToSession(stream.partition(":")[2], Wake())
    if not past:
        return None
    if isinstance(recorded.event, facts.ChildArchived):
        return ToFlow(stream, ChildGone(stream=stream))
    runs = (facts.run_named(item.event) for item in reversed(past))
    run_id = next((run_id for run_id in runs if run_id is not None), None)
    deliveries = (facts.delivery_named(item.event) for item in past)
    ended = [
        _run_ended(stream, run_id, recording),
        *(
            ended_in(recording.past(delivery_stream(delivery_id)))
            for delivery_id in deliveries
            if delivery_id is not None
        ),
    ]
    return ToFlow(stream, Resume(stream=stream, ended=tuple(one for one in ended if one is not None)))


def _run_ended(stream: str, run_id: str | None, recording: Recording) -> RunEnded | None:
    """Return how the run that a flow waits for had ended, if it had."""
    of_run = [
        item for item in recording.of_run(run_id or "") if item.version <= recording.version(item.stream)
    ]
    end = next((item for item in of_run if isinstance(item.event, facts.RunEnd)), None)
    if end is None:
        return None
    past = recording.past(end.stream)
    ended = ended_again(stream, [item for item in past if of_run[0].version <= item.version <= end.version])
    return None if ended is None else msgspec.structs.replace(ended, thread=_thread_of(past))


def _thread_of(session: Sequence[Recorded]) -> facts.Route | None:
    """Return the thread that a session is bound to after these events; a start tells a spawn of it (SPAWN-12)."""
    for item in reversed(session):
        match item.event:
            case facts.ThreadBound() as bound:
                return bound.route
            case facts.ThreadUnbound():
                return None
            case _:
                pass
    return None
