"""Turns as a worker makes them of a log, beside the writer that has it open."""

from collections.abc import Sequence

from intersession import Turn
from intersession.worker.sessions import Sessions
from intersession_actors.outside.agents.turn import Recorder, ToolBox
from intersession_actors.outside.attachments.workspaces import OwnFiles
from intersession_actors.owners.session.turn_of import turn_of
from intersession_events.facts import RunStarted
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import Recorded
from intersession_events.log.work_queue import Offer


class Reads:
    """Reads the events of calls from a log, a few at once, and counts them."""

    def __init__(self, log: HostLog) -> None:
        self._log = log
        self.read = 0

    def __call__(self, offer: Offer, after: int) -> Sequence[Recorded]:
        found = self._log.stream(offer.stream, after=after, to=offer.version, limit=7)
        self.read += len(found)
        return found


def offer_of(log: HostLog, turn: Turn) -> Offer:
    """Return what the writer offers for the attempt that a turn is of."""
    stream = f"session:{turn.session_key}"
    start = next(
        one
        for one in log.stream(stream, backwards=True)
        if isinstance(one.event, RunStarted) and one.event.run_id == turn.run_id
    )
    assert isinstance(start.event, RunStarted)
    return Offer(
        kind="agent",
        id=turn.run_id,
        attempt=turn.attempt,
        name=turn.agent_id,
        stream=stream,
        version=start.version,
        secret="s",
        context_hash=start.event.context_hash,
    )


def rebuilt(sessions: Sessions, offer: Offer) -> Turn:
    attempt = sessions.attempt(offer)
    return turn_of(
        offer.stream.partition(":")[2],
        attempt.running,
        attempt.context,
        tools=ToolBox(),
        recorder=Recorder(),
        store=None,
        pieces=print,
        takes_images=bool,
        own_files=OwnFiles,
    )
