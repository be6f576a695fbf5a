"""The times of a scheduled job: by an expression of cron in a time zone, every so often, or once (CRON-1)."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from itertools import islice, takewhile
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from intersession_events.basics.times import on_calendar

Kind = Literal["cron", "every", "at"]

MOST_COUNTED: Final = 10_000
"""As many missed times are counted, and no more."""


class Times(NamedTuple):
    """When a job is due. `anchor_ms` is the time that `every_ms` counts from; `at_ms` the one time of a job that has but one."""

    kind: Kind
    expr: str = ""
    zone: tzinfo = UTC
    every_ms: int = 1
    anchor_ms: int = 0
    at_ms: int = 0

    def after(self, ms: int) -> int | None:
        """Return the next time behind a moment, in milliseconds; None if there is none."""
        return next(self._after(ms), None)

    def latest(self, since_ms: int, now_ms: int) -> int | None:
        """Return the last time behind one moment and not behind another; None if there is none."""
        match self.kind:
            case "cron":
                # From behind: a job of each minute has half a million times in a year.
                at = next(_cron(self.expr, self.zone, now_ms + 1000 - now_ms % 1000, back=True), None)
            case "every":
                at = self.anchor_ms + (now_ms - self.anchor_ms) // self.every_ms * self.every_ms
            case "at":
                at = self.at_ms
        return at if at is not None and since_ms < at <= now_ms else None

    def number(self, since_ms: int, until_ms: int) -> int:
        """Return how many times are behind one moment and not behind another, as far as they are counted."""
        if self.kind == "every":
            ticks = (until_ms - self.anchor_ms) // self.every_ms - (
                since_ms - self.anchor_ms
            ) // self.every_ms
            return min(ticks, MOST_COUNTED)
        return sum(
            1 for _ in islice(takewhile(lambda at: at <= until_ms, self._after(since_ms)), MOST_COUNTED)
        )

    def _after(self, ms: int) -> Iterator[int]:
        match self.kind:
            case "cron":
                # In an hour that the clocks repeat, cron names times that have passed.
                yield from (at for at in _cron(self.expr, self.zone, ms - ms % 1000) if at > ms)
            case "every":
                at = self.anchor_ms + ((ms - self.anchor_ms) // self.every_ms + 1) * self.every_ms
                while True:
                    yield at
                    at += self.every_ms
            case "at":
                if self.at_ms > ms:
                    yield self.at_ms


def _cron(expr: str, zone: tzinfo, ms: int, *, back: bool = False) -> Iterator[int]:
    from cronsim import CronSim  # noqa: PLC0415 - few hosts have schedules

    since = on_calendar(ms)
    if since is not None:
        for at in CronSim(expr, since.astimezone(zone), reverse=back):
            yield int(at.timestamp()) * 1000


def check_expression(expr: str) -> None:
    """Check an expression of cron: five fields, or six with seconds first.

    Raises:
        ValueError: it is invalid, or no time ever matches it.
    """
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - few hosts have schedules

    try:
        next(CronSim(expr, datetime(2026, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        what = str(error)
        raise ValueError(f"{what[:1].lower()}{what[1:]}") from None
    except StopIteration:
        raise ValueError("no time ever matches it") from None


def zone_of(name: str | None) -> tzinfo:
    """Return a time zone by its IANA name, which this machine knows; UTC if none is given."""
    return UTC if name in {None, "UTC"} else ZoneInfo(str(name))


def moment_of(text: str, zone: tzinfo) -> int:
    """Return a moment in ISO 8601, in milliseconds; without an offset it is of the zone.

    Raises:
        ValueError: it is invalid.
    """
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo is not None else at.replace(tzinfo=zone)).timestamp() * 1000)
