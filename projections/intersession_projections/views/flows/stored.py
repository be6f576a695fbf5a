"""How exchanges, spawns and deliveries are stored as rows: for the view that writes them, and the queries that read them."""

from collections.abc import Mapping
from typing import Any, Final

from intersession_events.log.sql import Row
from intersession_projections.basics.columns import Packing, unpacked
from intersession_projections.views.flows.rows import (
    FAILED_DELIVERIES,
    DeliverySummary,
    ExchangeSummary,
    SpawnSummary,
    Summary,
)

EXCHANGE: Final = "exchange"
SPAWN: Final = "spawn"
DELIVERY: Final = "delivery"
HELD: Final = "held"
RELEASED: Final = "released"
_APART: Final = ("accepted", "position")
STORED: Final[Mapping[str, "Packing[Any]"]] = {  # each of its own kind
    EXCHANGE: Packing(ExchangeSummary, apart=(*_APART, "exchange_id")),
    SPAWN: Packing(SpawnSummary, apart=(*_APART, "spawn_id")),
    DELIVERY: Packing(DeliverySummary, apart=(*_APART, "delivery_id")),
}
FAILED: Final = "failed"
UNDELIVERED: Final = f"outcome IN {FAILED_DELIVERIES}"
"""Said of deliveries without a receipt, and of exchanges and spawns that have failed."""
ASKED: Final = "kind <> 'delivery'"
"""Said of those that were asked for, so that SQLite takes the index that is about them alone."""
COLUMNS: Final = "kind, id, accepted, position, state"


def restored(row: Row) -> Summary:
    """Return a flow from its row."""
    kind, name, accepted, position, state = row
    found: Summary = STORED[kind].restored(
        state, accepted=accepted, position=position, **{f"{kind}_id": unpacked(name)}
    )
    return found
