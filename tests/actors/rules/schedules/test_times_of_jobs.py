"""When scheduled jobs are due: the laws of their times, the changes of the clocks, what becomes of times that passed (CRON)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.schedules.deciding import Due, Job, decide_due
from intersession_actors.rules.schedules.times import Times
from intersession_events.facts import ScheduleFired, ScheduleMissed, ScheduleSet

HOUR = 3_600_000
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
EXPRESSIONS = (
    "* * * * *",
    "*/15 * * * *",
    "30 2 * * *",
    "30 1 * * SUN",
    "0 9 * * 1-5",
    "15 */3 * * *",
    "0 0 L * *",
    "0 0 29 2 *",
    "*/20 * * * * *",
)
YEAR = st.integers(1_767_225_600_000, 1_798_761_600_000)


def cron_times() -> st.SearchStrategy[Times]:
    zones = st.sampled_from(ZONES).map(ZoneInfo)
    return st.builds(Times, st.just("cron"), st.sampled_from(EXPRESSIONS), zones)


def every_times() -> st.SearchStrategy[Times]:
    return st.builds(Times, st.just("every"), every_ms=st.integers(1_000, HOUR), anchor_ms=YEAR)


@pytest.mark.clause("CRON-3")
@given(cron_times() | every_times(), YEAR)
def test_the_next_time_is_the_latest_one_when_it_comes_and_no_sooner(times: Times, ms: int) -> None:
    coming = times.after(ms)

    assert coming is not None
    assert coming > ms
    assert times.latest(ms, coming - 1) is None
    assert times.latest(ms, coming) == coming
    assert times.number(ms, coming) == 1


@pytest.mark.clause("CRON-3")
@given(cron_times() | every_times(), YEAR, st.integers(0, 48 * HOUR))
def test_what_is_latest_and_counted_is_what_one_step_after_the_other_finds(
    times: Times, since: int, span: int
) -> None:
    found, at = list[int](), times.after(since)
    while at is not None and at <= since + span and len(found) < 300:
        found.append(at)
        at = times.after(at)

    if len(found) < 300:
        assert times.number(since, since + span) == len(found)
        assert times.latest(since, since + span) == (found[-1] if found else None)


@pytest.mark.clause("CRON-1")
@pytest.mark.parametrize(
    ("expr", "day", "due"),
    [
        # The clocks of Berlin skip 2:00 to 3:00 on March 29th, and repeat it on October 25th.
        ("30 2 * * *", datetime(2026, 3, 29, tzinfo=UTC), ["2026-03-29T01:00"]),
        ("30 2 * * *", datetime(2026, 10, 24, 22, tzinfo=UTC), ["2026-10-25T00:30"]),
        ("0 * * * *", datetime(2026, 3, 28, 23, 30, tzinfo=UTC), ["2026-03-29T00:00", "2026-03-29T01:00"]),
        ("0 9 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), ["2026-03-29T07:00"]),
    ],
)
def test_a_time_that_the_clocks_skip_comes_behind_the_gap_and_one_that_they_repeat_once(
    expr: str, day: datetime, due: list[str]
) -> None:
    times, at, found = (
        Times("cron", expr, ZoneInfo("Europe/Berlin")),
        int(day.timestamp() * 1000),
        list[str](),
    )
    until = int((day + timedelta(hours=20 if expr[0] == "3" or "9" in expr else 2)).timestamp() * 1000)
    while (coming := times.after(at)) is not None and coming <= until:
        at = coming
        found.append(f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M}")

    assert found[: len(due)] == due
    assert len(found) == len(due)


def test_very_many_missed_times_are_counted_up_to_a_bound() -> None:
    times = Times("cron", "* * * * *")

    assert times.number(0, 365 * 24 * HOUR) == 10_000
    assert times.latest(0, 365 * 24 * HOUR + 7) == 365 * 24 * HOUR


def standing(at_ms: int, **given: object) -> Job:
    event = ScheduleSet(job_id="news", schedule="{}")
    return Job(job_id="news", version=1, set_at=1, set_ms=at_ms, set=event, **given)  # type: ignore[arg-type]


@pytest.mark.clause("CRON-2", "CRON-3")
@given(YEAR, st.lists(st.integers(1, 30 * HOUR), max_size=20), st.sampled_from(["once", "skip"]))
def test_no_time_is_dealt_with_twice_and_none_is_dropped(
    start: int, pauses: list[int], catch_up: str
) -> None:
    """Whenever it is looked at, each time is that of a run, or stands behind one, or was missed."""
    times, job, now = Times("cron", "30 */2 * * *", ZoneInfo("Europe/Berlin")), standing(start), start
    dealt, due_before = 0, start
    for pause in pauses:
        now += pause
        decided = decide_due(job, times, catch_up=catch_up, busy=False, now_ms=now)  # type: ignore[arg-type]
        if decided is None:
            continue
        assert due_before < decided.due_ms <= now
        due_before = decided.due_ms
        dealt += decided.missed + 1 if isinstance(decided, Due) else decided.times
        if isinstance(decided, ScheduleMissed):
            job = standing(start, last=decided)
        else:
            fired = ScheduleFired(job_id="news", due_ms=decided.due_ms, set_at=1, run_id="r", session_key="k")
            job = standing(start, last=fired)

    assert dealt == times.number(start, now)
