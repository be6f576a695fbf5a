"""Copies of a log that is being written: each is a whole log, as it stood at a moment."""

import itertools
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from intersession_events.basics.errors import BackupFailed, NotALog
from intersession_events.log.recorded import Recorded
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.backup import back_up
from intersession_events.stores.opened import open_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import changed_behind
from support.log_drafts import anywhere, said

WRITERS = 4


def backup(source: Path, target: Path) -> None:
    """Copy a log with SQLite's own backup."""
    reading, writing = sqlite3.connect(source), sqlite3.connect(target)
    reading.backup(writing, pages=16)
    reading.close()
    writing.close()


def vacuum(source: Path, target: Path) -> None:
    """Copy a log with `VACUUM INTO`."""
    reading = sqlite3.connect(source)
    reading.execute("VACUUM INTO ?", (str(target),))
    reading.close()


def ours(source: Path, target: Path) -> None:
    """Copy a log with the backup that `intersession backup` makes."""
    with open_log(f"sqlite:///{source}", read_only=True) as log:
        assert back_up(log, target).ok


def copied_under_load(folder: Path, copy: Callable[[Path, Path], None], number: int) -> list[Path]:
    """Copy a log that is written to all the while; return the copies."""
    path = folder / "log.db"
    copies = [folder / f"copy-{index}.db" for index in range(number)]
    over = threading.Event()
    with SqliteLog(path) as log:
        written = threading.Semaphore(0)

        def write(writer: int) -> None:
            for index in itertools.count():
                if over.is_set():
                    return
                log.append_now([anywhere(f"session:{writer}", said(f"{writer}-{index}", "x" * 200))])
                written.release()

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        for target in copies:
            while written.acquire(blocking=False):
                pass
            for _ in range(WRITERS * 2):
                assert written.acquire(timeout=20)
            copy(path, target)
        over.set()
        for thread in threads:
            thread.join(20)
    return copies


def check(folder: Path, copies: list[Path]) -> None:
    with open_log(f"sqlite:///{folder / 'log.db'}", read_only=True) as log:
        whole = list(log.all())
        lengths: list[int] = []
        for target in copies:
            with open_log(f"sqlite:///{target}", read_only=True) as restored:
                assert verify_log(restored).ok
                events: list[Recorded] = list(restored.all())
                assert events == whole[: len(events)]
                assert restored.log_id == log.log_id
                lengths.append(len(events))
    assert lengths == sorted(lengths)
    assert 0 < lengths[0] < lengths[-1]


def test_a_log_in_memory_can_be_copied(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with SqliteLog(":memory:") as log:
        log.append_now((anywhere("session:x", said("a")),))

        assert back_up(log, copy).ok
        with open_log(f"sqlite:///{copy}", read_only=True) as read:
            assert [item.hash for item in read.all()] == [item.hash for item in log.all()]


@pytest.mark.clause("D10")
@pytest.mark.parametrize("copy", [backup, vacuum, ours])
def test_a_copy_under_load_is_a_prefix_of_the_log(tmp_path: Path, copy: Callable[[Path, Path], None]) -> None:
    check(tmp_path, copied_under_load(tmp_path, copy, 5))


@pytest.mark.nightly
@pytest.mark.clause("D10")
def test_a_hundred_copies_under_load_are_prefixes_of_the_log(tmp_path: Path) -> None:
    check(tmp_path, copied_under_load(tmp_path, backup, 100))


@pytest.mark.clause("D10")
def test_a_copy_is_written_on_from_where_it_stood(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("session:x", said("a"))])
        backup(tmp_path / "log.db", tmp_path / "copy.db")
        log.append_now([anywhere("session:x", said("b"))])
    with SqliteLog(tmp_path / "copy.db") as copy:
        copy.append_now([anywhere("session:x", said("c"))])

        assert [recorded.position for recorded in copy.all()] == [1, 2]
        assert verify_log(copy).ok


@pytest.mark.clause("D10")
def test_a_log_made_of_a_dump_is_refused(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("session:x", said("a"))])
    source, restored = sqlite3.connect(tmp_path / "log.db"), sqlite3.connect(tmp_path / "dumped.db")
    restored.executescript("\n".join(source.iterdump()))
    source.close()
    restored.close()

    with pytest.raises(NotALog):
        open_log(f"sqlite:///{tmp_path / 'dumped.db'}", read_only=True)
    with pytest.raises(NotALog):
        SqliteLog(tmp_path / "dumped.db")


@pytest.mark.clause("D10")
def test_a_backup_overwrites_nothing_and_leaves_nothing_where_it_fails(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("session:x", said("a"))])
        for name in ("there.db", "there2.db-wal"):
            (tmp_path / name).write_bytes(b"mine")
        (tmp_path / "link.db").symlink_to(tmp_path / "nowhere.db")
        before = set(tmp_path.iterdir())

        for target in ("there.db", "there2.db", "link.db", "no/where.db", "log.db", "."):
            with pytest.raises(BackupFailed):
                back_up(log, tmp_path / target)

        assert set(tmp_path.iterdir()) == before
        assert (tmp_path / "there.db").read_bytes() == b"mine"


@pytest.mark.clause("D10")
def test_a_backup_has_the_rights_of_the_log_and_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("session:x", said(str(number))) for number in range(50)])
        (tmp_path / "log.db").chmod(0o640)
        back_up(
            log,
            tmp_path / "copy.db",
            copying=lambda done, of: told.append(("copying", done, of)),
            verifying=lambda done, of: told.append(("verifying", done, of)),
        )

    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o640
    assert {what for what, done, of in told if done == of} == {"copying", "verifying"}
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == ["copy.db"]


@pytest.mark.clause("D10")
def test_no_backup_is_kept_of_a_log_that_was_changed(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("session:x", said("a"))])
    changed_behind(tmp_path / "log.db", "UPDATE stored_events SET topic = 'run_failed.1'")

    changed = open_log(f"sqlite:///{tmp_path / 'log.db'}", read_only=True)
    with changed as log, pytest.raises(BackupFailed, match="changed"):
        back_up(log, tmp_path / "copy.db")
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name]
