"""What a log says when its file has a second name, is moved, deleted or replaced, or lies where nothing can be written."""

import logging
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

import pytest

from intersession_events.basics.errors import StoreLocked, StoreUnavailable
from intersession_events.log.recorded import Outcome, Unavailable
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.database import Cursor
from intersession_events.stores.sqlite.ahead import Index
from intersession_events.stores.sqlite.connections import raw_of
from intersession_events.stores.sqlite.held import keep_open
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.names import check_one_name, inode_of
from support.any_log import changed_behind
from support.faulty_store import FAULT, FAULTY, sync_failed
from support.log_drafts import anywhere, said, to
from support.running import WAIT
from support.transacting import transact

UNSHARE = shutil.which("unshare") or "unshare"
A, B, C = (said(name) for name in "abc")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, A)])
    return tmp_path / "log.db"


def copied(source: Path, target: Path) -> Path:
    with closing(sqlite3.connect(source)) as reading, closing(sqlite3.connect(target)) as writing:
        reading.backup(writing)
    return target


# One name


@pytest.mark.clause("D11")
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ["log.db", "other.db"])
def test_a_file_with_a_hard_link_is_refused_by_either_name(path: Path, name: str, read_only: bool) -> None:
    """B1: what was acknowledged under one name was lost under the other."""
    os.link(path, path.with_name("other.db"))
    before = sorted(path.parent.iterdir())

    with pytest.raises(StoreUnavailable, match="keep one name, or copy"):
        SqliteLog(path.with_name(name), read_only=read_only)

    assert sorted(path.parent.iterdir()) == before
    path.with_name("other.db").unlink()
    with SqliteLog(path) as log:
        assert log.head() == 1


@pytest.mark.clause("D11")
def test_a_symbolic_link_is_another_way_to_the_one_name(path: Path) -> None:
    link = path.parent / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(Path("..") / "log.db")

    with SqliteLog(link) as log:
        log.append_now([to("s", 1, B)])
        with pytest.raises(StoreLocked):
            SqliteLog(path)
        with SqliteLog(path, read_only=True) as reader:
            assert [event.id for event in reader.all()] == ["id-a", "id-b"]
    assert list(link.parent.iterdir()) == [link]


OPENING = """
import sys
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.database import Cursor
for read_only in (False, True):
    try:
        SqliteLog(sys.argv[1], read_only=read_only)
    except StoreUnavailable as error:
        print(error)
"""


