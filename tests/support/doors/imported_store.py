"""A store that holds an import of OpenClaw's state, as `intersession debug DIR` makes it."""

from pathlib import Path

from intersession_actors.owners.session.snapshots import take_snapshots
from intersession_events.stores.opened import open_log
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_projections.views.inline_views import inline_views

IMPORTED_MS = 1_795_300_000_000


def imported_store(state: Path, store: Path) -> Path:
    """Import a state directory to a new store; return the store."""
    with open_log(str(store), inline=inline_views()) as log:
        appended = set[str]()
        import_openclaw(state, log, clock=lambda: IMPORTED_MS, appended=appended.update)
        take_snapshots(log, appended)
    return store
