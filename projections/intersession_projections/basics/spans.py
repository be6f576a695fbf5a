"""Parts of a log between two positions, and their events backwards: what lists over the whole log read."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

_WINDOW: Final = 512
"""Events that are read at a time."""


class Span(NamedTuple):
    """A part of a log: `after < position <= to`, and before `before`, where the next page of a list begins."""

    after: int = 0
    to: int | None = None
    before: int | None = None

    def last(self, head: int) -> int:
        """Return its last position in a log that ends at `head`."""
        ends = (head, self.to, None if self.before is None else self.before - 1)
        return min(end for end in ends if end is not None)


def backwards(
    log: Log, span: Span, stream: str | None = None, *, to_version: int | None = None
) -> Iterator[Recorded]:
    """Yield the events of a part of a log, or of one stream of it, newest first, read as they are consumed.

    `to_version` is where to begin in the stream, if it is known that nothing behind it is wanted.
    """
    last = span.last(log.head())
    if stream is not None:
        for recorded in stream_backwards(log, stream, to_version):
            if recorded.position <= span.after:
                return
            if recorded.position <= last:
                yield recorded
        return
    while last > span.after:
        first = max(span.after, last - _WINDOW)
        yield from reversed(list(log.all(after=first, to=last)))
        last = first


def stream_backwards(log: Log, stream: str, to: int | None) -> Iterator[Recorded]:
    """Yield the events of a stream, newest first, from a version on (None: the last), read as they are consumed."""
    while True:
        page = log.stream(stream, to=to, backwards=True, limit=_WINDOW)
        yield from page
        if len(page) < _WINDOW or page[-1].version == 1:
            return
        to = page[-1].version - 1
