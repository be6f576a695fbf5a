"""`import` makes a log of another system's transcripts that `sessions`, `runs` and `replay` tell like any other."""

from pathlib import Path

import pytest

from support.doors.command_line import ran, ran_forked
from support.foreign.recording import recorded
from support.paths import DATA

STATE = DATA / "openclaw" / "household"


def test_an_import_says_what_it_found_and_the_log_tells_it(tmp_path: Path) -> None:
    store = tmp_path / "imported.db"

    done = ran_forked("import", "openclaw", STATE, "--store", store)
    runs = ran("runs", "--json", "--store", store).json["runs"]

    assert (done.exit_code, done.err) == (0, "")
    assert done.out.startswith(f"Imported {STATE}")
    assert "sessions" in done.out
    assert {flow["kind"] for flow in runs} == {"exchange", "spawn"}
    for flow in runs:
        told = ran("replay", flow["id"], "--store", store).out
        assert "put together from an imported record" in told
        assert " is over: " in told
    assert ran("verify", "--store", store).exit_code == 0


@pytest.mark.clause("IMP-1")
def test_the_report_in_json_is_whole(tmp_path: Path) -> None:
    report = ran("import", "openclaw", STATE, "--store", tmp_path / "i.db", "--json").json

    assert report["sessions"] > 1
    assert report["appended"] == report["events"] > 0
    assert {"skipped", "renamed", "unattributed", "notes", "lines"} <= report.keys()


def test_importing_again_adds_nothing_and_says_so(tmp_path: Path) -> None:
    ran("import", "openclaw", STATE, "--store", tmp_path / "i.db")

    again = ran("import", "openclaw", STATE, "--store", tmp_path / "i.db")

    assert "all in the log already, nothing was added" in again.out


def test_a_wrong_directory_is_refused_and_leaves_no_log(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    for wrong in (tmp_path / "empty", tmp_path / "missing", Path(__file__)):
        done = ran("import", "openclaw", wrong, "--store", tmp_path / "i.db", "--json")
        assert (done.exit_code, done.json["code"]) == (1, "import_failed")
    assert not (tmp_path / "i.db").exists()


@pytest.mark.clause("IN-1")
def test_a_framework_is_imported_and_its_sub_agents_are_walked(tmp_path: Path) -> None:
    source, store = recorded("langgraph", tmp_path), tmp_path / "i.db"

    done = ran("import", source, "--from", "langgraph", "--agent", "trips", "--store", store)
    runs = ran("runs", "--json", "--store", store).json["runs"]
    sessions = ran("sessions", "--json", "--store", store).json["sessions"]
    used = ran("usage", "--json", "--store", store).json
    wrong = ran(
        "import", tmp_path / "gone.db", "--from", "langgraph", "--store", tmp_path / "none.db", "--json"
    )

    assert (done.exit_code, done.err) == (0, "")
    assert "stands at an interrupt" in done.out
    assert {flow["kind"] for flow in runs} == {"spawn"}
    assert "weather in" in ran("replay", runs[0]["id"], "--store", store).out
    assert ran("why", runs[0]["id"], "--store", store).exit_code == 0
    thread = next(one["key"] for one in sessions if one["displayName"] == "Trip 1")
    told = ran("replay", thread, "--store", store).out
    assert "The graph stops, and asks a person:" in told
    assert '"question":"ok?"' in told
    assert '["fine"]' in told
    assert used["usage"][0]["costMicros"] == 250_000
    assert (wrong.exit_code, wrong.json["code"]) == (1, "import_failed")
    assert not (tmp_path / "none.db").exists()


def test_whose_database_it_is_has_to_be_said_and_a_state_directory_has_its_own_command(
    tmp_path: Path,
) -> None:
    done = ran("import", STATE, "--store", tmp_path / "i.db")

    assert done.exit_code == 2
    assert (
        f"--from langgraph or openai-agents; for an OpenClaw state directory, `intersession import openclaw {STATE}`"
        in done.err
    )
    assert not (tmp_path / "i.db").exists()
