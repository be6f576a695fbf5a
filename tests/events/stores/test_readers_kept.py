"""Connections that read: as many as are needed at once, and no more than a few of them for later."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.readers import FileReaders
from support.soaking import held


@pytest.mark.ci
@pytest.mark.clause("L9")
def test_many_readers_at_once_leave_a_few_connections_behind(tmp_path: Path) -> None:
    """Before: the most that were ever needed at once were kept open, with their pages, for good."""
    with SqliteLog(tmp_path / "log.db"):
        readers = FileReaders(str(tmp_path / "log.db"), alone=True)
        before = held()["_Reader"]
        with ExitStack() as lent:
            for _ in range(3 * 16):
                lent.enter_context(readers.connection()).execute("SELECT 1 FROM stored_events").fetchall()
            at_once = held()["_Reader"]
        after = held()["_Reader"]
        readers.close()

    assert (at_once - before, after - before) == (3 * 16, 16)
