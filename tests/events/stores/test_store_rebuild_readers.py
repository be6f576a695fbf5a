"""Another process that reads while a view is built anew, and while the log goes on, sees all of it or the old one."""

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import anywhere, said

READER = """
import json, sys, threading
from intersession_events.stores.sqlite.log import SqliteLog

LOOK = (
    "SELECT (SELECT COUNT(*) FROM places), (SELECT COALESCE(SUM(position), 0) FROM places), "
    "(SELECT MAX(rowid) FROM stored_events), (SELECT position FROM inline_views)"
)
looks, torn, over = 0, [], threading.Event()


def look(log):
    global looks
    count, total, last, position = log.query(LOOK)[0]
    looks += 1
    if (count, total, position) != (last, last * (last + 1) // 2, last):
        torn.append((count, total, last, position))


def always(log):
    while not over.is_set():
        look(log)


with SqliteLog(sys.argv[1], read_only=True) as log:
    threads = [threading.Thread(target=always, args=(log,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        look(log)
        print(looks, flush=True)
    over.set()
    for thread in threads:
        thread.join()
    print(json.dumps(torn), flush=True)
"""


class Places:
    """Keeps the position of each event."""

    name = "places"
    shape = 1

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS places (position INTEGER PRIMARY KEY)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS places")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            sql.execute("INSERT INTO places VALUES (?)", (recorded.position,))


@pytest.mark.clause("J1")
def test_a_reader_in_another_process_never_sees_half_a_view_while_it_is_built_anew(tmp_path: Path) -> None:
    """Before: a log whose views were dropped could not be opened."""
    path = tmp_path / "log.db"
    names = map(str, range(10**9))
    with SqliteLog(path, inline=[Places()]) as log:
        log.append_now([anywhere("s", *(said(next(names)) for _ in range(2_600)))])
        with subprocess.Popen(
            [sys.executable, "-c", READER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None

            def looked() -> int:
                print(file=reader.stdin, flush=True)
                assert reader.stdout is not None
                return int(reader.stdout.readline())

            def moved(_position: int, _head: int) -> None:
                looks.append(looked())
                log.append_now([anywhere("s", said(next(names)))])  # the log goes on meanwhile

            looks = [looked()]
            for _ in range(4):
                rebuilding = threading.Thread(
                    target=log.rebuild, args=("places",), kwargs={"progress": moved}
                )
                rebuilding.start()
                rebuilding.join()
            reader.stdin.close()
            torn = json.loads(reader.stdout.read())

    assert torn == []
    assert len(looks) > 4 * 5
