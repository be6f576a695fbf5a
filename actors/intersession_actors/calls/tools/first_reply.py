"""What became of the reply of an exchange's first run on its way to the session that waits for it (SEND-5, LIVE-1)."""

from typing import Final, NamedTuple

from intersession_actors.calls.service.asking import flow_begun_by
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.service import Service
from intersession_events.basics import ids
from intersession_events.facts import ExchangeReleased


class FirstReply(NamedTuple):
    """What became of it. `waits`: it may not be given yet. `text` is what somebody wrote in its place.

    `ended_by` is who ended the exchange while it was held: nobody is given it.
    """

    waits: bool = False
    is_held: bool = False
    is_dropped: bool = False
    text: str | None = None
    ended_by: str | None = None


GOES_ON: Final = FirstReply()
"""It is given as it was said."""


def has_answer(service: Service, caller: Caller, run_id: str) -> bool:
    """Whether what a caller waits for is there."""
    return service.runs.has_ended(run_id) and not first_reply(service, caller, run_id).waits


def first_reply(service: Service, caller: Caller, run_id: str) -> FirstReply:
    """Return what became of a reply. The operator, who may release it, has it at once."""
    if caller.key is None:
        return GOES_ON
    stream = ids.exchange_stream(flow_begun_by(service, "exchange", run_id))
    exchange = service.flows.exchange(stream.partition(":")[2])
    if exchange is None:
        return GOES_ON
    if exchange.holds_first:
        return FirstReply(waits=True, is_held=True)
    if exchange.primary_status is None:
        # Nothing was decided on it yet. Nobody decides on what was set aside, which held nothing when it was.
        return FirstReply(waits=not {stream, "exchange"} & service.supervisor.degraded.keys())
    match exchange.first:
        case "drop":
            return FirstReply(is_dropped=True)
        case "end":
            released = _released(service, stream)
            return FirstReply(ended_by="somebody" if released is None else released.by)
        case "edit":
            released = _released(service, stream)
            return FirstReply(text=None if released is None else released.text)
        case "go_on" | None:
            return GOES_ON


def _released(service: Service, stream: str) -> ExchangeReleased | None:
    events = (item.event for item in service.log.stream(stream))
    return next((event for event in events if isinstance(event, ExchangeReleased)), None)
