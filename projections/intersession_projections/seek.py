"""Turns what a caller gives as a place in the log, a position or an ISO time, into a position."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from intersession_events.errors import IntersessionError
from intersession_events.log import Log
from intersession_projections.positions import Positions

_ISO: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class UnknownPlace(IntersessionError, ValueError):
    """A place that a caller gave is not in the log: its form is unknown, or it is beyond the end or in the future."""


def resolve_as_of(value: int | str, log: Log, *, now_ms: int, field: str = "asOf") -> int:
    """Return the position that `asOf` means (LIST-8).

    A time means all that had happened by then: the last position before the first later event. A time without an
    offset is UTC. `now_ms` is the caller's clock, `field` what the error names.

    Raises:
        UnknownPlace: the value is no position, no ISO time, beyond the end of the log, or in the future.
    """
    if isinstance(value, bool):
        raise UnknownPlace(f"{field}: true and false are no places, give a position or an ISO time")
    if isinstance(value, int):
        return _position(value, log.head(), field)
    time_ms = parse_time(value, field=field)
    positions = Positions(log)
    # The log's own time may be ahead of the clock: what it has recorded is no future.
    if time_ms > max(now_ms, positions.latest_time() or 0):
        raise UnknownPlace(f"{field}: {value} is in the future, give a time that has passed")
    return positions.position_at(time_ms)


def parse_time(value: str, *, field: str) -> int:
    """Return an ISO time in ms; without an offset it is UTC.

    Raises:
        UnknownPlace: the text is no ISO date or time.
    """
    elapsed = _since_epoch(value) if _ISO.fullmatch(value) is not None else None
    if elapsed is None:
        raise UnknownPlace(
            f"{field}: {value[:64]!a} is no ISO time, give one like 2026-11-21T04:05:00Z, or a position"
        )
    return (elapsed.days * 86_400 + elapsed.seconds) * 1000 + elapsed.microseconds // 1000


def _since_epoch(value: str) -> timedelta | None:
    try:
        parsed = datetime.fromisoformat(value.upper())
        moment = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        return moment - _EPOCH
    except ValueError:
        return None


def _position(value: int, head: int, field: str) -> int:
    if value < 0:
        raise UnknownPlace(f"{field}: {value} is before the log, positions begin at 1 and 0 is the empty log")
    if value > head:
        raise UnknownPlace(f"{field}: {value} is beyond the log's end, the last position is {head}")
    return value
