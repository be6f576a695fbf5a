"""How old the last copy of a log is: told from the receipts that copies leave, over restarts, wherever an operator looks (COPY-5)."""

from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession.gateway.metrics import Metrics
from intersession_actors.calls.service.callers import Caller
from support.as_caller import called_by
from support.doors.command_line import ran
from support.fakes import ManualClock
from support.running import WAIT

COPIES = Caller.by_credential("copies", (), copies=True)
_DAY_MS = 24 * 3_600_000


def speak(system: SessionSystem) -> int:
    """Have something committed, and with it the receipts that wait for a commit; return the last position."""
    system.inbound(channel="telegram", chat_id="1", sender="ada", text="hi", wait=WAIT)
    return system.log.head()


@pytest.mark.clause("COPY-5")
def test_the_age_of_the_last_copy_is_known_over_restarts_and_an_old_one_is_a_warning(log_url: str) -> None:
    clock = ManualClock()
    with SessionSystem(log_url, agents={"main": echo()}, clock=clock) as system:
        speak(system)
        assert system.status()["copy"] is None
        assert "\nintersession_copy_age_seconds " not in Metrics(system).text().decode()
        assert "rows" in called_by(COPIES, system, "copies.rows", {"after": 3})
        called_by(COPIES, system, "copies.rows", {"after": 5})
        speak(system)

        assert system.debug.access(tool="copies.rows")["count"] == 1  # one an hour
        clock.advance(2 * _DAY_MS)
        head = speak(system)
        copy = system.status()["copy"]
        assert (copy["by"], copy["position"], copy["behind"]) == ("credential:copies", 3, head - 3)
        assert copy["ageMs"] == 2 * _DAY_MS
        assert f"intersession_copy_behind_events {head - 3}.0" in Metrics(system).text().decode()
        assert "copy_old" not in {one["code"] for one in system.gateway.call("status")["findings"]}
    clock.advance(7 * _DAY_MS)
    with SessionSystem(log_url, agents={"main": echo()}, clock=clock) as system:
        speak(system)
        assert system.status()["copy"]["ageMs"] == 9 * _DAY_MS
        (old,) = (one for one in system.gateway.call("status")["findings"] if one["code"] == "copy_old")
        assert "by credential:copies, up to position 3" in old["what"]

    assert "copy_old" in {one["code"] for one in ran("doctor", "--store", log_url, "--json").json["findings"]}


@pytest.mark.clause("COPY-5")
@pytest.mark.sqlite("a backup of a log in a file")
def test_a_backup_beside_a_host_leaves_a_receipt(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    with SessionSystem(store, agents={"main": echo()}) as system:
        speak(system)
        done = ran("backup", tmp_path / "copy.db", "--store", store, "--json").json
        speak(system)
        first = system.status()["copy"]
        whole = ran("verify", "--store", tmp_path / "copy.db").exit_code

    assert (first["by"], first["position"], whole) == ("operator", done["position"], 0)
    assert ran("backup", tmp_path / "copy.db", "--store", store, "--json").json["ok"]  # no host is there
