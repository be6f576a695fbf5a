"""States of the original that keeps its sessions in SQLite, put together from what was recorded of them."""

import shutil
import sqlite3
from pathlib import Path
from typing import Final

from support.paths import DATA

RECORDED: Final = DATA / "openclaw_sqlite"
KEPT: Final = frozenset(
    {
        "schema_meta",
        "session_key_contract",
        "session_nodes",
        "session_windows",
        "transcript_events",
        "session_pending_inputs",
        "session_transcript_archives",
        "session_transcript_cold_archives",
        "subagent_runs",
        "cron_jobs",
    }
)
"""The tables whose rows are recorded: those that an import reads, and which schema they have."""


def restored(name: str, target: Path) -> Path:
    """Write a recorded state into a folder, its databases as the original has them; return the folder."""
    shutil.copytree(RECORDED / name, target)
    for path in target.rglob("*.sql"):
        database = sqlite3.connect(path.with_suffix(".sqlite"))
        # The schema's checks call it; libraries before 3.43 have no such function.
        database.create_function(
            "octet_length", 1, lambda value: len(str(value).encode()), deterministic=True
        )
        database.executescript(
            f"PRAGMA foreign_keys = OFF; BEGIN; {path.read_text(encoding='utf-8')} COMMIT;"
        )
        database.close()
        path.unlink()
    return target
