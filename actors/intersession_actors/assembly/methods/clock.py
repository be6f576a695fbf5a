"""What is wrong with the machine's clock, and what it did to the log's time: for the method `status`, and for `intersession doctor`."""

from collections.abc import Iterator
from typing import Final

from intersession_actors.running.failures.finding import Finding, note, warning
from intersession_events.basics.ids import CLOCK
from intersession_events.basics.times import length, moment
from intersession_events.facts import ClockStepped
from intersession_events.log.log import Log
from intersession_projections.basics.wording.reasons import counted
from intersession_projections.views.positions import Positions

_AHEAD_MS: Final = 300_000


def clock_findings(log: Log, now_ms: int) -> Iterator[Finding]:
    """Yield by how much the clock has stepped, and that the log's time is minutes ahead of it (L8).

    The last step is a warning where it went ahead: what is recorded since has the time that the clock tells now. A log that no process
    writes has no time that falls before the next start.
    """
    positions = Positions(log)
    latest = positions.latest_time()
    if latest is not None and latest - now_ms > _AHEAD_MS:
        yield warning(
            "log_ahead",
            f"the log's time is {moment(latest)} UTC, which is later than this machine's clock ({moment(now_ms)} UTC), from position "
            f"{positions.position_at(now_ms) + 1} on: a clock was wrong then, or this one is now",
            "look at the machine's clock; with the next event that is recorded by a clock that is right, the log's time comes "
            "back: until then name places by position, not by time",
        )
    last = next(iter(log.stream(CLOCK, backwards=True, limit=1)), None)
    if last is not None and isinstance(last.event, ClockStepped):
        step = last.event
        is_back = step.to_ms < step.from_ms
        said = (
            f"the clock stepped {counted(last.version, 'time')}, the last time {'back' if is_back else 'ahead'} by "
            f"{length(abs(step.to_ms - step.from_ms))}, from {moment(step.from_ms)} to {moment(step.to_ms)} UTC, at position "
            f"{last.position}"
        )
        if is_back:
            yield note(
                "clock_stepped",
                said,
                "nothing to do if the clock is right now: what was recorded with a later time before counts as of that time",
            )
        else:
            yield warning(
                "clock_stepped",
                said,
                "look at the machine's clock, unless it was set right then, or the machine had slept: events have its time",
            )
