"""What led to an event of a flow: of an exchange, a spawn or a delivery."""

from intersession_actors.replaying.feeding.deliveries import to_delivery
from intersession_actors.replaying.feeding.exchanges import to_exchange
from intersession_actors.replaying.feeding.fed import ToFlow
from intersession_actors.replaying.feeding.spawns import to_spawn
from intersession_actors.replaying.recording import Recording
from intersession_events import facts
from intersession_events.log import Recorded

_READY = facts.ThreadOpened | facts.AttachmentsReady


def to_flow(recorded: Recorded, recording: Recording) -> ToFlow | None:
    """Return what led to the next event of a flow; None where its manager decides it by itself."""
    match recorded.stream.partition(":")[0]:
        case "exchange":
            return to_exchange(recorded, recording)
        case "spawn":
            return to_spawn(recorded, recording)
        case "delivery":
            return to_delivery(recorded, recording)
        case _:
            return None


def began(flow: str, recording: Recording) -> ToFlow | None:
    """Return what led to a step of a flow whose message comes before the flow's own event, unless an actor decides it by itself.

    It is what began the flow, or a child that had to wait for files or a thread.
    """
    first = recording.ahead(flow)
    if first is None or not (first.version == 1 or isinstance(first.event, _READY)):
        return None
    return to_flow(first, recording)
