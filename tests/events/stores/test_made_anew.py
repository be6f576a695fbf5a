"""V1, J1: what is no event is made anew when somebody has dropped or damaged it, and nothing is read from what is no table."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intersession_events.basics.errors import AlteredLog, StoreUnavailable
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.log_drafts import said, to

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n)"


def written(path: Path) -> None:
    with SqliteLog(path, inline=inline_views()) as log:
        log.append_now([to("session:agent:main:main", 0, said("a", "under the bridge"), said("b"))])


def objects(path: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(path)) as rows:
        return rows.execute(
            "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        ).fetchall()


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as rows:
        rows.executescript(statement)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "log.db"
    written(path)
    return path


def droppable(path: Path) -> Iterator[str]:
    for kind, name, table in objects(path):
        if table not in {"stored_events", "log_identity"}:
            yield f'DROP {kind} "{name}"'


@pytest.mark.clause("V1", "J1")
@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_whatever_is_no_event_is_made_anew_when_it_was_dropped(
    made: Path, tmp_path: Path, *, is_whole: bool
) -> None:
    statements = list(droppable(made))
    assert len(statements) > 60
    statements = (
        statements
        if is_whole
        else [*statements[::9], "DROP TABLE inline_views", "DROP TABLE session_search_data"]
    )
    for number, statement in enumerate(statements):
        path = tmp_path / f"{number}.db"
        path.write_bytes(made.read_bytes())
        changed(path, statement)

        with SqliteLog(path, read_only=True, inline=inline_views()) as log:
            assert len(log.stream("session:agent:main:main")) == 2
            assert log.query("SELECT COUNT(*) FROM flows") == [(0,)]
        with SqliteLog(path, inline=inline_views()) as log:
            log.append_now([to("session:agent:main:main", 2, said(f"c{number}"))])
        with SqliteLog(path, read_only=True) as log:
            assert verify_log(log).ok, statement
        assert {one[:2] for one in objects(path)} == {one[:2] for one in objects(made)}, statement


@pytest.mark.clause("V1")
@pytest.mark.parametrize("table", ["stored_events", "log_identity"])
@pytest.mark.parametrize("instead", ["query", "computed", "virtual"])
def test_nothing_is_read_from_what_stands_in_the_place_of_a_table(
    made: Path, tmp_path: Path, table: str, instead: str
) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(made.read_bytes())
    with closing(sqlite3.connect(path)) as rows:
        columns = [row[1] for row in rows.execute(f"PRAGMA table_info({table})")]
    statement = {
        "query": f"CREATE VIEW {table} AS {ENDLESS} SELECT {', '.join(f'i AS {one}' for one in columns)} FROM n",  # noqa: S608 - of the test
        "computed": f"CREATE TABLE {table} (x, {', '.join(f'{one} AS (hex(zeroblob(900000000)))' for one in columns)})",
        "virtual": f"CREATE VIRTUAL TABLE {table} USING fts5({', '.join(columns[1:])})",
    }[instead]
    changed(path, f"DROP TABLE {table}; {statement}")

    for read_only in (True, False):
        with pytest.raises(AlteredLog, match="is no table any more"):
            SqliteLog(path, read_only=read_only)


@pytest.mark.clause("V1", "J1")
def test_tables_of_views_that_are_queries_without_an_end_are_not_asked(made: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(made)) as rows:
        tables = [
            name
            for (name,) in rows.execute(
                "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
    for number, table in enumerate(sorted({*tables} - {"stored_events", "log_identity"})[::5]):
        path = tmp_path / f"{number}.db"
        path.write_bytes(made.read_bytes())
        with closing(sqlite3.connect(path)) as rows:
            columns = [row[1] for row in rows.execute(f'PRAGMA table_info("{table}")')]
        names = ", ".join(f'i AS "{one}"' for one in columns)
        changed(path, f'DROP TABLE "{table}"; CREATE VIEW "{table}" AS {ENDLESS} SELECT {names} FROM n')  # noqa: S608

        with SqliteLog(path, read_only=True, inline=inline_views()) as log:
            assert log.query("SELECT COUNT(*) FROM flows") == [(0,)]
            verify_log(log)


@pytest.mark.ci
@pytest.mark.clause("V1")
def test_a_question_that_has_no_end_is_given_up(made: Path) -> None:
    with (
        SqliteLog(made, read_only=True) as log,
        pytest.raises(StoreUnavailable, match="more steps than a file"),
    ):
        log.query(f"{ENDLESS} SELECT COUNT(*) FROM n")  # noqa: S608
