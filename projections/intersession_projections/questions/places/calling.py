"""The run in which an agent called for an exchange or a spawn: the message it had, and its answer."""

from collections.abc import Iterable, Sequence

import msgspec

from intersession_events import facts
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.places.runs_named import Flow, flow_stream
from intersession_projections.questions.timeline.timeline import Timeline
from intersession_projections.views.run_outcomes.outcome import RunOutcome


class CallingRun(msgspec.Struct, frozen=True, kw_only=True):
    """A calling run. It was at work between two positions (`last` None: it still is), and waited for tools in `waits`.

    `shown` are the positions of what was asked of it, what it said without calling a tool, how it failed, and what came of
    its words outside: as far as the exchange or spawn goes.
    """

    run_id: str
    session_key: str
    first: int
    last: int | None
    waits: tuple[tuple[int, int | None], ...]
    shown: frozenset[int]

    def value(self) -> JsonObject:
        """Return it in the form that pages use."""
        waits = [[*pair] for pair in self.waits]
        return present(
            {
                "runId": self.run_id,
                "sessionKey": self.session_key,
                "from": self.first,
                "to": self.last,
                "waits": waits,
            }
        )


def calling_runs(log: Log, flows: Sequence[tuple[Flow, Iterable[Recorded]]]) -> list[CallingRun | None]:
    """Return the runs that called for exchanges and spawns, each with its events; None if no agent called, or the run is unknown."""
    called = [_called_in(flow, events) for flow, events in flows]
    run_ids = list(dict.fromkeys(filter(None, called)))
    found = dict(zip(run_ids, Timeline(log).events_of_runs(run_ids), strict=True)) if run_ids else {}
    return [
        None if run_id is None else _calling(run_id, flow, found[run_id])
        for run_id, (flow, _) in zip(called, flows, strict=True)
    ]


def _called_in(flow: Flow, events: Iterable[Recorded]) -> str | None:
    stream = flow_stream(flow)
    begun = (one.event for one in events if one.stream == stream)
    return next(
        (event.requester_run_id for event in begun if isinstance(event, facts.FlowAccepted)),
        None,
    )


def _calling(run_id: str, flow: Flow, events: Iterable[Recorded]) -> CallingRun | None:
    found = {one.position: one for one in events}
    is_open = not isinstance(flow, RunOutcome) and flow.is_open
    own = [one for _, one in sorted(found.items()) if is_open or one.position <= flow.position]
    return _read(run_id, own)


def _read(run_id: str, events: Iterable[Recorded]) -> CallingRun | None:
    first = last = None
    session_key = ""
    waits: list[tuple[int, int | None]] = []
    shown: set[int] = set()
    for one in events:
        event, message = one.event, facts.message_in(one.event)
        if event.ends == "run":
            last = one.position
        if isinstance(event, facts.RunStarted) and first is None:
            first, session_key = one.position, one.stream.partition(":")[2]
        elif message is not None and facts.calls_of(message):
            waits.append((one.position, None))
        elif message is not None and message.role == "toolResult":
            waits = [(begun, one.position if ended is None else ended) for begun, ended in waits]
        elif not (isinstance(event, facts.DeliveryFact) and event.mark == "note"):
            # That its answer arrived, or would, is the other run's own story; that it failed is shown.
            shown.add(one.position)
    if first is None:
        return None
    return CallingRun(
        run_id=run_id,
        session_key=session_key,
        first=first,
        last=last,
        waits=tuple(waits),
        shown=frozenset(shown),
    )
