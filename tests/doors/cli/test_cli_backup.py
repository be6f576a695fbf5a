"""`intersession backup` copies a log while it is in use: verified, never over anything, whole or not at all."""

import signal
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.doors.command_line import DemoLog, ran, ran_as_process
from support.running import WAIT


def speak(system: SessionSystem, text: str) -> None:
    system.inbound(channel="telegram", chat_id="1", sender="ada", text=text, wait=WAIT)


def test_a_log_is_backed_up_while_its_host_goes_on_and_the_copy_goes_on_from_there(tmp_path: Path) -> None:
    """Before: it was there in Python alone."""
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    with SessionSystem(store, agents={"main": echo("heard: ")}) as system:
        speak(system, "one")
        done = ran("backup", copy, "--store", store, "--json")
        speak(system, "two")
        log_id = system.log.log_id

    assert (done.exit_code, done.json["file"], done.json["logId"]) == (0, str(copy), log_id)
    assert done.json["events"] == done.json["position"] > 0
    assert "one" in (told := ran("history", "main", "--store", copy).out)
    assert "two" not in told
    with SessionSystem(copy, agents={"main": echo("heard: ")}) as restored:
        speak(restored, "three")
    with open_log(f"sqlite:///{copy}", read_only=True) as log:
        assert verify_log(log).ok
    assert "heard: three" in ran("history", "main", "--store", copy).out


def test_people_are_told_what_is_in_the_copy(demo_log: DemoLog, tmp_path: Path) -> None:
    told = ran("backup", tmp_path / "copy.db", "--store", demo_log.path).out

    assert told.startswith(f"backed up: {demo_log.value['position']} events up to position")
    assert ran("verify", "--store", tmp_path / "copy.db").exit_code == 0


@pytest.mark.parametrize("target", ["there.db", "no/where.db", ""])
def test_what_can_not_be_written_is_refused(demo_log: DemoLog, tmp_path: Path, target: str) -> None:
    (tmp_path / "there.db").write_text("mine", encoding="utf-8")

    refused = ran("backup", tmp_path / target, "--store", demo_log.path, "--json")

    assert (refused.exit_code, refused.json["code"]) == (1, "backup_failed")
    assert [path.name for path in tmp_path.iterdir()] == ["there.db"]


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    refused = ran("backup", tmp_path / "copy.db", "--store", tmp_path / "none.db", "--json")

    assert (refused.exit_code, refused.json["code"]) == (3, "no_store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("O6", "D10", "B2")
def test_a_backup_that_is_killed_leaves_the_log_and_the_old_backup_as_they_were(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store, old, new = demo_log.copy(tmp_path), tmp_path / "old.db", tmp_path / "new.db"
    assert ran("backup", old, "--store", store).exit_code == 0
    before = old.read_bytes()

    killed = ran_as_process("backup", new, "--store", store, variables={"INTERSESSION_CRASH_AT": "B2"})

    assert killed.exit_code == -signal.SIGKILL
    assert not new.exists()
    assert old.read_bytes() == before
    assert ran("verify", "--store", store).exit_code == 0
    assert ran("backup", new, "--store", store).exit_code == 0
    with open_log(f"sqlite:///{new}", read_only=True) as copy:
        assert copy.head() == demo_log.value["position"]
