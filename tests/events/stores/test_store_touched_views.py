"""A view that somebody else has written into is noticed when the log is opened, and by its writer (findings B3, issue 9)."""

import itertools
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics.errors import LogError
from intersession_events.facts import MessageRecorded, text_of
from intersession_events.log.recorded import Draft, Recorded
from intersession_events.log.sql import Row, Sql
from intersession_events.log.tables import TOUCHED, marks_of, schema_problems
from intersession_events.stores.folding.fold import PlainSql
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.views import SqliteViews
from intersession_events.stores.view_proof import views_proven
from support.log_drafts import anywhere, said
from support.rows import edited


class Texts:
    """Keeps what was said; chokes on `poison`."""

    name = "it's texts"
    shape = 1

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS texts (position INTEGER PRIMARY KEY, said TEXT)")
        sql.execute("CREATE TABLE IF NOT EXISTS counted (one INTEGER PRIMARY KEY, many INTEGER)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS texts")
        sql.execute("DROP TABLE IF EXISTS counted")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            if isinstance(recorded.event, MessageRecorded):
                text = text_of(recorded.event.message)
                sql.execute("INSERT INTO texts VALUES (?, ?)", (recorded.position, text))
                if text == "poison":
                    raise ValueError("it chokes")
                sql.execute("INSERT INTO counted VALUES (1, 1) ON CONFLICT DO UPDATE SET many=many+1")


def spoken(text: str) -> Draft:
    return said(f"{text} {next(NUMBERS)}", text)


NUMBERS = itertools.count()

TRUE = ([(1, "one"), (3, "three")], [(1, 2)])

TOUCHES = {
    "a row changed": "UPDATE texts SET said='mine' WHERE position=1",
    "a row taken away": "DELETE FROM counted",
    "a row added": "INSERT INTO texts VALUES (9, 'mine')",
    "a row replaced": "INSERT OR REPLACE INTO texts VALUES (1, 'mine')",
    "a row set aside": "INSERT INTO set_aside VALUES ('it''s texts', 1, 's', 1, 't', 'r')",
    "a row not set aside any more": "DELETE FROM set_aside",
    "what is set aside changed": "UPDATE set_aside SET stream='mine'",
    "the position set back": "UPDATE inline_views SET position=1",
    "a trigger dropped": "DROP TRIGGER touched_texts_update; UPDATE texts SET said='mine'",
    "the place of the view taken": "DELETE FROM inline_views; INSERT INTO inline_views VALUES ('it''s texts', 1, -1)",
}


def a_log(path: Path) -> None:
    with SqliteLog(path, inline=[Texts()]) as log:
        for text in ("one", "poison", "three"):
            log.append_now([anywhere("s", spoken(text))])


def held(log: SqliteLog) -> tuple[list[Row], list[Row]]:
    return log.query("SELECT * FROM texts"), log.query("SELECT * FROM counted")


