"""A log whose texts are replaced as they are read: each caller reads what it may see.

Rows, hashes and positions stay what they are. What was changed is no proof of anything: who verifies takes the log as it is.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from intersession_events.log.log import Gathers, Log
from intersession_events.log.recorded import Gathered, Reads, Recorded

Reword = Callable[[Recorded], Recorded]
"""Returns an event in other words; the same one, if there are none to change."""


def reworded(log: Log, reword: Reword) -> Log:
    """Return a reader of a log that passes each event through `reword`."""
    return cast("Log", RewordedLog(log, reword))


def as_it_is(log: Log) -> Log:
    """Return the log itself behind a `RewordedLog`: for uses beyond reading."""
    return as_it_is(log.log) if isinstance(log, RewordedLog) else log


class RewordedLog(Gathers):
    """A reader of a log that replaces texts in its events."""

    def __init__(self, log: Log, reword: Reword) -> None:
        self.log = log
        self._reword = reword

    def _all_told(self, found: Iterable[Recorded]) -> list[Recorded]:
        return [self._reword(recorded) for recorded in found]

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        """Read the events of a stream with `after < version <= to`."""
        return self._all_told(self.log.stream(stream, after=after, to=to, backwards=backwards, limit=limit))

    def gather(self, wanted: Reads, /) -> Gathered:
        """Read several things at once."""
        found = self.log.gather(wanted)
        return Gathered(
            rows=found.rows,
            events=self._all_told(found.events),
            parts=list(map(self._all_told, found.parts)),
            streams=list(map(self._all_told, found.streams)),
            ends=list(map(self._all_told, found.ends)),
        )

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order; only those of some stored names, if any are given."""
        return map(self._reword, self.log.all(after=after, to=to, limit=limit, topics=topics))

    def with_id(self, beginning: str, *, limit: int) -> Sequence[Recorded]:
        """Return the first events whose ids begin with a text."""
        return self._all_told(self.log.with_id(beginning, limit=limit))

    def __getattr__(self, name: str) -> Any:  # as the log has it
        return getattr(self.log, name)
