"""From a position or a time to a position."""

import pytest

from intersession_events.facts import ConfigLoaded
from intersession_projections.questions.places.grammar import UnknownPlace, parse_place
from intersession_projections.questions.places.located import Places
from intersession_projections.views.positions import Positions
from support.story import MAIN, Story

NOON = 1_795_262_400_000  # 2026-11-21T12:00:00Z


def position_of(value: int | str, story: Story) -> int:
    place = parse_place(value, field="asOf")
    return Places(story.log, now_ms=story.clock.now).find(place, field="asOf").position


@pytest.fixture
def told(story: Story) -> Story:
    story.open(opened_by="import")
    story.clock.now = NOON
    return story


@pytest.mark.clause("LIST-8")
def test_a_time_means_all_that_had_happened_by_then(told: Story) -> None:
    first, second = (told.say(MAIN, text, time=NOON + at) for text, at in (("a", 0), ("b", 1000)))
    head = told.log.head()
    assert first != second
    told.clock.now = NOON + 5000

    def at(text: str) -> int:
        return position_of(text, told)

    assert at("2026-11-21T12:00:00Z") == head - 1
    assert at("2026-11-21T12:00:00.999Z") == head - 1
    assert at("2026-11-21T12:00:01Z") == head
    assert at("2026-11-21T13:00:01+01:00") == head
    assert at("2026-11-21 12:00:01") == head
    assert at("2026-11-21t12:00:04z") == head
    assert at("2026-11-21") < head - 1


@pytest.mark.clause("PLACE-1", "LIST-8")
def test_at_a_time_before_the_log_nothing_had_happened(story: Story) -> None:
    """The years before a log were the place behind its openings and configurations, which do not tell the time."""
    story.put("log", ConfigLoaded(digest="d", config="{}"), time=NOON)
    story.clock.now = NOON + 999
    story.open()
    before = story.log.head() - 1
    positions = Positions(story.log)
    times = (NOON - 1, NOON, NOON + 999, NOON + 1_000)
    assert [positions.position_at(at) for at in times] == [0, before, before, before + 1]


@pytest.mark.clause("LIST-8", "L8")
def test_a_clock_set_back_hides_nothing_that_came_before(told: Story) -> None:
    told.say(MAIN, "late", time=NOON)
    told.say(MAIN, "early", time=NOON - 5000)
    head = told.log.head()
    assert Positions(told.log).position_at(NOON) == head
    assert Positions(told.log).position_at(NOON - 5000) == head - 2
    assert Positions(told.log).time_at(head) == NOON


@pytest.mark.clause("IMP-3")
def test_what_the_machine_notes_of_itself_does_not_tell_the_time(told: Story) -> None:
    told.put("log", ConfigLoaded(digest="d", config="{}"), time=NOON + 9_000_000)
    told.say(MAIN, "imported", time=NOON)
    assert Positions(told.log).position_at(NOON) == told.log.head()
    assert Positions(told.log).latest_time() == NOON


@pytest.mark.clause("LIST-8")
def test_a_position_is_itself_up_to_the_end(told: Story) -> None:
    head = told.log.head()
    assert [position_of(value, told) for value in (0, 1, head, str(head), "head", "-1")] == [
        0,
        1,
        head,
        head,
        head,
        head - 1,
    ]


@pytest.mark.clause("LIST-8")
def test_the_end_of_a_part_of_the_log_may_be_a_time_that_has_not_come(told: Story) -> None:
    """`--until` the end of the month is all that there is by now; a state at that time is nothing that can be known."""
    places = Places(told.log, now_ms=told.clock.now)
    tomorrow = parse_place("9999-12-31", field="until")

    assert places.find(tomorrow, field="until", is_end=True).position == told.log.head()
    with pytest.raises(UnknownPlace, match="in the future"):
        places.find(tomorrow, field="until")
    with pytest.raises(UnknownPlace, match="beyond the log's end"):
        places.find(parse_place(10_000, field="until"), field="until", is_end=True)


@pytest.mark.clause("LIST-8", "PLACE-2")
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (-1, "before the log"),
        (10_000, "beyond the log's end"),
        (True, "true and false are no places"),
        ("2026-11-21T12:00:01Z", "in the future"),
        ("9999-12-31T23:59:59Z", "in the future"),
        ("yesterday", "names no place"),
        ("20261121", "beyond the log's end"),
        ("2026-13-01", "names no place"),
        ("2026-11-21T12:00:00Z\n", "names no place"),
        ("\uff12\uff10\uff12\uff16-11-21", "names no place"),
        ("", "names no place"),
        ("head+1", "beyond the log's end"),
        ("1-2", "before the log"),
        ("event:00000000", "no event has the id"),
        ("nobody@end", "no exchange, spawn or run"),
    ],
)
def test_what_names_no_place_is_refused_by_field_and_value(
    told: Story, value: int | str, complaint: str
) -> None:
    with pytest.raises(UnknownPlace, match=complaint) as caught:
        position_of(value, told)
    assert str(caught.value).startswith("asOf: ")
    assert "A place is a position (412), event:ID, an ISO time" in str(caught.value)


def test_times_before_1970_come_before_everything(told: Story) -> None:
    for early in ("1969-12-31", "0001-01-01T00:00:00+14:00"):
        assert position_of(early, told) < 3