def marked(log: SqliteLog) -> bool:
    return log.query("SELECT position FROM inline_views") == [(TOUCHED,)]


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=TOUCHES)
def test_a_view_that_was_touched_is_built_anew_by_a_writer_and_read_from_the_log_by_a_reader_who_says_so(
    tmp_path: Path, touch: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.db"
    a_log(path)
    with edited(path) as rows:
        rows.executescript(touch)
    touched = path.read_bytes()

    with SqliteLog(path, read_only=True, inline=[Texts()]) as log:
        assert held(log) == TRUE
        assert [one.position for one in log.set_aside()] == [2]
        assert [record.levelname for record in caplog.records if "not believed" in record.message] == [
            "WARNING"
        ]
        findings, _ = views_proven(log, [Texts()])
        assert findings
    assert path.read_bytes() == touched
    with SqliteLog(path, inline=[Texts()]) as log:
        assert held(log) == TRUE
        assert views_proven(log, [Texts()]) == ([], [])


def test_a_writer_sees_at_its_next_commit_that_a_view_was_touched_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.db"
    a_log(path)
    with SqliteLog(path, inline=[Texts()]) as log:
        with edited(path) as rows:
            rows.execute("UPDATE texts SET said='mine' WHERE position=1")
        for text in ("four", "five"):
            log.append_now([anywhere("s", spoken(text))])
        assert caplog.text.count("somebody else has written into the view it's texts") == 1
        assert marked(log)  # and whoever opens it hears of it, until it is built anew
        log.rebuild("it's texts")
        log.append_now([anywhere("s", spoken("six"))])
        assert not marked(log)
        assert held(log) == ([*TRUE[0], (4, "four"), (5, "five"), (6, "six")], [(1, 5)])
        assert views_proven(log, [Texts()]) == ([], [])


@pytest.mark.parametrize("gone", ["DELETE FROM inline_views", "UPDATE inline_views SET name='mine'"])
def test_a_view_whose_row_was_taken_away_beside_its_writer_is_built_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, gone: str
) -> None:
    """The writer gave it its row again, and what had been written into the view without a mark was believed."""
    path = tmp_path / "log.db"
    a_log(path)
    with SqliteLog(path, inline=[Texts()]) as log:
        with edited(path) as rows:
            rows.execute(gone)
            rows.execute("UPDATE texts SET said='mine' WHERE position=1")
        for text in ("four", "five"):
            log.append_now([anywhere("s", spoken(text))])
        assert caplog.text.count("somebody else has written into the view it's texts") == 1
    with SqliteLog(path, inline=[Texts()]) as log:
        assert held(log) == ([*TRUE[0], (4, "four"), (5, "five")], [(1, 4)])
        assert views_proven(log, [Texts()])[0] == []


def test_what_a_writer_does_leaves_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    a_log(path)
    folded: list[int] = []
    with SqliteLog(
        path, read_only=True, inline=[Texts()], on_folding=lambda at, _of: folded.append(at)
    ) as log:
        assert not marked(log)
        assert held(log) == TRUE
        assert not folded
    with SqliteLog(path) as log:  # without the view
        log.append_now([anywhere("s", spoken("four"))])
    with SqliteLog(path, inline=[Texts()]) as log:
        log.rebuild()
        log.append_now([anywhere("s", spoken("poison")), anywhere("s", spoken("six"))])
        assert not marked(log)
        assert views_proven(log, [Texts()]) == ([], [])


def test_no_other_trigger_passes_for_a_mark(tmp_path: Path) -> None:
    made = marks_of("it's texts", ["texts"])["touched_texts_insert"]
    for other in (
        made.replace("position=-1", "position=0"),
        made.replace("END", "DELETE FROM texts; END"),
        made.replace("ON texts", "ON stored_events"),
        made.replace(">=0", ">=0 AND 1"),
    ):
        path = tmp_path / "log.db"
        a_log(path)
        with edited(path) as rows:
            for name in ("touched_texts_insert", "touched_texts_update"):
                rows.execute(f"DROP TRIGGER {name}")
            rows.execute(other)
        with SqliteLog(path, read_only=True) as log:
            assert any("trigger" in problem for problem in schema_problems(log.query))
        with pytest.raises(LogError):
            SqliteLog(path)
        path.unlink()


@given(texts=st.lists(st.lists(st.sampled_from(["a", "b", "poison"]), min_size=1, max_size=4), max_size=6))
def test_whatever_is_appended_leaves_no_mark(texts: list[list[str]]) -> None:
    with SqliteLog(":memory:", inline=[Texts()]) as log:
        for batch in texts:
            with suppress(LogError):
                log.append_now([anywhere("s", *map(spoken, batch))])
        assert not marked(log)


def test_a_writer_notes_how_far_views_are_without_running_a_trigger(tmp_path: Path) -> None:
    path, run = tmp_path / "log.db", list[str]()
    a_log(path)
    with edited(path) as rows:
        rows.execute("BEGIN")
        rows.set_trace_callback(run.append)  # it is told of a trigger, too

        SqliteViews().remember(PlainSql(rows), {Texts.name: Texts.shape}, 3)

        assert len(run) == 1
        assert rows.execute("SELECT position FROM inline_views").fetchall() == [(3,)]
