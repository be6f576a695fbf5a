"""What a log holds after its process was killed, forked, or raced for its file."""

import os
import random
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from intersession_events.basics.errors import (
    ForkedStoreError,
    StoreLocked,
    StoreUnavailable,
    WriterSuperseded,
)
from intersession_events.log.recorded import Outcome, Unavailable
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.writer_lock import holder_of
from support.any_log import changed_behind
from support.log_drafts import anywhere, said, to
from support.paths import TESTS
from support.processes.forked import Forked
from support.transacting import transact

# A host that forks is what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

CHILD = TESTS / "support" / "processes" / "appending_child.py"


def appending(log: Path, acks: Path, *, says: str = "said", crash_at: str = "") -> Forked:
    return Forked(CHILD, str(log), str(acks), says=acks.with_name(says), crash_at=crash_at)


def acknowledged(acks: Path) -> list[str]:
    return acks.read_text().split() if acks.exists() else []


def check_whole(log: SqliteLog, acks: Path) -> None:
    stored = [event.id for event in log.all()]
    assert set(acknowledged(acks)) <= set(stored)
    assert len(stored) == len(set(stored))
    # Half an append was never left: each has two events, side by side.
    assert all(
        second == first.replace("id-", "id-x")
        for first, second in zip(stored[::2], stored[1::2], strict=True)
    )
    assert verify_log(log).counts == {}
    assert log.query("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.clause("D1")
@pytest.mark.parametrize("cycles", [4, pytest.param(15, marks=pytest.mark.ci)])
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, cycles: int) -> None:
    path, acks = tmp_path / "log.db", tmp_path / "acks"
    chance = random.Random(4)  # noqa: S311 - when to kill, not whom
    for _ in range(cycles):
        before = len(acknowledged(acks))
        wanted = before + chance.randrange(0, 400)
        with appending(path, acks) as child:
            while len(acknowledged(acks)) <= wanted:
                assert child.wait(0.001) is None
            child.kill()
            assert child.wait(20) == -signal.SIGKILL
        with SqliteLog(path) as log:
            check_whole(log, acks)
    assert len(acknowledged(acks)) > cycles


@pytest.mark.clause("D1", "S1", "S2")
@pytest.mark.parametrize("point", ["S1:1", "S1:40", "S2:1", "S2:40"])
def test_a_writer_that_dies_round_its_commit_keeps_all_or_nothing(tmp_path: Path, point: str) -> None:
    path, acks = tmp_path / "log.db", tmp_path / "acks"

    with appending(path, acks, crash_at=point) as child:
        assert child.wait(30) == -signal.SIGKILL

    with SqliteLog(path) as log:
        check_whole(log, acks)
        if point == "S1:1":
            assert log.head() == 0
        if point.startswith("S2"):
            assert log.head() > len(acknowledged(acks))


@pytest.mark.clause("D8")
def test_a_second_writer_is_refused_with_the_first_ones_name(tmp_path: Path) -> None:
    path, acks = tmp_path / "log.db", tmp_path / "acks"
    with appending(path, acks) as child:
        while not acknowledged(acks):
            assert child.wait(0.001) is None

        with pytest.raises(StoreLocked, match=f"pid {child.pid}"):
            SqliteLog(path)
        with SqliteLog(path, read_only=True) as reader:
            assert reader.head() > 0

        child.kill()
        assert child.wait(20) == -signal.SIGKILL
        assert holder_of(str(path)) is not None  # the dead one's name is still there
        with SqliteLog(path) as log:
            assert log.epoch == 2


@pytest.mark.clause("D8")
@pytest.mark.parametrize("races", [1, pytest.param(4, marks=pytest.mark.ci)])
def test_of_two_that_race_exactly_one_becomes_the_writer(tmp_path: Path, races: int) -> None:
    for race in range(races):
        path, acks = tmp_path / f"{race}.db", tmp_path / f"{race}.acks"
        said = (f"{race}.one", f"{race}.other")
        with appending(path, acks, says=said[0]) as one, appending(path, acks, says=said[1]) as other:
            while one.wait(0.001) is None and other.wait(0.001) is None:
                pass
            loser, winner = (one, other) if one.wait(0) is not None else (other, one)
            assert f"StoreLocked: {path} has a writer already (pid {winner.pid})" in loser.said
            while not acknowledged(acks):
                assert winner.wait(0.001) is None
        with SqliteLog(path) as log:
            assert log.epoch == 2
            check_whole(log, acks)


@pytest.mark.clause("D8")
def test_a_writer_whose_epoch_is_over_may_not_write(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with SqliteLog(path) as old:
        old.append_now([to("s", 0, said("a"))])
        # Another machine that shares the disk sees none of our locks.
        changed_behind(path, "UPDATE log_identity SET epoch=epoch+1")

        with pytest.raises(WriterSuperseded):
            old.append_now([to("s", 1, said("c"))])
        with pytest.raises(WriterSuperseded):
            transact(old, lambda sql: sql.execute("CREATE TABLE t (a)"))

        assert [event.id for event in old.stream("s")] == ["id-a"]


@pytest.mark.clause("D9")
def test_a_forked_child_is_told_to_open_the_log_again(tmp_path: Path) -> None:
    told: list[Outcome] = []

    def errors(log: SqliteLog) -> Iterator[str]:
        log.append([anywhere("s", said("child"))], told.append)
        assert isinstance(told[0], Unavailable)
        yield type(told[0].error).__name__
        loaded: list[object] = []
        log.load("s", loaded.append)
        yield type(loaded[0]).__name__
        for use in (
            lambda: log.append_now([anywhere("s", said("child"))]),
            lambda: log.stream("s"),
            log.all,
            log.head,
            lambda: log.query("SELECT 1"),
            lambda: transact(log, lambda sql: sql.execute("SELECT 1")),
            lambda: log.wait_for(1, timeout=0),
        ):
            try:
                use()
            except ForkedStoreError:
                yield "ForkedStoreError"

    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("s", said("before"))])
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, " ".join(errors(log)).encode())
            log.close()
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as answers:
            assert answers.read().split() == ["ForkedStoreError"] * 9

        assert log.append_now([anywhere("s", said("after"))]).position == 2


@pytest.mark.clause("D9")
def test_a_forked_child_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    log = SqliteLog(tmp_path / "log.db")
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    log.close()

    try:
        with SqliteLog(tmp_path / "log.db") as again:
            assert again.epoch == 2
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_a_log_that_died_being_made_is_made_again(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "log.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()

    with SqliteLog(tmp_path / "log.db") as log:
        assert log.append_now([to("s", 0, said("a"))]).position == 1


def test_the_locks_file_must_be_makeable(tmp_path: Path) -> None:
    (tmp_path / "log.db.lock").mkdir()

    with pytest.raises(StoreUnavailable, match="lock"):
        SqliteLog(tmp_path / "log.db")
