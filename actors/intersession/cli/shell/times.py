"""Times as people read them: UTC, to the second in lists, to the millisecond in events."""

from functools import lru_cache
from typing import Final

from intersession_events.basics.times import moment, on_calendar

__all__ = ["clock", "day", "duration", "moment"]

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000


def day(time_ms: int) -> str:
    """Return the date alone."""
    return _day(time_ms // _DAY_MS)


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    # A long story asks for the day of each of its lines.
    at = on_calendar(number * _DAY_MS)
    return "" if at is None else f"{at:%Y-%m-%d}"


def clock(time_ms: int) -> str:
    """Return the time of day: `04:05:06.789`."""
    second = _second(time_ms // _SECOND_MS)
    return f"{second}.{time_ms % _SECOND_MS:03d}" if second else f"{time_ms} ms"


@lru_cache(maxsize=64)
def _second(number: int) -> str:
    if not _day(number * _SECOND_MS // _DAY_MS):
        return ""
    minutes, second = divmod(number * _SECOND_MS % _DAY_MS // _SECOND_MS, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"


def duration(milliseconds: int) -> str:
    """Return a duration: `12 ms`, `3.4 s`, `5 min 6 s`."""
    if milliseconds < _SECOND_MS:
        return f"{milliseconds} ms"
    if milliseconds < _MINUTE_MS:
        return f"{milliseconds / _SECOND_MS:.1f} s"
    minutes, seconds = divmod(milliseconds // _SECOND_MS, 60)
    return f"{minutes} min {seconds} s"
