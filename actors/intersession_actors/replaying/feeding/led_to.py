"""Which command led to an event that no actor decided by itself."""

from intersession_actors.replaying.feeding.fed import ToFlow, ToSession
from intersession_actors.replaying.feeding.flows import to_flow
from intersession_actors.replaying.feeding.sessions import to_session
from intersession_actors.replaying.recording import Recording
from intersession_events.log import Recorded


def command_for(recorded: Recorded, recording: Recording) -> ToSession | ToFlow | None:
    """Return what led to the next event of a stream; None where an actor decides it by itself, or it is not known."""
    if recorded.stream.startswith("session:"):
        return to_session(recorded, recording)
    return to_flow(recorded, recording)
