"""A place by time takes in no event that came later, whatever the event is."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from intersession_events.facts import AccessRecorded, ConfigLoaded
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.places.grammar import parse_place
from intersession_projections.questions.places.located import Places
from intersession_projections.views.positions import Positions
from support.story import MAIN, Story

RECEIPTS = "access:operator"
YEAR_MS = 31_536_000_000
START = 1_795_262_400_000


def receipt() -> AccessRecorded:
    return AccessRecorded(requester=None, tool="sessions_list", allowed=1)


def by_hand(events: Sequence[Recorded], time_ms: int) -> int:
    """Return the position before the first event that came later than a time."""
    last = max((one.position for one in events), default=0)
    return min((one.position - 1 for one in events if one.time > time_ms), default=last)


def times_of(events: Sequence[Recorded]) -> set[int]:
    return {one.time + at for one in events for at in (-2, -1, 0, 1, 2)}


def differing(log: Log) -> list[int]:
    events = list(log.all())
    positions = Positions(log)
    return [at for at in sorted(times_of(events)) if positions.position_at(at) != by_hand(events, at)]


@pytest.fixture
def story(passing_url: str) -> Iterator[Story]:
    with closing(Story(passing_url)) as story:
        story.clock.now = START
        yield story


@pytest.mark.clause("PLACE-1", "LIST-8")
@pytest.mark.parametrize("seed", range(5))
def test_a_time_takes_in_no_event_that_came_later(story: Story, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same ones each time
    story.open()
    for _ in range(60):
        story.clock.now += chance.choice((-5, 0, 0, 1, 2, 700))
        match chance.randrange(4):
            case 0:
                story.say(MAIN, "hello")
            case 1:
                story.put("log", ConfigLoaded(digest="d", config="{}"))
            case _:
                story.put(RECEIPTS, receipt())
    assert differing(story.log) == []


@pytest.mark.clause("PLACE-1")
def test_a_time_between_a_message_and_a_receipt_is_before_the_receipt(story: Story) -> None:
    story.open()
    story.say(MAIN, "hello")
    said = story.log.head()
    at = story.clock.now
    story.put(RECEIPTS, receipt())
    story.say(MAIN, "and so on")
    places = Places(story.log, now_ms=story.clock.now)
    iso = parse_place("2026-11-21T12:00:00.002Z")
    assert (at, places.find(iso).position) == (1_795_262_400_002, said)


@pytest.mark.clause("PLACE-1", "IMP-3")
def test_what_was_noted_after_an_import_is_later_than_what_was_imported(story: Story) -> None:
    """What was noted before stands before it in the log; nothing can be told of its time by a position."""
    story.put("log", ConfigLoaded(digest="d", config="{}"))
    before = story.log.head()
    for year in (5, 4, 3):
        story.say(MAIN, "imported", time=START - year * YEAR_MS, source="{}")
        story.put("log", ConfigLoaded(digest="d", config="{}"))
    story.put(RECEIPTS, receipt())
    positions = Positions(story.log)
    assert [
        positions.position_at(START - at) for at in (6 * YEAR_MS, 5 * YEAR_MS, 4 * YEAR_MS, 3 * YEAR_MS)
    ] == [
        0,
        before + 1,
        before + 3,
        before + 5,
    ]
    assert positions.position_at(START - 1) == before + 5
    assert positions.position_at(story.clock.now - 1) == before + 6
    assert positions.position_at(story.clock.now) == before + 7


@pytest.mark.clause("PLACE-1", "IMP-3")
@pytest.mark.parametrize("is_watched", [False, True])
def test_an_import_into_a_log_that_lives_moves_none_of_its_times(story: Story, *, is_watched: bool) -> None:
    story.put(RECEIPTS, receipt())
    story.clock.now -= 1
    story.say(MAIN, "hello")
    if is_watched:
        story.put(RECEIPTS, receipt())
    for year in (5, 4):
        story.say("agent:main:other", "imported", time=START - year * YEAR_MS, source="{}")
    story.say(MAIN, "later")
    assert differing(story.log) == []


@pytest.mark.clause("PLACE-1", "IMP-3")
def test_lines_that_a_second_import_adds_leave_the_times_of_the_first(story: Story) -> None:
    """Its report, of today, stands before an older line that is added: that one is there from the next new line on."""
    for years in ((5, 3), (4, 2)):
        for year in years:
            story.say(MAIN, "imported", time=START - year * YEAR_MS, source="{}")
        story.put("import:1", receipt())
    positions = Positions(story.log)
    found = [positions.position_at(START - year * YEAR_MS) for year in (6, 5, 4, 3, 2)]
    assert found == [0, 1, 1, 2, 5]


@pytest.mark.clause("PLACE-1")
def test_the_times_of_a_log_that_is_read_anew_are_the_same(story: Story) -> None:
    """Folded in pages, a log gives the rows that it got event by event."""
    chance = random.Random(7)  # noqa: S311 - the same ones each time
    for _ in range(80):
        story.clock.now += chance.choice((0, 1))
        dated = START - chance.randrange(YEAR_MS) if chance.randrange(5) == 0 else None
        if chance.randrange(2):
            story.put(RECEIPTS, receipt())
        else:
            story.say(MAIN, "hello", time=dated)
    rows = "SELECT time_ms, position, noted FROM clock ORDER BY time_ms"
    kept = story.log.query(rows)
    story.log.rebuild("positions")
    assert story.log.query(rows) == kept
    assert kept
