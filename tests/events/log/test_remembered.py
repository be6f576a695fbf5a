"""What was read for a question is not read again, and is what is read without it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from intersession_events.log import (
    Gathered,
    Log,
    Reads,
    Recorded,
    as_it_is,
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


def test_what_was_read_for_a_question_is_not_read_again(log: FarLog) -> None:
    question = remembering(log)
    alone = reading(log)(3)

    assert reading(question)(3) == alone
    log.ways = Counter()
    assert reading(question)(3) == alone
    assert question.gather(Reads(positions=[1, 10], streams=["session:3"])).streams == [
        log.stream("session:3")
    ]
    # The moment is of now, and so is what is expected here; position 1 is what nobody had asked for.
    assert log.ways == {"gather": 1, "head": 1, "stream": 1}
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
