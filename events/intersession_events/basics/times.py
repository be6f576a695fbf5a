"""Times and durations as people read them: UTC, to the second."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def on_calendar(time_ms: int) -> datetime | None:
    """Return a time as date and time; None if it is outside of the calendar."""
    try:
        return _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return None


def moment(time_ms: int) -> str:
    """Return date and time: `2026-11-21 04:05:06`. A time outside of the calendar stays a number."""
    at = on_calendar(time_ms)
    return f"{time_ms} ms" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def length(ms: int) -> str:
    """Return a duration in words."""
    seconds, minutes, hours, days = ms // 1000, ms // 60_000, ms // 3_600_000, ms // 86_400_000
    if days > 1:
        return f"{days} days"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds}.{ms % 1000 // 100} s"
