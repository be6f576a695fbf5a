"""The tail: in order, once, on past what can't be taken in."""

import threading

import pytest

from intersession_events.errors import UnknownTopic
from intersession_events.facts import SessionPatched
from intersession_events.log import InlineView, Recorded, Sql
from intersession_projections.sessions import SessionListView, Sessions
from intersession_projections.tail import Tail
from support.plain_log import PlainLog
from support.story import MAIN, Story


class Notes:
    """A view that notes every position it is given, twice over if asked to, and chokes on some."""

    name = "notes"

    def __init__(self, *poison: int, name: str = "notes", shape: int = 1) -> None:
        self.name = name
        self.shape = shape
        self.poison = set(poison)

    def create(self, sql: Sql) -> None:
        sql.execute(f"CREATE TABLE IF NOT EXISTS {self.name} (position BIGINT)")

    def drop(self, sql: Sql) -> None:
        sql.execute(f"DROP TABLE IF EXISTS {self.name}")

    def apply(self, sql: Sql, recorded: Recorded) -> None:
        sql.execute(f"INSERT INTO {self.name} VALUES (?)", (recorded.position,))  # noqa: S608
        if recorded.position in self.poison:
            raise ValueError(f"a\0b {recorded.position}")


def written(log: PlainLog, count: int) -> PlainLog:
    for number in range(count):
        log.put(f"session:{MAIN}", SessionPatched(by=str(number)))
    return log


def noted(log: PlainLog, name: str = "notes") -> list[int]:
    return [position for (position,) in log.query(f"SELECT position FROM {name} ORDER BY rowid")]  # noqa: S608


@pytest.mark.clause("J2")
def test_every_event_is_taken_in_once_and_in_order_over_batches_and_restarts() -> None:
    log = written(PlainLog(), 1201)
    assert Tail(log, [Notes()]).catch_up() == 1201
    written(log, 10)
    assert Tail(log, [Notes()]).catch_up() == 1211
    assert noted(log) == list(range(1, 1212))


@pytest.mark.clause("J3")
def test_a_poison_event_is_set_aside_with_its_reason_and_the_tail_goes_on() -> None:
    log = written(PlainLog(), 6)
    tail = Tail(log, [Notes(2, 5), Notes(name="others")])
    assert tail.catch_up() == 6
    assert noted(log) == [1, 3, 4, 6]
    assert noted(log, "others") == [1, 2, 3, 4, 5, 6]
    assert [(one.view, one.position, one.reason) for one in tail.set_aside()] == [
        ("notes", 2, "ValueError: a\\0b 2"),
        ("notes", 5, "ValueError: a\\0b 5"),
    ]


@pytest.mark.clause("J3")
def test_an_event_this_version_cannot_read_is_set_aside_too() -> None:
    log = written(PlainLog(), 5)
    unknown = UnknownTopic("dream_dreamt.1")
    unknown.position = 3
    log.unreadable[3] = unknown
    tail = Tail(log, [Notes()])
    assert tail.catch_up() == 5
    assert noted(log) == [1, 2, 4, 5]
    assert [one.position for one in tail.set_aside()] == [3]


@pytest.mark.clause("J3", "J1")
def test_a_rebuild_gives_what_was_set_aside_its_second_chance() -> None:
    log = written(PlainLog(), 4)
    view = Notes(2)
    tail = Tail(log, [view, Notes(name="others")])
    tail.catch_up()
    view.poison.clear()
    tail.rebuild("notes")
    assert noted(log) == [1, 2, 3, 4]
    assert noted(log, "others") == [1, 2, 3, 4]
    assert tail.set_aside() == []


def test_a_view_of_a_new_shape_is_built_anew() -> None:
    log = written(PlainLog(), 3)
    Tail(log, [Notes(2)]).catch_up()
    tail = Tail(log, [Notes(shape=2)])
    assert tail.position == 0
    tail.catch_up()
    assert noted(log) == [1, 2, 3]
    assert tail.set_aside() == []


def test_a_view_that_joins_later_catches_up_with_the_others() -> None:
    log = written(PlainLog(), 3)
    Tail(log, [Notes()]).catch_up()
    written(log, 3)
    Tail(log, [Notes(), Notes(name="others")]).catch_up()
    assert noted(log) == noted(log, "others") == [1, 2, 3, 4, 5, 6]


@pytest.mark.clause("J1")
def test_a_tail_in_a_thread_of_its_own_is_woken_by_each_commit(story: Story) -> None:
    views: list[InlineView] = [SessionListView()]
    story.close()
    alone = Story(inline=())
    with Tail(alone.log, views) as tail:
        opened = alone.open()
        assert tail.wait(opened.position, timeout=10)
        assert [row.key for row in Sessions(alone.log).iterate()] == [MAIN]
        patched = alone.put(f"session:{MAIN}", SessionPatched(values={"label": "a"}))
        assert tail.wait(patched.position, timeout=10)
        assert [row.label for row in Sessions(alone.log).iterate()] == ["a"]
    assert not [thread for thread in threading.enumerate() if thread.name == "intersession-tail"]
    alone.close()


def test_waiting_for_what_does_not_come_ends(story: Story) -> None:
    with Tail(story.log, [Notes()]) as tail:
        assert not tail.wait(10_000, timeout=0.01)
