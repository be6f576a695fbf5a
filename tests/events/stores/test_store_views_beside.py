"""Views for who only reads a log whose own can't be used: each is folded once it is asked for, and follows the log."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from intersession_events.facts import MessageRecorded, text_of
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.view_proof import views_proven
from support.log_drafts import anywhere, said
from support.rows import edited


class Texts:
    """Keeps what was said, in the order of the texts, and how often; chokes on `poison`. Of the texts it never reads any."""

    name = "texts"
    only_added = ("texts",)

    def __init__(self, shape: int = 1) -> None:
        self.shape = shape
        self.taken = 0

    def create(self, sql: Sql) -> None:
        sql.execute(
            "CREATE TABLE IF NOT EXISTS texts (position INTEGER NOT NULL, said TEXT NOT NULL, "
            "PRIMARY KEY (said, position)) WITHOUT ROWID"
        )
        sql.execute("CREATE INDEX IF NOT EXISTS texts_position ON texts (position)")
        sql.execute("CREATE TABLE IF NOT EXISTS counted (one INTEGER PRIMARY KEY, many INTEGER NOT NULL)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS texts")
        sql.execute("DROP TABLE IF EXISTS counted")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            self.taken += 1
            if isinstance(recorded.event, MessageRecorded):
                text = text_of(recorded.event.message)
                sql.execute("INSERT INTO texts VALUES (?, ?)", (recorded.position, text))
                if text == "poison":
                    raise ValueError("it chokes")
                sql.execute("INSERT INTO counted VALUES (1, 1) ON CONFLICT DO UPDATE SET many = many + 1")


class Places:
    """Keeps the position of each event."""

    name = "places"
    shape = 1

    def __init__(self) -> None:
        self.taken = 0

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS places (position INTEGER PRIMARY KEY)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS places")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            self.taken += 1
            sql.execute("INSERT INTO places VALUES (?)", (recorded.position,))


SPOKEN = ["pear", "poison", "apple", "fig"]
KEPT = [(3, "apple"), (4, "fig"), (1, "pear")]


def told(log: SqliteLog, *texts: str) -> None:
    log.append_now([anywhere("s", *(said(f"{text} {log.head()}", text) for text in texts))])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with SqliteLog(tmp_path / "log.db") as log:
        told(log, *SPOKEN)
    return tmp_path / "log.db"


def test_a_view_is_folded_once_it_is_asked_for_and_no_other(path: Path) -> None:
    texts, places, moves = Texts(), Places(), list[tuple[int, int]]()

    with SqliteLog(
        path, inline=[texts, places], read_only=True, on_folding=lambda *at: moves.append(at)
    ) as log:
        assert [event.position for event in log.all()] == [1, 2, 3, 4]
        assert (texts.taken, places.taken) == (0, 0)

        assert log.query("SELECT COUNT(*) FROM places") == [(4,)]
        assert (texts.taken, places.taken) == (0, 4)

        assert log.query("SELECT * FROM texts ORDER BY said") == KEPT
        assert log.query("SELECT many FROM counted") == [(3,)]
        assert [(one.view, one.position) for one in log.set_aside()] == [("texts", 2)]

    assert moves == [(4, 4), (4, 4)]
    assert places.taken == 4


def test_a_moment_sees_what_was_there_when_it_began_in_every_view(path: Path) -> None:
    with (
        SqliteLog(path) as writer,
        SqliteLog(path, inline=[Texts(), Places()], read_only=True) as log,
    ):
        with log.moment() as moment:
            assert moment.query("SELECT COUNT(*) FROM places", ()) == [(4,)]
            told(writer, "quince")
            assert moment.head == 4
            assert moment.query("SELECT * FROM texts ORDER BY said", ()) == KEPT
        assert log.query("SELECT COUNT(*) FROM places") == [(5,)]
        assert log.query("SELECT * FROM texts ORDER BY said") == [*KEPT, (5, "quince")]


@pytest.mark.parametrize("told_with", [1, 2], ids=["built as it is written", "built anew at opening"])
def test_rows_that_were_put_in_order_at_the_end_are_those_of_a_view_that_keeps_them_so(
    path: Path, told_with: int
) -> None:
    with SqliteLog(path, inline=[Texts(told_with)]) as log:
        told(log, "cherry")
    with SqliteLog(path, inline=[Texts(1)]) as log:
        assert log.query("SELECT * FROM texts ORDER BY said") == [
            (3, "apple"),
            (5, "cherry"),
            (4, "fig"),
            (1, "pear"),
        ]
        assert log.query("SELECT position FROM texts INDEXED BY texts_position WHERE position = 5") == [(5,)]
        assert views_proven(log, [Texts(1)]) == ([], [])


def test_a_view_that_the_log_does_not_have_is_not_said_to_be_of_another_shape(path: Path) -> None:
    """A fork is made without views."""
    with SqliteLog(path, read_only=True) as log:
        findings, unproven = views_proven(log, [Texts()])

    assert findings == []
    (said_so,) = unproven
    assert said_so.startswith("What the view texts would hold: the log has no such view yet.")


def test_a_view_whose_tables_are_there_and_which_the_log_says_it_has_not_is_a_finding(path: Path) -> None:
    with SqliteLog(path, inline=[Texts()]):
        pass
    with edited(path) as database:
        database.execute("DELETE FROM inline_views")
    with SqliteLog(path, read_only=True) as log:
        findings, unproven = views_proven(log, [Texts()])

    assert [(one.code, one.view, one.table) for one in findings] == [
        ("view_differs", "texts", "inline_views")
    ]
    assert unproven == []


class Words:
    """Keeps an index of the words that were said, enough of them for many pages."""

    name = "words"
    shape = 1

    def create(self, sql: Sql) -> None:
        sql.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (said, content='', columnsize=0, detail=none)"
        )

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS words")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            said_now = " ".join(f"word{recorded.position}x{number}" for number in range(600))
            sql.execute("INSERT INTO words (rowid, said) VALUES (?, ?)", (recorded.position, said_now))


def test_an_index_of_text_that_holds_all_and_finds_it_no_more_is_a_finding(tmp_path: Path) -> None:
    """Where each word's page is stands in a table of its own, which reading the index from end to end does not look at."""
    path = tmp_path / "log.db"
    with SqliteLog(path, inline=[Words()]) as log:
        told(log, *map(str, range(12)))
        assert views_proven(log, [Words()]) == ([], [])
    with edited(path) as database:
        database.execute("DELETE FROM words_idx")
    with SqliteLog(path, read_only=True) as log:
        findings, _ = views_proven(log, [Words()])

    assert {(one.code, one.table) for one in findings} == {("view_differs", "words")}
    assert findings[0].problem == "the index finds it in 0 documents, and the events say 1"


def test_other_words_for_why_an_event_was_set_aside_are_named(path: Path) -> None:
    with SqliteLog(path, inline=[Texts()]) as log:
        assert views_proven(log, [Texts()]) == ([], [])
    with edited(path) as database:
        database.execute("UPDATE set_aside SET reason = 'no reason'")
        database.execute("UPDATE inline_views SET position = 4")
    with SqliteLog(path, read_only=True) as log:
        findings, (said_so,) = views_proven(log, [Texts()])

    assert findings == []
    assert said_so.startswith("Why the view texts could not take in position 2:")
    assert "no reason" in said_so
