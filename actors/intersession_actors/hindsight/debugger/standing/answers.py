"""The form of the answer of `state`, and of open work."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from intersession_actors.hindsight.debugger.answers import PlaceAnswer
from intersession_events.basics.plain_json import JsonObject
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary, Summary
from intersession_projections.views.run_outcomes.outcome import RunOutcome


class OpenAnswer(TypedDict):
    """The ids of the work that was open at a place."""

    runs: list[str]
    exchanges: list[str]
    spawns: list[str]
    deliveries: list[str]


def open_in(found: Sequence[RunOutcome | Summary]) -> OpenAnswer:
    """Return the ids of open work."""
    return {
        "runs": [run.run_id for run in found if isinstance(run, RunOutcome)],
        "exchanges": [flow.exchange_id for flow in found if isinstance(flow, ExchangeSummary)],
        "spawns": [flow.spawn_id for flow in found if isinstance(flow, SpawnSummary)],
        "deliveries": [row.delivery_id for row in found if isinstance(row, DeliverySummary)],
    }


class StateAnswer(TypedDict):
    """The state at a place: sessions with their `transcript`, runs and flows at their stage, open work.

    `next` is what comes behind the place. `config` is what was in force, without secrets, for the operator alone.
    """

    place: PlaceAnswer
    next: PlaceAnswer | None
    sessions: list[JsonObject]
    runs: list[JsonObject]
    exchanges: list[JsonObject]
    spawns: list[JsonObject]
    deliveries: list[JsonObject]
    open: OpenAnswer
    config: NotRequired[JsonObject]
