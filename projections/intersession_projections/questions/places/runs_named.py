"""Finds exchanges, spawns and runs by any name: an id or its beginning, a stream, an idempotency key."""

from collections.abc import Callable, Iterator
from typing import Final

from intersession_events.log.log import Log
from intersession_projections.questions.places.grammar import UnknownPlace, no_place
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs

FEWEST: Final = 4
"""How many characters of an id are enough, if no other id begins with them."""

_MOST: Final = 64
"""The most ids with a common beginning that are looked up."""

Flow = ExchangeSummary | SpawnSummary | RunOutcome
"""What a run's name can mean: the exchange or spawn that it belongs to, else the run itself."""

Sees = Callable[[str], bool]
"""Whether the caller sees a session, by its canonical key."""


def flow_sessions(flow: Flow | DeliverySummary) -> tuple[str, ...]:
    """Return the sessions that take part, by key, a requesting session first; of a delivery, the session whose text it is."""
    match flow:
        case ExchangeSummary():
            return tuple(dict.fromkeys(filter(None, (flow.requester, flow.target))))
        case SpawnSummary():
            return tuple(dict.fromkeys(filter(None, (flow.requester, flow.child))))
        case RunOutcome() | DeliverySummary():
            return (flow.session_key,)


def flow_id(flow: Flow) -> str:
    """Return the id of an exchange, a spawn or a run."""
    match flow:
        case ExchangeSummary():
            return flow.exchange_id
        case SpawnSummary():
            return flow.spawn_id
        case RunOutcome():
            return flow.run_id


def flow_stream(flow: Flow) -> str | None:
    """Return the stream of an exchange or a spawn; None for a run of neither."""
    return None if isinstance(flow, RunOutcome) else flow.stream


class RunNames:
    """Resolves names of runs, among what the caller sees (`sees`; None: everything)."""

    def __init__(self, log: Log, sees: Sees | None = None) -> None:
        self._log = log
        self._flows = Flows(log)
        self._runs = Runs(log)
        self._sees = sees

    def named(self, name: str, *, field: str) -> str:
        """Return the id of the exchange, spawn or run with that name.

        Raises:
            UnknownPlace: no visible exchange, spawn or run has that name; or several ids begin so (`candidates`).
        """
        return flow_id(self._found(name, field))

    def flow(self, name: str, *, field: str) -> Flow:
        """Return the exchange or spawn with that name, or with a run of that name; else the run.

        Raises:
            UnknownPlace: no visible exchange, spawn or run has that name; or several ids begin so (`candidates`).
        """
        return self._whole(self._found(name, field))

    def run(self, name: str, *, field: str) -> Flow:
        """Return the run with that name, or the first run of an exchange or spawn; of an imported one, which has none, itself.

        Raises:
            UnknownPlace: no visible exchange, spawn or run has that name; or several ids begin so (`candidates`).
        """
        found = self._found(name, field)
        return found if isinstance(found, RunOutcome) else self._runs.get(found.run_id) or found

    def _found(self, name: str, field: str) -> Flow:
        typed = name.strip()
        kind, colon, rest = typed.partition(":")
        typed = rest if colon and kind in {"exchange", "spawn"} else typed
        if any("\ud800" <= letter <= "\udfff" for letter in typed):
            # An argument of a command that is no UTF-8. No recorded name is like that.
            raise _unknown(name, field)
        for found in self._exact(typed):
            return found
        begun: dict[str, Flow] = {}
        if len(typed) >= FEWEST:
            for whole in self._flows.flow_ids(typed, _MOST) + self._runs.ids(typed, _MOST):
                for found in self._exact(whole) if whole != typed else ():
                    begun[whole] = found
        if len(begun) > 1:
            ids = tuple(sorted(begun))
            raise UnknownPlace(
                f"{field}: several ids begin with {name[:64]!a}, give more of the one you mean: {', '.join(ids)}",
                ids,
            )
        if not begun:
            raise _unknown(name, field)
        return next(iter(begun.values()))

    def _exact(self, name: str) -> Iterator[Flow]:
        flows, runs, keyed = self._log.answers(
            self._flows.ask_many({"exchange": [name], "spawn": [name]}),
            self._runs.ask_without_words([name]),
            self._runs.ask_under_key(name),
        )
        by_key = keyed[0][1] if keyed else name
        if by_key != name:
            runs |= self._runs.many_without_words([by_key])
        # What is not seen takes the way of what is not there, so that the time does not tell of it, either.
        seen_runs = [run for run in runs.values() if self._is_seen(run)]
        runs = {run.run_id: run for run in self._runs.with_words(seen_runs)} if seen_runs else {}
        seen: list[Flow] = [
            *(
                flow
                for flow in flows.values()
                if not isinstance(flow, DeliverySummary) and self._is_seen(flow)
            ),
            *(runs[run_id] for run_id in dict.fromkeys((name, by_key)) if run_id in runs),
        ]
        if not seen and (stream := self._flows.flow_of_run(name)) is not None:
            seen = [flow for flow in (self._of_stream(stream),) if flow is not None and self._is_seen(flow)]
        return iter(seen)

    def _is_seen(self, flow: Flow) -> bool:
        return self._sees is None or any(map(self._sees, flow_sessions(flow)))

    def _whole(self, found: Flow) -> Flow:
        if not isinstance(found, RunOutcome):
            return found
        return self._of_stream(self._flows.flow_of_run(found.run_id) or "") or found

    def _of_stream(self, stream: str) -> ExchangeSummary | SpawnSummary | None:
        kind, _, flow_id = stream.partition(":")
        match kind:
            case "exchange":
                return self._flows.exchange(flow_id)
            case "spawn":
                return self._flows.spawn(flow_id)
            case _:
                return None


def _unknown(name: str, field: str) -> UnknownPlace:
    few = f", of an id give {FEWEST} characters at least" if 0 < len(name.strip()) < FEWEST else ""
    error = f"{field}: no exchange, spawn or run is called {name[:64]!a}; `intersession runs` shows what there is{few}"
    return no_place(error) if "@" in name else UnknownPlace(error)
