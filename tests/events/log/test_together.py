"""What is read for many rows is read together, and is what is read for each by itself."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from intersession_events.errors import CorruptEvent
from intersession_events.facts import MessageRecorded
from intersession_events.log import (
    Gathered,
    Log,
    Reads,
    Recorded,
    as_it_is,
    for_each,
    remembering,
)
from intersession_events.log.remembered import RememberedLog
from support.log_drafts import said
from support.plain_log import PlainLog

ROWS = 20


class FarLog(PlainLog):
    """Counts how often somebody waits for it."""

    ways: Counter[str]

    @property
    def takes_many(self) -> bool:
        return True

    def gather(self, wanted: Reads, /) -> Gathered:
        ways = self.ways.copy()
        found = super().gather(wanted)
        self.ways = ways + Counter(["gather"])
        return found

    def each(self, questions: Iterable[tuple[str, Sequence[Any]]]) -> list[list[Any]]:
        self.ways["each"] += 1
        return [self.connection.execute(*question).fetchall() for question in questions]

    def stream(self, stream: str, **part: Any) -> Sequence[Recorded]:
        self.ways["stream"] += 1
        return super().stream(stream, **part)

    def head(self) -> int:
        self.ways["head"] += 1
        return super().head()


@pytest.fixture
def log() -> FarLog:
    log = FarLog()
    for row in range(ROWS):
        for number in range(3):
            log.put(f"session:{row}", *(draft.event for draft in [said(f"{row}-{number}")]))
    log.ways = Counter()
    return log


def reading(log: Log) -> Callable[[int], list[object]]:
    """Read in every way that a reader has, each step by what the one before has found."""

    def read(row: int) -> list[object]:
        ((doubled,),) = log.query("SELECT ? * 2", (row,))
        first, *_ = log.stream(f"session:{doubled // 2}")
        beside = list(log.at([first.position, first.position + 1]))
        also = list(log.all(after=first.position - 1, to=first.position))
        part = log.stream(first.stream, after=1, to=3, backwards=True)
        newest = log.stream(first.stream, backwards=True, limit=1)
        with log.moment() as moment:
            ((one,),), ((other,),) = moment.each(("SELECT ?", (first.version,)), ("SELECT ?", (moment.head,)))
        return [doubled, first, beside, also, part, newest, one, other]

    return read


def test_each_gets_what_it_gets_by_itself(log: FarLog) -> None:
    alone = reading(log)

    assert for_each(log, range(ROWS), reading) == [alone(row) for row in range(ROWS)]


def test_many_rows_take_as_many_ways_as_one_row(log: FarLog) -> None:
    for_each(log, range(2), reading)
    few, log.ways = log.ways, Counter()
    for_each(log, range(ROWS), reading)

    assert log.ways == few
    assert few == {"gather": 6, "head": 1}


def test_what_can_not_be_read_for_one_row_is_raised_as_if_it_were_read_alone(log: FarLog) -> None:
    log.unreadable[4] = CorruptEvent("position 4 was changed")

    def reading(log: Log) -> Callable[[int], str | None]:
        def read(row: int) -> str | None:
            with suppress(CorruptEvent):
                (recorded,) = log.at([3 * row + 1])
                assert isinstance(recorded.event, MessageRecorded)
                return recorded.event.message.id
            return None

        return read

    found = for_each(log, range(ROWS), reading)

    assert found[1] is None
    assert None not in [found[0], *found[2:]]


def test_who_catches_every_error_does_not_catch_that_something_is_not_known_yet(log: FarLog) -> None:
    def reading(log: Log) -> Callable[[int], int]:
        def read(row: int) -> int:
            try:
                return len(log.stream(f"session:{row}"))
            except Exception:  # noqa: BLE001 - whatever it is
                return -1

        return read

    assert for_each(log, range(ROWS), reading) == [3] * ROWS


def test_a_fault_of_a_reader_comes_out_at_once(log: FarLog) -> None:
    begun: list[int] = []

    def reading(log: Log) -> Callable[[int], int]:
        def read(row: int) -> int:
            begun.append(row)
            return len(log.stream(f"session:{row}")) // 0

        return read

    with pytest.raises(ZeroDivisionError):
        for_each(log, range(ROWS), reading)
    assert begun == [
        *range(ROWS),
        0,
    ]  # each until it asked, then the first of them on; none once more by itself


def test_what_was_read_for_a_question_is_not_read_again(log: FarLog) -> None:
    question = remembering(log)
    alone = reading(log)(3)

    assert reading(question)(3) == alone
    log.ways = Counter()
    assert reading(question)(3) == alone
    assert question.gather(Reads(positions=[1, 10], streams=["session:3"])).streams == [
        log.stream("session:3")
    ]
    assert for_each(question, [3, 3], reading) == [alone, alone]
    # The moments are of now, and so is what is expected here; position 1 is what nobody had asked for.
    assert log.ways == {"gather": 2, "head": 2, "stream": 1}
    assert remembering(question) is question
    assert as_it_is(question) is log


def test_a_question_that_reads_very_much_remembers_a_part_of_it(log: FarLog) -> None:
    question = RememberedLog(log, most=10)

    for _ in range(2):
        for row in range(ROWS):
            assert [one.version for one in question.stream(f"session:{row}")] == [1, 2, 3]
    assert log.ways == {"gather": 2 * ROWS}
    assert [one.position for one in question.at(range(1, 40))] == [*range(1, 40)]


def test_where_no_way_costs_a_log_is_read_as_it_is() -> None:
    log = PlainLog()

    assert remembering(log) is log
