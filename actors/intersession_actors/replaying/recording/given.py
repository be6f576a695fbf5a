"""A stream of a recording: what stands where in it, and how far the replay has come in it."""

from collections.abc import Sequence

from intersession_actors.replaying.recording.one_append import of_one_append
from intersession_events.log import Recorded


class Given:
    """The events of a stream, but for the first `before` of them, which are not given."""

    __slots__ = ("_append_ahead", "before", "came", "events")

    def __init__(self, before: int) -> None:
        self.events: list[Recorded] = []
        self.before = before
        self.came = 0
        """The version that the replay has come to."""
        self._append_ahead: tuple[int, Sequence[Recorded]] | None = None
        """What one append may have made behind a version, as far as it was asked."""

    def at(self, version: int) -> Recorded | None:
        """Return an event by its version."""
        at = version - self.before
        return self.events[at - 1] if 0 < at <= len(self.events) else None

    def behind(self, version: int) -> Sequence[Recorded]:
        """Return all events behind a version, whether they have happened or not."""
        return self.events[max(version - self.before, 0) :]

    def happened(self, after: int, to: int | None) -> Sequence[Recorded]:
        """Return what has happened, with `after < version <= to`."""
        last = self.came if to is None else min(to, self.came)
        return self.events[max(after - self.before, 0) : max(last - self.before, 0)]

    def ahead(self, further: int) -> Recorded | None:
        """Return the next event, or the one so many further on."""
        at = self.came - self.before + further
        return self.events[at] if at < len(self.events) else None

    def append_ahead(self) -> Sequence[Recorded]:
        """Return the events that follow, as far as one append may have made them."""
        if self._append_ahead is None or self._append_ahead[0] != self.came:
            self._append_ahead = self.came, of_one_append(self.events, self.came - self.before)
        return self._append_ahead[1]
