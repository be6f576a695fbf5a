"""`intersession imports`, and what an import's answers have used: of an imported state, at any later time."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.doors.command_line import ran
from support.doors.imported_store import imported_store
from support.openclaw.samples import HOUSEHOLD


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_store(HOUSEHOLD, tmp_path_factory.mktemp("imports") / "log.db")


@pytest.mark.clause("IMP-1")
def test_what_an_import_left_out_is_listed_with_file_line_and_reason(store: Path) -> None:
    found = ran("imports", "--store", store, "--json").json

    (one,) = found["imports"]
    rows = found["rows"]
    refused = [row for row in rows if row["what"] == "refused"]
    assert len(refused) == one["refusedSends"] + one["refusedSpawns"] > 0
    assert all(row["file"].endswith(".jsonl") and row["line"] > 0 and row["reason"] for row in refused)
    (left,) = [row for row in rows if row["what"] == "unattributed"]
    assert (left["of"], left["line"]) == ("inter-session message", 28)
    assert left["file"] == "agents/desk/sessions/00000002-1111-4111-8111-000000000002.jsonl"
    assert (
        sum(row.get("lastLine", row["line"]) - row["line"] + 1 for row in rows if row["what"] == "skipped")
        == one["skipped"]
    )
    # In pages, and of one kind alone; told in lines for people.
    first = ran("imports", "--limit", "1", "--store", store, "--json").json
    second = ran("imports", "--limit", "1", "--cursor", first["cursor"], "--store", store, "--json").json
    assert [*first["rows"], *second["rows"]] == rows[:2]
    assert {
        row["what"] for row in ran("imports", "--what", "note", "--store", store, "--json").json["rows"]
    } <= {"note"}
    assert f"{left['file']}:28" in ran("imports", "--store", store).out


@pytest.mark.clause("IMP-1", "FIND-2")
def test_usage_counts_what_imported_answers_have_used(store: Path) -> None:
    used = sum(map(tokens_of, HOUSEHOLD.rglob("*.jsonl*")))
    assert used > 0
    for by in ("agent", "session", "model", "day", "person"):
        rows = ran("usage", "--by", by, "--store", store, "--json").json["usage"]
        assert sum(row["totalTokens"] for row in rows) == used, by


def tokens_of(path: Path) -> int:
    """Return what the answers in a transcript have used, as their lines say."""
    found = 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry: Any = json.loads(line)
        except ValueError:
            continue
        message = entry.get("message") if isinstance(entry, dict) else None
        usage = message.get("usage") if isinstance(message, dict) else None
        if isinstance(usage, dict):
            parts = (usage.get(name, 0) for name in ("input", "output", "cacheRead", "cacheWrite"))
            found += usage.get("totalTokens") or sum(parts)
    return found


def test_a_log_without_an_import_says_so(tmp_path: Path) -> None:
    ran("demo", "--store", tmp_path / "log.db")
    assert "nothing was imported into this log" in ran("imports", "--store", tmp_path / "log.db").out
