"""`export --to` writes a log for other tools, and says what it wrote."""

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
