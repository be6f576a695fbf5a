"""The sessions, runs and flows at a place that a query selects, and which of them were open (PLACE-3)."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from intersession_actors.hindsight.debugger.answers import StateAnswer, open_in
from intersession_actors.hindsight.debugger.standing.values import Values
from intersession_actors.hindsight.debugger.view import View, settings_of
from intersession_projections.questions.places.located import Located, read_flow
from intersession_projections.questions.places.runs_named import Flow, flow_sessions, flow_stream
from intersession_projections.questions.places.then import Then
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary, Summary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.session_filter import SessionFilter

T = TypeVar("T")


class _Part(NamedTuple):
    """A part of a log: its sessions, runs and flows, and texts that went outside.

    `run_ids` is set for a flow or a run alone, `keys` for some sessions.
    """

    rows: list[SessionRow]
    runs: list[RunOutcome]
    flows: Sequence[ExchangeSummary | SpawnSummary]
    deliveries: Sequence[DeliverySummary] = ()
    run_ids: set[str] | None = None
    stream: str | None = None
    keys: frozenset[str] | None = None


def _is_of(part: _Part, one: RunOutcome | Summary) -> bool:
    """Whether open work belongs to the selected part: by its runs, else by its sessions."""
    if part.run_ids is not None:
        # What was imported has no runs.
        stream = one.owner if isinstance(one, DeliverySummary) else flow_stream(one)
        return one.run_id in part.run_ids or (part.stream is not None and part.stream == stream)
    return part.keys is None or not part.keys.isdisjoint(flow_sessions(one))


class Standing:
    """The state at a place, in the form of a view: at most `limit` of a kind, and `messages` of each transcript."""

    def __init__(self, view: View, place: Located, *, limit: int, messages: int) -> None:
        self._view = view
        self._place = place
        self._then = Then(view.log, place.position)
        self._limit = limit
        self._more: list[str] = []
        self._values = Values(view, place, messages=messages)

    def of(self, subject: str | Flow | None) -> StateAnswer:
        """Return the state of the whole log, of a session, or of a flow."""
        view, place, values = self._view, self._place, self._values
        flow = None if isinstance(subject, str) else subject
        part = self._part(subject)
        not_over = (*self._then.open_runs(), *self._then.open_flows())
        open_ = [one for one in view.seen_of(not_over, flow_sessions) if _is_of(part, one)]
        sent = {
            row.delivery_id: row for row in (*part.deliveries, *open_) if isinstance(row, DeliverySummary)
        }
        flows = list(zip(part.flows, self._then.events_of([flow.stream for flow in part.flows]), strict=True))
        run = None if flow is None else read_flow(view.log, flow)
        answer: StateAnswer = {
            "place": view.say(place, run),
            "next": view.say_next(place, run),
            "sessions": values.sessions(part.rows),
            "runs": [values.run(run) for run in view.seen_of(part.runs, flow_sessions)],
            "exchanges": values.exchanges(
                [(flow, events) for flow, events in flows if isinstance(flow, ExchangeSummary)]
            ),
            "spawns": values.spawns(
                [(flow, events) for flow, events in flows if isinstance(flow, SpawnSummary)]
            ),
            "deliveries": [values.delivery(row) for row in sent.values()],
            "open": open_in(open_),
        }
        if self._more:
            answer["more"] = self._more
        recorded = view.recorded_config(place.position) if view.is_operator else None
        if recorded is not None:
            answer["config"] = {"digest": recorded.digest, "settings": settings_of(recorded)}
        return answer

    def _part(self, subject: str | Flow | None) -> "_Part":
        """Return which part of the log is asked for."""
        then = self._then
        match subject:
            case ExchangeSummary() | SpawnSummary():
                stream = flow_stream(subject) or ""
                flows = [flow for flow in then.flows([subject]) if not isinstance(flow, RunOutcome)]
                runs = then.runs_of(stream)
                sent = [
                    *then.deliveries_of(stream),
                    *then.deliveries_of_runs([run.run_id for run in runs]),
                ]
                rows = list(self._rows(flow_sessions(subject)))
                return _Part(rows, runs, flows, sent, {run.run_id for run in runs}, stream)
            case RunOutcome():
                own = [run for run in then.flows([subject]) if isinstance(run, RunOutcome)]
                sent = then.deliveries_of_runs([subject.run_id])
                rows = list(self._rows(flow_sessions(subject)))
                return _Part(rows, own, [], sent, {subject.run_id})
            case str():
                return self._sessions((subject,), list(self._rows((subject,))))
            case None if self._view.is_operator:
                beyond = self._limit + 1
                rows, runs = list(self._rows(None)), self._shown(then.runs(beyond), "runs")
                exchanges = self._shown(then.exchanges(beyond), "exchanges")
                return _Part(rows, runs, [*exchanges, *self._shown(then.spawns(beyond), "spawns")])
            case None:
                # What others do must not push what is seen off the list.
                rows = list(self._rows(None))
                return self._sessions([row.key for row in rows], rows)

    def _sessions(self, keys: Sequence[str], rows: list[SessionRow]) -> "_Part":
        found = self._then.of_sessions(keys, self._limit + 1)
        runs = [flow for flow in found if isinstance(flow, RunOutcome)]
        flows = {flow.accepted: flow for flow in found if not isinstance(flow, RunOutcome)}
        newest = sorted(flows.values(), key=lambda flow: -flow.accepted)
        shown = self._shown(sorted(runs, key=lambda run: -run.accepted), "runs")
        kinds = {f"{flow.kind}s" for flow in newest[self._limit :]}
        return _Part(rows, shown, self._shown(newest, *sorted(kinds)), keys=frozenset(keys))

    def _shown(self, found: Iterable[T], *names: str) -> list[T]:
        """Return what the limit leaves of a list, and take down its names where that is not all."""
        some = list(islice(found, self._limit + 1))
        if len(some) > self._limit:
            self._more += names
        return some[: self._limit]

    def _rows(self, keys: Iterable[str] | None) -> Iterator[SessionRow]:
        sessions, position = self._view.reader.sessions, self._place.position
        if keys is not None:
            for key in keys:
                row = sessions.get(key, position) if self._view.is_seen(key) else None
                if row is not None:
                    yield row
            return
        order = sessions.order(position, SessionFilter(seen=self._view.reader.seen(self._view.requester)))
        rows = order.rows(order.places(), at_once=self._limit + 1)
        yield from self._shown(self._view.seen_of(rows, lambda row: (row.key,)), "sessions")
