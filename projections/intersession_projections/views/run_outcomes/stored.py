"""How runs are stored as rows: for the view that writes them, and the queries that read them."""

from typing import Final

from intersession_events.facts import Usage
from intersession_events.log.sql import Row
from intersession_projections.basics.columns import Packing, unpacked
from intersession_projections.views.flows.rows import FAILED_RUNS
from intersession_projections.views.run_outcomes.outcome import RunOutcome

STORED: Final = Packing(
    RunOutcome, apart=("run_id", "accepted", "position", "status", "root"), nested={"usage": Usage}
)
COLUMNS: Final = "accepted, run_id, status, position, root, state"
FAILED: Final = f"status IN {FAILED_RUNS}"


def restored(row: Row) -> RunOutcome:
    """Return a run from its row."""
    accepted, run_id, status, position, root, state = row
    return STORED.restored(
        state,
        accepted=accepted,
        run_id=unpacked(run_id),
        status=status,
        position=position,
        root=None if root is None else unpacked(root),
    )