@pytest.mark.clause("D11")
def test_a_file_that_is_mounted_by_itself_is_refused(path: Path) -> None:
    """B1: 200 of 200 acknowledged events were lost with the container that held the write-ahead log."""
    mounted = path.parent / "in a container" / "log.db"
    mounted.parent.mkdir()
    mounted.touch()
    script = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$2"'
    arguments = [path, mounted, sys.executable, OPENING]
    done = subprocess.run(
        [UNSHARE, "-rm", "/bin/sh", "-c", script, "sh", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")

    refusals = done.stdout.splitlines()
    assert len(refusals) == 2  # to write, and to read
    assert all(
        f"{mounted} is mounted by itself" in each and "mount the directory" in each for each in refusals
    )
    assert list(mounted.parent.iterdir()) == [mounted]


@pytest.mark.clause("D11")
@pytest.mark.parametrize("name", ["log.db", "a b.db", "tab\tbed.db", "back\\slash.db", "ä\n.db"])
def test_the_list_of_mounts_is_read_as_the_kernel_writes_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    escaped = os.fsencode(path)
    for byte in b"\\ \t\n":
        escaped = escaped.replace(bytes([byte]), b"\\%03o" % byte)
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(
        b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n31 22 8:1 /x %b rw,relatime - ext4 a rw\n" % escaped
    )

    with pytest.raises(StoreUnavailable, match="mounted by itself"):
        check_one_name(str(path), mounts=mounts)
    check_one_name(str(tmp_path / "other.db"), mounts=mounts)
    check_one_name(str(path), mounts=tmp_path / "no list of mounts")


# One writer, whatever happens to the names


@pytest.mark.clause("D8")
def test_a_log_that_was_moved_while_open_gets_no_second_writer(path: Path) -> None:
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        path.rename(path.with_name("moved.db"))

        other = subprocess.run(
            [sys.executable, "-c", OPENING, path.with_name("moved.db")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "moved.db has a writer already (by another name" in other.stdout

    with SqliteLog(path.with_name("moved.db")) as moved:
        assert [event.id for event in moved.all()] == ["id-a", "id-b"]


@pytest.mark.clause("D8")
def test_a_log_whose_lock_was_deleted_gets_no_second_writer(path: Path) -> None:
    with SqliteLog(path) as log:
        path.with_name("log.db.lock").unlink()

        with pytest.raises(StoreLocked):
            SqliteLog(path)
        assert log.append_now([to("s", 1, B)]).position == 2

    with SqliteLog(path) as log:
        assert log.epoch == 3


@pytest.mark.clause("D12")
def test_no_opening_and_closing_here_lets_others_take_the_write_ahead_log_away(path: Path) -> None:
    """B2's kind: a process that closes any descriptor of a file drops all its locks on it, SQLite's too."""
    others = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM log_topics'); c.close()"
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        with SqliteLog(path, read_only=True) as reader:
            assert reader.head() == 2
        with pytest.raises(StoreLocked):
            SqliteLog(path)
        before = path.with_name("log.db-wal").stat().st_ino

        subprocess.run([sys.executable, "-c", others, path], check=True)

        assert path.with_name("log.db-wal").stat().st_ino == before
        assert log.append_now([to("s", 2, C)]).position == 3
    with SqliteLog(path, read_only=True) as reader:
        assert reader.head() == 3


def descriptors(path: Path) -> int:
    """Count the descriptors of a log's files; those of threads that other tests left come and go."""
    count = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            count += each.readlink().parent == path.parent
    return count


def test_opening_and_closing_leaves_no_descriptor_behind(path: Path) -> None:
    with SqliteLog(path, read_only=True):
        before = descriptors(path)
        for _ in range(5):
            with SqliteLog(path) as log:
                log.head()
    assert descriptors(path) < before + 5


# The same file


def deleted(path: Path) -> None:
    path.unlink()


def moved_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


@pytest.mark.clause("D12")
@pytest.mark.parametrize("what", [deleted, moved_away, replaced])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_nothing_is_acknowledged_into_files_that_are_not_there_any_more(
    path: Path, suffix: str, what: Callable[[Path], None]
) -> None:
    """B2: a deleted or replaced file went on being acknowledged into."""
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        what(path.with_name(path.name + suffix))

        errors: list[StoreUnavailable] = []
        for attempt in (
            lambda: log.append_now([to("s", 2, C)]),
            lambda: log.append_now([to("s", 2, C)]),
            lambda: transact(log, lambda sql: sql.execute("CREATE TABLE t (a)")),
        ):
            with pytest.raises(StoreUnavailable, match=f"log.db{suffix} is ") as refused:
                attempt()
            errors.append(refused.value)

        assert len(set(map(id, errors))) == 3
        assert "open the log again to write" in str(errors[-1])


@pytest.mark.clause("D12")
@pytest.mark.parametrize("left", [0, 2048])
def test_nothing_is_acknowledged_into_a_file_that_was_cut(path: Path, left: int) -> None:
    """B2's kind: after `> log.db` the file is the same, and what lay in it is gone."""
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
    with SqliteLog(path) as log:
        log.append_now([to("s", 2, C)])
        os.truncate(path, left)

        with pytest.raises(StoreUnavailable, match=f"cut it from [0-9]+ to {left} bytes"):
            log.append_now([to("s", 3, B)])


@pytest.mark.clause("D12")
@pytest.mark.parametrize("left", [0, 3_000])
def test_nothing_is_acknowledged_behind_a_write_ahead_log_that_was_cut(path: Path, left: int) -> None:
    """B2's kind: SQLite wrote on behind the hole, and what it had acknowledged was lost with what lay there."""
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        os.truncate(f"{path}-wal", left)

        with pytest.raises(StoreUnavailable, match=f"log.db-wal is shorter than it was: .* to {left} bytes"):
            log.append_now([to("s", 2, C)])

    with SqliteLog(path) as log:
        assert [event.id for event in log.all()][:1] == ["id-a"]


@pytest.mark.clause("D12")
@pytest.mark.parametrize(
    ("begin", "end"),
    [(0, None), (0, 32), (32, None)],
    ids=["all", "its beginning", "all behind its beginning"],
)
def test_nothing_is_acknowledged_behind_a_write_ahead_log_that_was_overwritten(
    path: Path, begin: int, end: int | None
) -> None:
    """B2's kind: it was as long as before, so SQLite wrote on behind the zeros, and its next start read none of it."""
    wal = Path(f"{path}-wal")
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        with wal.open("r+b") as file:
            file.seek(begin)
            file.write(bytes((end or wal.stat().st_size) - begin))
        os.utime(wal, ns=(1, 1))  # a clock that ticks slowly would hide it from a test

        with pytest.raises(StoreUnavailable, match=r"log\.db-wal was overwritten while it was open"):
            log.append_now([to("s", 2, C)])


@pytest.mark.clause("D12")
def test_a_commit_looks_at_its_files_five_times(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    look = os.stat

    def noted(path: str) -> os.stat_result:
        looked.append(path)
        return look(path)

    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        with monkeypatch.context() as watched:
            watched.setattr(os, "stat", noted)
            log.append_now([to("s", 2, C)])

    files = [f"{path}", f"{path}-wal", f"{path}-shm"]
    assert looked == [*files[:2], *files]


def test_a_commit_of_events_of_a_known_stream_runs_four_statements(path: Path) -> None:
    ran: list[str] = []
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        transact(log, lambda sql: raw_of(cast("Cursor", sql)).set_trace_callback(ran.append))
        ran.clear()
        log.append_now([to("s", 2, C)])

    assert [statement.split()[0] for statement in ran] == ["BEGIN", "SELECT", "INSERT", "COMMIT"]


def frame_bytes(wal: Path) -> int:
    """Return how many bytes a frame has, as the file's own beginning says."""
    return 24 + int.from_bytes(wal.read_bytes()[8:12])


def overwrite(wal: Path, frame: int) -> None:
    """Overwrite a few bytes of the page in a frame, counted from the end where it is negative."""
    size = frame_bytes(wal)
    number = (wal.stat().st_size - 32) // size
    with wal.open("r+b") as file:
        file.seek(32 + (frame if frame >= 0 else number + frame) * size + 24 + 100)
        file.write(b"\x5a" * 16)


@pytest.mark.clause("D12")
@pytest.mark.parametrize("frame", [0, 7, -1])
def test_one_page_of_the_write_ahead_log_that_was_overwritten_stops_the_log_before_it_is_folded(
    path: Path, frame: int
) -> None:
    wal = Path(f"{path}-wal")
    with SqliteLog(path) as log:
        for version in range(1, 10):
            log.append_now([to("s", version, said(f"text {version}"))])
        whole = wal.read_bytes()
        overwrite(wal, frame)
        os.utime(wal, ns=(1, 1))  # a clock that ticks slowly would hide it from a test

        with pytest.raises(
            StoreUnavailable, match=r"was overwritten while it was open: frame \d+ of \d+ is not"
        ):
            log.append_now([to("s", 10, C)])

    # Nothing of it went into the database: with what was written in its place, all is there.
    wal.write_bytes(whole)
    with SqliteLog(path) as log:
        assert log.head() == 10


@pytest.mark.clause("D12")
@pytest.mark.parametrize("frame", [0, 12])
def test_what_a_damaged_write_ahead_log_has_cost_is_said_and_nothing_is_written_over_it(
    path: Path, frame: int
) -> None:
    crashed = path.with_name("crashed.db")
    wal = Path(f"{crashed}-wal")
    with SqliteLog(path) as log:
        for version in range(1, 10):
            log.append_now([to("s", version, said(f"text {version}"))])
        for suffix in ("", "-wal"):  # as a `kill -9` leaves them
            shutil.copyfile(f"{path}{suffix}", f"{crashed}{suffix}")
    whole = wal.read_bytes()
    overwrite(wal, frame)

    with pytest.raises(
        StoreUnavailable, match=r"crashed\.db-wal was damaged .* commits behind its frame \d+ were"
    ):
        SqliteLog(crashed)
    with SqliteLog(crashed, read_only=True) as log:
        head, report = log.head(), verify_log(log)
    assert not report.ok
    (cost,) = [one.problem for one in report.findings if "left out" in one.problem]
    assert f"positions {head + 1} to 10, which were acknowledged" in cost
    wal.write_bytes(whole)
    with SqliteLog(crashed) as log:
        assert log.head() == 10


@pytest.mark.clause("D12")
def test_what_a_damage_has_cost_is_said_of_a_log_that_lies_in_its_write_ahead_log_alone(path: Path) -> None:
    crashed = path.with_name("crashed.db")
    wal = Path(f"{crashed}-wal")
    with SqliteLog(path.with_name("new.db")) as log:
        for version in range(10):
            log.append_now([to("s", version, said(f"text {version}"))])
        for suffix in ("", "-wal"):  # as a `kill -9` leaves them, before anything was folded into the file
            shutil.copyfile(f"{log.path}{suffix}", f"{crashed}{suffix}")
    with wal.open("r+b") as file:
        file.seek(16)  # the salt of its header, without which no frame counts
        file.write(b"odd!")

    with pytest.raises(
        StoreUnavailable, match=r"crashed\.db-wal was damaged .* with positions 1 to 10, which"
    ):
        SqliteLog(crashed, read_only=True)


@pytest.mark.clause("D12", "D2")
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_commit_that_a_power_cut_left_in_parts_keeps_nobody_out(path: Path, lost: int) -> None:
    crashed = path.with_name("crashed.db")
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        before = Path(f"{path}-wal").stat().st_size
        log.append_now(
            [to("s", 2, C)]
        )  # say that the disk did not get all of this one, and nobody heard of it
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{crashed}{suffix}")
    wal = Path(f"{crashed}-wal")
    with wal.open("r+b") as file:
        file.seek(before + 24)
        file.write(bytes(lost * 100))

    with SqliteLog(crashed) as log:
        assert (log.head(), log.append_now([to("s", 2, C)]).position) == (2, 3)


CHECKPOINTS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
assert connection.execute(f"PRAGMA wal_checkpoint({sys.argv[2]})").fetchone()[0] == 0
connection.close()
"""


@pytest.mark.clause("D12")
@pytest.mark.parametrize("how", ["TRUNCATE", "RESTART", "PASSIVE"])
def test_a_write_ahead_log_that_another_process_folds_is_not_taken_for_one_that_was_cut(
    path: Path, how: str
) -> None:
    """B2's kind: a tool that backs up, or an operator, folds it, as SQLite lets everybody do; the log refused all from then on."""
    with SqliteLog(path) as log:
        for version in range(1, 4):
            log.append_now([to("s", version, said(f"text {version}"))])
            subprocess.run([sys.executable, "-c", CHECKPOINTS, path, how], check=True)

    with SqliteLog(path) as log:
        assert log.head() == 4


@pytest.mark.clause("D12")
def test_a_write_ahead_log_that_others_wrote_to_as_sqlite_does_is_no_harm(path: Path) -> None:
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        changed_behind(path, "CREATE TABLE of_a_backup (sequence INTEGER)")
        os.utime(f"{path}-wal", ns=(1, 1))
        log.append_now([to("s", 2, C)])

        assert log.head() == 3


def backup_of_before(path: Path) -> Path:
    other = copied(path, path.with_name("before.db"))
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
    return other


def backup_of_another(path: Path) -> Path:
    with SqliteLog(path.with_name("another.db")) as log:
        log.append_now([to("s", 0, said("a long text " * 3_000))])
    return path.with_name("another.db")


def no_database(path: Path) -> Path:
    path.with_name("text").write_bytes(b"no database " * 20_000)
    return path.with_name("text")


@pytest.mark.clause("D12")
@pytest.mark.parametrize("given", [backup_of_before, backup_of_another, no_database])
def test_nothing_is_acknowledged_into_a_file_that_was_overwritten(
    path: Path, given: Callable[[Path], Path]
) -> None:
    """B2's kind: `cp backup.db log.db` leaves the file the same, and what lies in it is another log."""
    other = given(path)
    with SqliteLog(path) as log:
        log.append_now([to("s", 2 if given is backup_of_before else 1, C)])
        with path.open("r+b") as file, other.open("rb") as source:
            shutil.copyfileobj(source, file)
        os.utime(path, ns=(1, 1))  # a clock that ticks slowly would hide it from a test

        with pytest.raises(
            StoreUnavailable, match=r"log\.db was overwritten while it was open: what is in it now"
        ):
            log.append_now([to("s", 3 if given is backup_of_before else 2, B)])

    # What was written over it is there as it was written: nothing of the log before is mixed with it.
    assert path.read_bytes()[: other.stat().st_size] == other.read_bytes()
    assert not Path(f"{path}-wal").exists()
    assert len(list(path.parent.glob("log.db-wal.of-*"))) == 1


def held_up(log: SqliteLog, path: Path, batches: int) -> Generator[int]:
    """Append batches of texts of many lengths, while readers hold up the folding now and then; yield behind each."""
    chance, readers = random.Random(0), list[sqlite3.Connection]()  # noqa: S311 - the same again
    number = 0
    try:
        for batch in range(batches):
            names = [f"{number + one}" for one in range(chance.randint(1, 60))]
            number += len(names)
            lengths = [chance.choice([10, 200, 900, 1500, 4000]) for _ in names]
            log.append_now(
                [
                    anywhere(f"s{chance.randint(0, 50)}", said(name, "x" * length))
                    for name, length in zip(names, lengths, strict=True)
                ]
            )
            if chance.random() < 0.3:
                reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
                reader.execute("BEGIN")
                reader.execute("SELECT * FROM log_identity").fetchone()
                readers.append(reader)
            while len(readers) > 3 or (readers and chance.random() < 0.2):
                readers.pop(chance.randrange(len(readers))).close()
            yield batch
    finally:
        for reader in readers:
            reader.close()


def part_of(path: Path) -> Index:
    # Kept open: closing it would drop the locks that SQLite holds on it.
    return Index.read(keep_open(inode_of(str(path)), f"{path}-shm"))


@pytest.mark.clause("D12", "E2")
def test_a_fold_that_readers_hold_up_is_no_harm(path: Path) -> None:
    # It leaves a page out that was written again since: for a while the database by itself ends earlier than it did.
    with SqliteLog(path) as log:
        assert sum(1 for _ in held_up(log, path, 310)) == 310


@pytest.mark.clause("D12")
@pytest.mark.parametrize("ahead_is_cut", [False, True])
def test_a_file_that_is_overwritten_while_readers_hold_up_a_fold_is_noticed(
    path: Path, *, ahead_is_cut: bool
) -> None:
    backup = path.with_name("before.db")
    with SqliteLog(path) as log:
        behind = held_up(log, path, 310)
        for batch in behind:
            if batch == 150:
                with closing(sqlite3.connect(path)) as now, closing(sqlite3.connect(backup)) as copy:
                    now.backup(copy)
            if batch > 200 and 0 < part_of(path).folded < part_of(path).frames:
                break
        with path.open("r+b") as file, backup.open("rb") as source:
            shutil.copyfileobj(source, file)
        if ahead_is_cut:  # so there is nothing left that the file could be compared with
            os.truncate(f"{path}-wal", 32)
        os.utime(path, ns=(1, 1))  # a clock that ticks slowly would hide it from a test

        with pytest.raises(StoreUnavailable, match=r"log\.db was overwritten while it was open"):
            next(behind)


@pytest.mark.clause("D12", "E2")
def test_what_is_folded_back_and_emptied_by_the_writer_itself_is_no_harm(path: Path) -> None:
    with SqliteLog(path) as log:
        for version in range(1, 4):
            log.append_now([to("s", version, said(f"text {version}"))])
            log._the_writer().opened.erased()
            Path(f"{path}-wal").stat()
        before = descriptors(path)
        for version in range(4, 9):
            log.append_now([to("s", version, said(f"text {version}"))])
            log._the_writer().opened.erased()

        assert log.head() == 9
        assert descriptors(path) == before > 0


@pytest.mark.clause("D12")
def test_what_waited_when_the_file_went_is_not_acknowledged_either(path: Path) -> None:
    told: list[Outcome] = []
    with SqliteLog(path, threads=False) as log:
        log.append([anywhere("s", B)], told.append)
        transact(log, lambda sql: sql.execute("CREATE TABLE t (a)"))
        log.append([anywhere("s", said("last"))], told.append)
        path.unlink()
        log.append([anywhere("s", C)], told.append)
        while log.step():
            pass

    assert [type(outcome) for outcome in told[1:]] == [Unavailable, Unavailable]


@pytest.mark.clause("D12")
def test_a_log_that_took_the_place_of_another_keeps_its_write_ahead_log(path: Path) -> None:
    """B2's kind: SQLite deletes the write-ahead log by its name when it closes, whosever it is by then."""
    other = copied(path, path.with_name("other.db"))
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        other.replace(path)
        path.with_name("log.db-wal").unlink()
        path.with_name("log.db-wal").write_bytes(b"the other's")

    assert path.with_name("log.db-wal").read_bytes() == b"the other's"


@pytest.mark.clause("D12")
def test_a_log_that_took_the_place_of_another_gets_nothing_of_its_write_ahead_log(path: Path) -> None:
    other = copied(path, path.with_name("other.db"))
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        other.replace(path)

    with SqliteLog(path) as log:
        assert [event.id for event in log.all()] == ["id-a"]


@pytest.mark.clause("D12")
def test_readers_do_not_mix_a_log_with_the_one_that_took_its_place(path: Path) -> None:
    other = copied(path, path.with_name("other.db"))
    with SqliteLog(path) as log, SqliteLog(path, read_only=True) as reader:
        assert reader.head() == 1
        log.append_now([to("s", 1, B)])
        other.replace(path)

        with pytest.raises(StoreUnavailable, match="another file"):
            reader.head()


@pytest.mark.clause("D4")
def test_each_refusal_after_a_failure_of_the_device_is_an_error_of_its_own(tmp_path: Path) -> None:
    """B11: one object was raised for ever, and its traceback grew with each raise."""
    with SqliteLog(tmp_path / "log.db", environment=FAULTY) as log:
        FAULT.before = sync_failed()
        with pytest.raises(StoreUnavailable):
            log.append_now([to("s", 0, A)])

        def refusal() -> tuple[BaseException, int, int]:
            with pytest.raises(StoreUnavailable, match="the device failed") as refused:
                log.append_now([to("s", 0, A)])
            return refused.value, len(str(refused.value)), depth(refused.value)

        first, *size = refusal()
        again = [refusal() for _ in range(5)]

    assert len({id(first), *(id(error) for error, *_ in again)}) == 6
    assert all(sizes == size for _, *sizes in again)
    causes = [error.__cause__ for error in (first, *(error for error, *_ in again))]
    assert all(cause is not None and "disk I/O error" in str(cause) for cause in causes)


def depth(error: BaseException) -> int:
    """Count the frames and causes that an error holds."""
    frames, below = 0, error.__traceback__
    while below is not None:
        frames, below = frames + 1, below.tb_next
    return frames + (depth(error.__cause__) if error.__cause__ is not None else 0)


def test_callers_of_one_commit_that_failed_get_errors_of_their_own(tmp_path: Path) -> None:
    told: list[Outcome] = []
    with SqliteLog(tmp_path / "log.db", threads=False) as log:
        changed_behind(tmp_path / "log.db", "UPDATE log_identity SET epoch=epoch+1")
        for name in "abc":
            log.append([anywhere("s", said(name))], told.append)
        log.step()

    errors = [outcome.error for outcome in told if isinstance(outcome, Unavailable)]
    assert [type(error).__name__ for error in errors] == ["WriterSuperseded"] * 3
    assert len({id(error) for error in errors}) == 3


# Where nothing can be written


SEALED = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -c "$3" "$1/$4"'

READING = """
import sys
from intersession_events.basics.errors import LogError
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.database import Cursor
try:
    with SqliteLog(sys.argv[1], read_only=True) as log:
        print([event.id for event in log.all()], log.query("SELECT COUNT(*) FROM log_topics"))
except LogError as error:
    print(error)
"""


def read_on_media_that_can_not_be_written(folder: Path, name: str) -> str:
    done = subprocess.run(
        [UNSHARE, "-rm", "/bin/sh", "-c", SEALED, "sh", str(folder), sys.executable, READING, name],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    return done.stdout


@pytest.mark.clause("D13")
def test_a_log_on_media_that_can_not_be_written_is_read(path: Path) -> None:
    """B9: it could not be opened at all."""
    assert read_on_media_that_can_not_be_written(path.parent, path.name) == "['id-a'] [(1,)]\n"


@pytest.mark.clause("D13")
def test_a_log_on_such_media_says_when_its_last_events_lie_beside_it(path: Path) -> None:
    media = path.parent / "media"
    media.mkdir()
    with SqliteLog(path) as log:
        log.append_now([to("s", 1, B)])
        for suffix in ("", "-wal"):
            shutil.copy(path.with_name(path.name + suffix), media)

    told = read_on_media_that_can_not_be_written(media, path.name)

    assert "-wal holds" in told
    assert "Copy both files" in told


FOLLOWING = """
import sys
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.database import Cursor
with SqliteLog(sys.argv[1], read_only=True) as log:
    for _ in sys.stdin:
        print(log.head(), flush=True)
"""


@pytest.mark.clause("D13")
def test_a_log_at_rest_is_read_anew_once_it_has_a_writer_elsewhere(path: Path) -> None:
    with subprocess.Popen(
        [UNSHARE, "-rm", "/bin/sh", "-c", SEALED, "sh", path.parent, sys.executable, FOLLOWING, path.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None

        def head() -> str:
            print(file=reader.stdin, flush=True)
            return reader.stdout.readline() if reader.stdout else ""

        if (first := head()) == "":
            pytest.skip("nothing can be mounted here")
        assert first == "1\n"
        with SqliteLog(path) as log:
            log.append_now([to("s", 1, B)])
            assert head() == "2\n"
            log.append_now([to("s", 2, C)])
            assert head() == "3\n"
        assert head() == "3\n"
        reader.stdin.close()


def test_only_the_owner_may_read_a_log_that_is_made(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db"):
        assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}


def test_a_reader_follows_again_once_the_file_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: the first failure ended it, and a host that follows the log for weeks heard of nothing any more."""
    path, away = tmp_path / "log.db", tmp_path / "away.db"
    heard, is_out = threading.Event(), threading.Event()
    with SqliteLog(str(path)) as log, SqliteLog(str(path), read_only=True) as reader:
        reader.on_committed(lambda _: heard.set())
        path.rename(away)
        logger = logging.getLogger("intersession.store")
        telling = Telling(is_out)
        logger.addHandler(telling)
        assert is_out.wait(WAIT)
        logger.removeHandler(telling)
        away.rename(path)
        log.append_now([anywhere("session:a", said("a"))])
        assert heard.wait(WAIT)

    assert "the log can't be followed now" in caplog.text


class Telling(logging.Handler):
    """Says that something was logged."""

    def __init__(self, told: threading.Event) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - as logging has it
        self._told.set()
