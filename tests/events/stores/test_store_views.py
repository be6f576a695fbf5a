"""Inline views: written with the events, rebuilt from them, never in their way."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.facts import MessageRecorded, text_of
from intersession_events.log.recorded import Outcome, Recorded
from intersession_events.log.sql import Sql
from intersession_events.stores.portable.inline_views import PAGE
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import anywhere, said, to
from support.transacting import transact


class Lengths:
    """Counts messages and their letters by stream; chokes on whatever says so."""

    name = "lengths"

    def __init__(self, shape: int = 1, chokes: Callable[[str], bool] = lambda text: text == "choke") -> None:
        self.shape = shape
        self._chokes = chokes

    def create(self, sql: Sql) -> None:
        sql.execute(
            "CREATE TABLE IF NOT EXISTS lengths (stream TEXT PRIMARY KEY, messages INTEGER, letters INTEGER)"
        )

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS lengths")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            if not isinstance(recorded.event, MessageRecorded):
                continue
            text = text_of(recorded.event.message)
            sql.execute(
                "INSERT INTO lengths VALUES (?, 1, ?) "
                "ON CONFLICT DO UPDATE SET messages=messages+1, letters=letters+excluded.letters",
                (recorded.stream, len(text)),
            )
            if self._chokes(text):
                raise ValueError(f"can't take {text}")


class Heights:
    """Keeps the position of each event."""

    name = "heights"

    def __init__(self, shape: int = 1) -> None:
        self.shape = shape

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS heights (position INTEGER PRIMARY KEY)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS heights")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            sql.execute("INSERT INTO heights VALUES (?)", (recorded.position,))


def table(log: SqliteLog) -> list[Any]:
    return log.query("SELECT stream, messages, letters FROM lengths ORDER BY stream")


def test_a_view_has_an_event_as_soon_as_its_append_is_acknowledged() -> None:
    with SqliteLog(":memory:", inline=[Lengths()]) as log:
        seen: list[Any] = []
        done = threading.Event()

        def on_outcome(_: Outcome) -> None:
            seen.extend(table(log))
            done.set()

        log.append([to("s", 0, said("a", "four"))], on_outcome)

        assert done.wait(20)
        assert seen == [("s", 1, 4)]


@pytest.mark.clause("J3")
def test_an_event_a_view_chokes_on_is_set_aside_and_all_else_goes_on() -> None:
    with SqliteLog(":memory:", inline=[Lengths()], threads=False) as log:
        for number, text in enumerate(["one", "choke", "three"]):
            log.append([to("s", number, said(f"{number}", text))], lambda _: None)
        log.append([to("t", 0, said("x", "choke"), said("y", "fine"))], lambda _: None)

        assert log.step()

        assert table(log) == [("s", 2, 8), ("t", 1, 4)]
        assert [
            (lost.view, lost.position, lost.stream, lost.version, lost.topic) for lost in log.set_aside()
        ] == [
            ("lengths", 2, "s", 2, "message_recorded.1"),
            ("lengths", 4, "t", 1, "message_recorded.1"),
        ]
        assert "ValueError: can't take choke" in log.set_aside()[0].reason
        assert log.head() == 5


def test_a_commit_keeps_no_copies_of_its_pages_until_a_view_chokes_on_an_event() -> None:
    class Savepoints(Lengths):
        """Chokes as the other does, and says whether it was under a savepoint."""

        seen: list[bool]

        def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
            try:
                sql.execute("RELEASE attempt")
                sql.execute("SAVEPOINT attempt")
                self.seen.append(True)
            except sqlite3.OperationalError:
                self.seen.append(False)
            super().apply(sql, events)

    view = Savepoints()
    view.seen = []
    with SqliteLog(":memory:", inline=[view], threads=False) as log:
        view.seen.clear()
        log.append_now([to("s", 0, said("1", "one"))])
        log.append_now([to("s", 1, said("2", "two"))])
        assert view.seen == [False, False]

        log.append_now([to("s", 2, said("3", "choke"), said("4", "four"))])

        assert view.seen == [False, False, False, True, True, True]
        assert table(log) == [("s", 3, 10)]
        assert [lost.version for lost in log.set_aside()] == [3]


@pytest.mark.clause("J3")
def test_a_rebuild_tries_again_what_was_set_aside() -> None:
    tired = [True]
    with SqliteLog(":memory:", inline=[Lengths(chokes=lambda _: tired[0])]) as log:
        log.append_now([to("s", 0, said("a", "four"))])
        assert table(log) == []
        tired[0] = False

        steps: list[tuple[int, int]] = []
        log.rebuild("lengths", progress=lambda position, head: steps.append((position, head)))

        assert table(log) == [("s", 1, 4)]
        assert log.set_aside() == []
        assert steps[-1] == (1, 1)


def test_a_view_of_another_shape_is_built_anew(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", inline=[Lengths(shape=1)]) as log:
        log.append_now([anywhere("s", *(said(f"{n}") for n in range(PAGE + 10)))])
        transact(log, lambda sql: sql.execute("DELETE FROM lengths"))
        transact(log, lambda sql: sql.execute("UPDATE inline_views SET position=?", (PAGE + 10,)))  # no mark
    with SqliteLog(tmp_path / "log.db", inline=[Lengths(shape=1)]) as log:
        assert table(log) == []  # the same shape: believed
    with SqliteLog(tmp_path / "log.db", inline=[Lengths(shape=2)]) as log:
        assert table(log) == [("s", PAGE + 10, 5 * (PAGE + 10))]


@pytest.mark.clause("J2")
def test_a_view_catches_up_with_what_was_written_without_it(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", inline=[Lengths()]) as log:
        log.append_now([anywhere("s", said("a"))])
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("s", *(said(f"{n}") for n in range(PAGE * 2)))])
    with SqliteLog(tmp_path / "log.db", read_only=True, inline=[Lengths()]) as log:
        assert table(log) == [("s", 2 * PAGE + 1, 5 * (2 * PAGE + 1))]
    with SqliteLog(tmp_path / "log.db", inline=[Lengths()]) as log:
        assert table(log) == [("s", 2 * PAGE + 1, 5 * (2 * PAGE + 1))]
        log.append_now([anywhere("s", said("b"))])
        assert table(log) == [("s", 2 * PAGE + 2, 5 * (2 * PAGE + 2))]
    with SqliteLog(tmp_path / "log.db", read_only=True, inline=[Lengths()]) as log:
        assert table(log)[0][1] == 2 * PAGE + 2


@pytest.mark.clause("J3")
def test_a_damaged_row_does_not_stop_a_rebuild(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", inline=[Lengths()]) as log:
        log.append_now([to("s", 0, said("a"), said("b"), said("c"))])
        transact(log, lambda sql: sql.execute("UPDATE stored_events SET state=x'00' WHERE rowid=2"))

        log.rebuild("lengths")

        assert table(log) == [("s", 2, 10)]
        assert [(lost.position, lost.stream, lost.version) for lost in log.set_aside()] == [(2, "s", 2)]
        assert "CorruptEvent" in log.set_aside()[0].reason


@pytest.mark.clause("J2")
def test_appends_go_on_during_a_rebuild_and_none_is_lost(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", inline=[Lengths()]) as log:
        log.append_now([anywhere("s", *(said(f"{n}") for n in range(3 * PAGE)))])
        more = 0

        def progress(_position: int, _head: int) -> None:
            nonlocal more
            if more < 4:
                log.append_now([anywhere("s", *(said(f"more-{more}-{n}") for n in range(PAGE // 2)))])
                more += 1

        log.rebuild("lengths", progress=progress)

        assert more == 4
        assert table(log) == [("s", 5 * PAGE, 25 * PAGE)]


def test_a_view_that_is_not_there_can_not_be_rebuilt() -> None:
    with SqliteLog(":memory:", inline=[Lengths()]) as log, pytest.raises(KeyError, match="lengths"):
        log.rebuild("heights")
    with pytest.raises(ValueError, match="lengths"):
        SqliteLog(":memory:", inline=[Lengths(), Lengths()])


@pytest.mark.clause("J1")
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.sampled_from(["", "hi", "choke"])), min_size=1, max_size=4
        ),
        max_size=12,
    )
)
def test_rebuilt_is_what_it_was(batches: Sequence[Sequence[tuple[str, str]]]) -> None:
    with SqliteLog(":memory:", inline=[Lengths()], threads=False) as log:
        for number, batch in enumerate(batches):
            appends = [
                anywhere(stream, said(f"{number}-{n}", text)) for n, (stream, text) in enumerate(batch)
            ]
            log.append(appends, lambda _: None)
            if number % 3 == 0:
                log.step()
        while log.step():
            pass
        before = (table(log), log.set_aside())

        log.rebuild("lengths")

        assert (table(log), log.set_aside()) == before


@pytest.mark.clause("J1")
def test_readers_never_see_half_a_view_while_it_is_built_anew(tmp_path: Path) -> None:
    """Before: a query saw the view grow."""
    with SqliteLog(tmp_path / "log.db", inline=[Lengths()]) as log:
        log.append_now([anywhere("s", *(said(f"{n}") for n in range(3 * PAGE)))])
        whole = table(log)
        seen: list[Any] = []
        with SqliteLog(tmp_path / "log.db", read_only=True) as reader:
            log.rebuild("lengths", progress=lambda _position, _head: seen.append(table(reader)))

        assert seen == [whole] * len(seen)
        assert len(seen) > 2


@pytest.mark.clause("J2")
def test_a_rebuild_that_fails_leaves_the_view_as_it_was_and_it_goes_on(tmp_path: Path) -> None:
    view = Lengths()
    with SqliteLog(tmp_path / "log.db", inline=[view]) as log:
        log.append_now([anywhere("s", said("a", "four"))])
        create, calls = view.create, []

        def fails_the_second_time(sql: Sql) -> None:
            calls.append(1)
            if len(calls) == 2:
                raise RuntimeError("no room")
            create(sql)

        view.create = fails_the_second_time  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="no room"):
            log.rebuild("lengths")
        log.append_now([anywhere("s", said("b", "four"))])

        assert table(log) == [("s", 2, 8)]


@pytest.mark.clause("J2")
@pytest.mark.parametrize(
    "statement", ["DROP TABLE lengths", "ALTER TABLE lengths ADD COLUMN more", "DELETE FROM inline_views"]
)
def test_a_view_whose_tables_are_not_its_own_is_built_anew_at_opening(tmp_path: Path, statement: str) -> None:
    """Before: dropping views made the log unopenable, or the view blind."""
    with SqliteLog(tmp_path / "log.db", inline=[Lengths()]) as log:
        log.append_now([anywhere("s", said("a", "four"))])
        transact(log, lambda sql: sql.execute(statement))
    with SqliteLog(tmp_path / "log.db", inline=[Lengths()]) as log:
        log.append_now([anywhere("s", said("b", "four"))])

        assert table(log) == [("s", 2, 8)]
        assert log.set_aside() == []


def test_a_reader_of_a_log_with_views_of_another_shape_reads_them_and_writes_nothing(tmp_path: Path) -> None:
    """Before: a reader that needed another shape was refused until a writer had come."""
    path = tmp_path / "log.db"
    with SqliteLog(path, inline=[Lengths(shape=1)]) as log:
        log.append_now([anywhere("s", *(said(f"{n}") for n in range(PAGE + 10)), said("c", "choke"))])
    before = path.read_bytes()
    told: list[tuple[int, int]] = []

    def on_folding(position: int, head: int) -> None:
        told.append((position, head))

    with SqliteLog(path, read_only=True, inline=[Lengths(shape=2)], on_folding=on_folding) as log:
        assert len(log.stream("s")) == PAGE + 11
        assert told == [], "whoever reads events alone waits for no view"
        assert table(log) == [("s", PAGE + 10, 5 * (PAGE + 10))]
        assert [lost.position for lost in log.set_aside()] == [PAGE + 11]

    assert told[-1] == (PAGE + 11, PAGE + 11)
    assert path.read_bytes() == before


def test_a_reader_with_views_of_its_own_sees_what_is_written_meanwhile(tmp_path: Path) -> None:
    with (
        SqliteLog(tmp_path / "log.db", inline=[Lengths(shape=1)]) as log,
        SqliteLog(tmp_path / "log.db", read_only=True, inline=[Lengths(shape=2)]) as reader,
    ):
        assert table(reader) == []
        log.append_now([anywhere("s", said("a", "four"))])

        assert table(reader) == [("s", 1, 4)]


def test_several_views_are_built_anew_in_one_pass(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", inline=[Lengths(), Heights()]) as log:
        log.append_now([anywhere("s", *(said(f"{n}") for n in range(3 * PAGE)))])
    told: list[int] = []
    with SqliteLog(
        tmp_path / "log.db",
        inline=[Lengths(shape=2), Heights(shape=2)],
        on_folding=lambda position, _: told.append(position),
    ) as log:
        assert table(log) == [("s", 3 * PAGE, 15 * PAGE)]
        assert log.query("SELECT COUNT(*) FROM heights") == [(3 * PAGE,)]

    assert told == sorted(told)
    assert len(told) == 4
