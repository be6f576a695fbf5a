"""`intersession backup` copies a log while it is in use: verified, never over anything, whole or not at all."""

import signal
from pathlib import Path
from typing import Any

import pytest

from intersession import File, SessionSystem, echo
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.any_log import changed_behind
from support.doors.command_line import DemoLog, ran, ran_as_process
from support.running import WAIT


def speak(system: SessionSystem, text: str, **more: Any) -> None:
    system.inbound(channel="telegram", chat_id="1", sender="ada", text=text, wait=WAIT, **more)


def backed_up(tmp_path: Path) -> tuple[Path, Path]:
    """Have a log answer once, and copy it; return both files."""
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    with SessionSystem(store, agents={"main": echo("heard: ")}) as system:
        speak(system, "one")
    assert ran("backup", copy, "--store", store).exit_code == 0
    return store, copy


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
    assert done.json["receipt"]
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
    assert "no host left a receipt of it" in told
    again = ran("backup", tmp_path / "copy.db", "--store", demo_log.path)
    assert "no host left a receipt of it" in again.out
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


@pytest.mark.clause("O6", "COPY-1", "B3", "B4")
@pytest.mark.parametrize(("point", "kept"), [("B3", 0), ("B4", 1)])
def test_a_continuation_that_is_killed_is_all_there_or_not_at_all(
    tmp_path: Path, point: str, kept: int
) -> None:
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    with SessionSystem(store, agents={"main": echo("heard: ")}) as system:
        speak(system, "one")
        assert ran("backup", copy, "--store", store).exit_code == 0
        speak(system, "two")
    before = head(copy)

    killed = ran_as_process("backup", copy, "--store", store, variables={"INTERSESSION_CRASH_AT": point})

    assert killed.exit_code == -signal.SIGKILL
    assert head(copy) == (head(store) if kept else before)
    assert ran("backup", copy, "--store", store, "--verify").exit_code == 0
    assert head(copy) == head(store) > before


def head(path: Path) -> int:
    with open_log(str(path), read_only=True) as log:
        return log.head()


@pytest.mark.clause("COPY-2")
def test_a_log_that_was_cut_is_refused_with_the_evidence(tmp_path: Path) -> None:
    store, copy = backed_up(tmp_path)
    changed_behind(store, "DELETE FROM stored_events WHERE rowid > 4")

    refused = ran("backup", copy, "--store", store, "--json")

    assert (refused.exit_code, refused.json["code"]) == (4, "log_rewritten")
    assert "its end was cut off" in refused.json["error"]
    assert "keep it, it is the evidence" in refused.json["error"]


@pytest.mark.clause("COPY-4")
def test_a_copy_is_restored_with_what_that_loses_and_does_again(tmp_path: Path) -> None:
    store, copy, moved = tmp_path / "s.db", tmp_path / "copy.db", tmp_path / "moved.db"
    lines = tmp_path / "lines"
    config = {"checkpoints": {"publish": {"file": str(lines)}}}
    with SessionSystem(store, agents={"main": echo("heard: ")}, config=config) as system:
        speak(system, "one")  # nobody has its channel, so its answer waits
        assert ran("backup", copy, "--store", store).exit_code == 0
        speak(system, "two")
        system.erase("agent:main:main", unsent="giveUp")
    last = head(store)

    there = ran("restore", copy, "--store", store, "--json")
    done = ran("restore", copy, "--store", store, "--aside", "--published", lines, "--json")
    elsewhere = ran("restore", copy, "--store", moved)

    assert (there.exit_code, "--aside moves it away" in there.json["error"]) == (1, True)
    assert done.exit_code == 0
    assert done.json["position"] == head(store) == head(moved) < last
    assert done.json["lost"]["asideUpTo"] == head(tmp_path / "s.db.aside") == last
    assert done.json["lost"]["publishedUpTo"] > done.json["position"]
    assert "session:agent:main:main" in {one["stream"] for one in done.json["lost"]["erasures"]}
    assert len(done.json["again"]["deliveries"]) == 1
    assert "the next host makes 0 runs again, and 1 text may go out again" in elsewhere.out
    assert ran("verify", "--store", store).exit_code == 0
    assert "heard: one" in ran("history", "main", "--store", store).out


@pytest.mark.clause("COPY-4")
def test_a_log_that_is_moved_aside_never_lies_there_without_its_last_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: its -wal was moved first, and a host that was started after a kill began without them."""
    store, copy = backed_up(tmp_path)
    Path(f"{store}-wal").touch()
    moved: list[str] = []
    rename = Path.rename

    def once(path: Path, target: Path) -> Path:
        if moved and path.name.startswith("s.db"):
            raise KeyboardInterrupt
        moved.append(path.name)
        return rename(path, target)

    with monkeypatch.context() as killed:
        killed.setattr(Path, "rename", once)
        assert ran("restore", copy, "--store", store, "--aside").exit_code == 130
    done = ran("restore", copy, "--store", store, "--aside", "--json")

    assert moved == ["s.db"]
    assert (done.exit_code, done.json["aside"]) == (0, str(tmp_path / "s.db.aside"))
    assert head(tmp_path / "s.db.aside") == head(store)


@pytest.mark.clause("COPY-4", "FILE-7")
def test_a_restore_that_was_killed_with_its_files_in_place_is_made_once_more(tmp_path: Path) -> None:
    """Before: the files that it had put there were in the way of each further one."""
    store, copy = tmp_path / "s.db", tmp_path / "copy.db"
    with SessionSystem(store, agents={"main": echo("heard: ")}) as system:
        speak(system, "one", files=[File(data=b"a file", name="a.txt")])
    assert ran("backup", copy, "--store", store).exit_code == 0
    assert ran("restore", copy, "--store", store, "--aside").exit_code == 0
    for suffix in ("", "-wal", "-shm"):  # what is there after a kill between the two
        Path(f"{store}{suffix}").unlink(missing_ok=True)

    done = ran("restore", copy, "--store", store, "--aside", "--json")

    assert done.exit_code == 0
    assert (
        ran("verify", "--store", store).exit_code == ran("verify", "--store", f"{store}.aside").exit_code == 0
    )
    for suffix in ("", "-wal", "-shm"):
        Path(f"{store}.aside{suffix}").unlink(missing_ok=True)
    refused = ran("restore", copy, "--store", store, "--aside", "--json")
    assert f"{store}.aside.files is there already" in refused.json["error"]


@pytest.mark.clause("COPY-4")
def test_a_copy_that_was_changed_is_not_restored(tmp_path: Path) -> None:
    _, copy = backed_up(tmp_path)
    changed_behind(copy, "UPDATE stored_events SET topic='run_failed.1' WHERE rowid=5")

    refused = ran("restore", copy, "--store", tmp_path / "new.db", "--json")

    assert (refused.exit_code, refused.json["code"]) == (4, "log_rewritten")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.postgres
@pytest.mark.clause("COPY-1", "COPY-4")
def test_a_log_on_postgresql_is_copied_into_a_file_continued_and_restored(
    postgres_url: str, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    with SessionSystem(postgres_url, agents={"main": echo("heard: ")}) as system:
        speak(system, "one")
        assert ran("backup", copy, "--rows", "--store", postgres_url).exit_code == 0
        speak(system, "two")
        assert ran("backup", copy, "--store", postgres_url).exit_code == 0
    target = postgres_url.replace("schema=log_", "schema=back_")
    assert ran("restore", copy, "--store", target).exit_code == 0
    assert "heard: two" in ran("history", "main", "--store", target).out
    assert ran("verify", "--store", target).exit_code == 0
