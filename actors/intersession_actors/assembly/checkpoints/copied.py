"""Tells when a copy of the log was last taken, by its receipt (COPY-5)."""

from collections.abc import Callable, Sequence

from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import AccessRecorded
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.views.access_receipts import CopyTaken, copy_in, last_copy


class Copied:
    """The last copy of a log. Any thread may ask.

    Receipts of before are looked for when somebody first asks; those that come are heard of.
    """

    def __init__(self, log: Log, *, now_ms: Callable[[], int]) -> None:
        self._log = log
        self._now_ms = now_ms
        self._heard_of: CopyTaken | None = None
        self._found: CopyTaken | None = None
        self._has_looked = False
        log.on_committed(self._heard, AccessRecorded)

    @property
    def status(self) -> JsonObject | None:
        """The last copy: by whom, up to which position, when, its age, and the events behind it; None if none is known.

        Raises:
            LogError: the log can't be read.
        """
        if not self._has_looked:
            self._found = last_copy(self._log)
            self._has_looked = True
        # What was heard of came after the first question, so it is later than what was found.
        last = self._heard_of or self._found
        return None if last is None else copy_value(last, self._log, self._now_ms())

    def _heard(self, batch: Sequence[Recorded]) -> None:
        for recorded in batch:
            self._heard_of = copy_in(recorded) or self._heard_of


def copy_value(copy: CopyTaken, log: Log, now_ms: int) -> JsonObject:
    """Return a copy as `status` and `doctor` tell of it. `staleMs` is how much later the log's last event is."""
    head = log.head()
    newest = next(iter(log.at([head])), None)
    return {
        "by": copy.who,
        "position": copy.position,
        "takenMs": copy.time_ms,
        "ageMs": max(now_ms - copy.time_ms, 0),
        "behind": max(head - copy.position, 0),
        "staleMs": 0 if newest is None else max(newest.time - copy.time_ms, 0),
    }
