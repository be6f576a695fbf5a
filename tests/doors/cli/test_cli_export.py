"""`export --to` writes a log for other tools, and says what it wrote."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from support.doors.command_line import ran
from support.foreign.recording import recorded


@pytest.mark.clause("OUT-1")
def test_an_import_is_exported_in_each_form(tmp_path: Path) -> None:
    store = tmp_path / "i.db"
    ran("import", recorded("langgraph", tmp_path), "--from", "langgraph", "--store", store)
    session = ran("sessions", "--json", "--store", store).json["sessions"][0]["key"]

    spans = ran("export", tmp_path / "spans", "--to", "otlp", "--store", store)
    events = ran("export", tmp_path / "events", "--to", "cloudevents", "--store", store, "--json").json
    body = ran(
        "export",
        tmp_path / "body",
        "--to",
        "openai",
        "--session",
        session,
        "--at",
        "20",
        "--store",
        store,
        "--json",
    ).json
    again = ran("export", tmp_path / "spans", "--to", "otlp", "--store", store, "--json")
    wrong = ran("export", tmp_path / "x", "--to", "csv", "--store", store)

    assert (spans.exit_code, spans.err) == (0, "")
    assert "2 spans, 0 open" in spans.out
    assert events["counts"]["events"] == events["position"]
    assert (body["position"], body["counts"]["messages"] > 0) == (20, True)
    assert (again.exit_code, again.json["code"]) == (1, "export_failed")
    assert wrong.exit_code == 2


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.timeout(1_800)
@pytest.mark.clause("OUT-1")
@pytest.mark.parametrize("to", ["cloudevents", "otlp", "parquet"])
def test_a_hundred_thousand_events_are_exported_in_200_megabytes(tmp_path: Path, to: str) -> None:
    source, store = tmp_path / "many.db", tmp_path / "i.db"
    with sqlite3.connect(source) as database:
        database.executescript(
            "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);"
            "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TIMESTAMP);"
        )
        times = "2026-01-01 00:00:00"
        database.executemany(
            "INSERT INTO agent_sessions VALUES (?, ?, ?)",
            [(f"s{number}", times, times) for number in range(500)],
        )
        item = json.dumps({"role": "user", "content": "a question of some length " * 20})
        database.executemany(
            "INSERT INTO agent_messages VALUES (NULL, ?, ?, ?)",
            ((f"s{number % 500}", item, times) for number in range(100_000)),
        )
    database.close()
    assert ran("import", source, "--from", "openai-agents", "--store", store).exit_code == 0

    asked = ("export", tmp_path / "out", "--to", to, "--raw", "--store", store, tmp_path / "status")
    subprocess.run([sys.executable, "-c", _MEASURED, *map(str, asked)], check=True, stdout=subprocess.DEVNULL)

    peak = re.search(r"^VmHWM:\s+(\d+) kB$", (tmp_path / "status").read_text(), re.MULTILINE)
    assert peak is not None
    assert int(peak[1]) < 200 * 1024


_MEASURED = """
import atexit, pathlib, sys
status, out = pathlib.Path("/proc/self/status"), pathlib.Path(sys.argv.pop())
atexit.register(lambda: out.write_text(status.read_text()))
from intersession.cli import main
main()
"""
"""A command that leaves behind how much memory it had at most."""
