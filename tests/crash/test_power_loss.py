"""What a log holds after the power failed at any moment of a process that wrote to it."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.paths import TESTS
from support.processes.power_loss import Operation, images, operations, record

CHILD = TESTS / "support" / "processes" / "appending_child.py"
APPENDS = 120
VERIFIED = 25
"""One in so many images is opened as a log and verified; of all others the rows are read."""

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="needs strace (Debian: apt-get install strace)"
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Operation]:
    """Return what a process did to its log's files, with a checkpoint and a second opening halfway."""
    folder = tmp_path_factory.mktemp("power")
    log, acks, trace = folder / "files" / "log.db", folder / "acks", folder / "trace"
    log.parent.mkdir()
    paths = os.pathsep.join([str(TESTS), *sys.path])
    record([str(CHILD), str(log), str(acks), "3", str(APPENDS)], trace, {**os.environ, "PYTHONPATH": paths})
    done = operations(trace, log, acks)
    assert len(acks.read_text().split()) == 2 * APPENDS
    assert sum(operation.kind == "ack" for operation in done) == APPENDS
    return done


def stored(folder: Path, files: dict[str, bytes]) -> list[str]:
    """Write the files of an image and return the ids of the events that SQLite finds in them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with closing(sqlite3.connect(folder / "log.db")) as database:
        found = database.execute("SELECT json_extract(state, '$.id') FROM stored_events ORDER BY rowid")
        return [str(row[0]) for row in found]


def check(written: Sequence[Operation], folder: Path, number: int) -> None:
    for index, (files, acknowledged) in enumerate(images(written, number)):
        found = stored(folder / "image", files)
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found))
        # Both events of an append, or neither.
        assert all(b == a.replace("id-", "id-x") for a, b in zip(found[::2], found[1::2], strict=True))
        if index % VERIFIED == 0:
            with SqliteLog(folder / "image" / "log.db") as log:
                assert verify_log(log).counts == {}
                assert log.query("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.clause("D2")
@pytest.mark.parametrize(
    "number", [400, pytest.param(20_000, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])]
)
def test_what_was_acknowledged_is_on_the_disk_whenever_the_power_fails(
    written: Sequence[Operation], tmp_path: Path, number: int
) -> None:
    check(written, tmp_path, number)


@pytest.mark.ci
@pytest.mark.clause("D2", "D3")
def test_without_the_sync_of_each_commit_the_same_search_finds_losses(
    written: Sequence[Operation], tmp_path: Path
) -> None:
    lazy = [each for each in written if not (each.kind == "sync" and each.name.endswith("-wal"))]
    lost = 0
    for files, acknowledged in images(lazy, 100):
        try:
            lost += not set(acknowledged) <= set(stored(tmp_path / "image", files))
        except sqlite3.DatabaseError:
            lost += 1

    assert lost > 0
