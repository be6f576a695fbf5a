"""Times as the command line shows them are those of the calendar, for whatever number a log holds."""

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from intersession.cli.shell.times import clock, day

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.integers(-(2**63), 2**63) | st.integers(-(10**14), 3 * 10**14))
@example(253_402_300_799_999)
@example(253_402_300_800_000)
@example(-62_135_596_800_001)
def test_day_and_clock_are_those_of_the_calendar(time_ms: int) -> None:
    try:
        at = EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        assert (day(time_ms), clock(time_ms)) == ("", f"{time_ms} ms")
    else:
        assert (day(time_ms), clock(time_ms)) == (
            f"{at:%Y-%m-%d}",
            f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}",
        )
