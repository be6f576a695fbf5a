"""An operator's and an auditor's commands on a log that never lay in a file: imported straight into PostgreSQL."""

from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from support.doors.command_line import ran
from support.paths import DATA
from support.postgres.server import Server
from support.running import WAIT

pytestmark = pytest.mark.postgres

STATE = DATA / "openclaw" / "household"


@pytest.mark.clause("IMP-1", "CHECK-1", "D10")
def test_an_import_is_proven_backed_up_and_erased_there(
    postgres: Server, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(postgres.binaries), prepend=":")
    url = ("--store", postgres_url, "--json")
    file = ("--store", tmp_path / "i.db", "--json")

    first, again = (ran("import", "openclaw", STATE, *url).json for _ in range(2))
    beside = ran("import", "openclaw", STATE, *file).json
    assert (first["appended"], again["appended"]) == (beside["appended"], 0)
    assert [one["key"] for one in ran("sessions", *url).json["sessions"]] == [
        one["key"] for one in ran("sessions", *file).json["sessions"]
    ]

    assert ran("checkpoint", *url).exit_code == 0
    session = ran("sessions", *url).json["sessions"][0]["key"]
    proof = tmp_path / "proof.json"
    made = ran("verify", "--prove", session, *url)
    assert made.exit_code == 0, made.err
    proof.write_text(made.out, encoding="utf-8")
    assert ran("verify", "--check-proof", proof, "--json").exit_code == 0

    backed = ran("backup", tmp_path / "log.dump", *url)
    assert backed.exit_code == 0, backed.err
    assert backed.json["position"] == ran("verify", *url).json["head"]["position"]

    erased = ran("erase", session, "--yes", *url)
    assert erased.exit_code == 0, erased.err
    told = ran("verify", *url)
    assert (told.exit_code, told.json["erased"] > 0) == (0, True), told.json["findings"]
    # What it did not read is what a server has, not what a file has.
    assert "rows that are dead and not yet vacuumed" in (unproven := "\n".join(told.json["unproven"]))
    assert "SQLite" not in unproven
    assert ran("verify", "--check-proof", proof, "--json").exit_code == 0


def test_a_host_is_asked_on_a_machine_on_which_its_log_has_no_files_yet(
    postgres_url: str, tmp_path: Path
) -> None:
    """Before: the folder of the control socket was made by whatever kept the first file there."""
    url = f"{postgres_url.partition('&files=')[0]}&files={tmp_path / 'new'}"
    with SessionSystem(url, agents={"main": echo()}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="Hello", wait=WAIT)

        assert ran("label", "main", "boiler", "--store", url).exit_code == 0
