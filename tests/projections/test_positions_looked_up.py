"""The time of a position is found in few statements, however long the log goes on: each may be a way to another machine."""

from collections.abc import Sequence

from intersession_events.log.log import Moment
from intersession_events.log.sql import Row, SqlValue
from intersession_projections.views.positions import time_at
from support.story import MAIN, Story

DAY_MS = 86_400_000
TIMES = (5, 5, 6, 1_000, 70_000, DAY_MS, DAY_MS + 1, 40 * DAY_MS, 400 * DAY_MS, 401 * DAY_MS)


def test_the_time_at_a_position_is_found_by_a_few_looks(story: Story) -> None:
    for number, time in enumerate(TIMES):
        story.clock.now = time
        story.open(f"{MAIN}-{number}")
    events = list(story.log.all())
    with story.log.moment() as moment:
        for position in range(len(events) + 2):
            asked: list[str] = []

            def query(statement: str, parameters: Sequence[SqlValue], asked: list[str] = asked) -> list[Row]:
                asked.append(statement)
                return moment.query(statement, parameters)

            reached = max((one.time for one in events if one.position <= position), default=None)
            assert time_at(Moment(query, moment.head), position) == reached
            assert len(asked) <= 13  # halving takes 37
