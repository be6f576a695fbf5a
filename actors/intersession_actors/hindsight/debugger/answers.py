"""The parts of answers that verbs of the debugger share, and the answer of `state`. The other verbs' own answers stand beside them."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import msgspec

from intersession_events.basics.plain_json import JsonObject
from intersession_projections.questions.places.described import Described
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary, Summary
from intersession_projections.views.run_outcomes.outcome import RunOutcome


class PlaceAnswer(TypedDict):
    """A place. `eventId` and `timeMs` (ms since 1970) are those of the event before it; None before the first.

    `text` says it in words of ours alone: nothing in it was said by anybody.
    """

    position: int
    eventId: str | None
    timeMs: int | None
    text: str


def place_answer(described: Described) -> PlaceAnswer:
    """Return a place in the form of answers."""
    answer: PlaceAnswer = msgspec.to_builtins(described)
    return answer


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

    `next` is what comes behind the place. `more` names the lists of which the limit left older entries out. `config` is what was in force, without secrets, for the operator alone.
    """

    place: PlaceAnswer
    next: PlaceAnswer | None
    sessions: list[JsonObject]
    runs: list[JsonObject]
    exchanges: list[JsonObject]
    spawns: list[JsonObject]
    deliveries: list[JsonObject]
    open: OpenAnswer
    more: NotRequired[list[str]]
    config: NotRequired[JsonObject]
