"""Why an event is there: its causes, one by one, over all sessions, back to what it all began with (WHY-1)."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.causes.in_words import EventInWords, Telling
from intersession_projections.questions.causes.links import Links
from intersession_projections.questions.causes.roots import begins, root_kind, words_beside

_AT_ONCE: Final = 8
"""The number of causes that are read at once, at first. Where a path begins sooner, what led to that is looked for in vain."""
_BESIDE: Final = 4
"""How many events of one append can stand before a person's message, and one more."""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """An event, what led to it (the nearest first), and what it all began with.

    `root` is the last of the causes, or the event itself; where that only opened a session for a person's words, it is
    those words. `root_by` is who called for it, where a call began it: the operator or a credential; None else.
    """

    event: EventInWords
    causes: tuple[EventInWords, ...]
    root: EventInWords
    root_kind: facts.Root
    root_by: str | None = None


class Causes:
    """Queries on causes, by what each event says that it was caused by."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._telling = Telling(log)

    def path(self, position: int) -> list[Recorded]:
        """Return an event and its causes, the nearest first; none for a position that has no event."""
        found: list[Recorded] = []
        path = Links(self._log).path(position)
        while links := list(islice(path, max(_AT_ONCE, len(found)))):
            events = {one.position: one for one in self._log.at(link.position for link in links)}
            for link in links:
                recorded = events.get(link.position)
                if recorded is None:
                    return found
                found.append(recorded)
                if begins(recorded):
                    return found
        return found

    def why(self, position: int) -> Why | None:
        """Return why an event is there; None for a position that has no event."""
        return self.explain(self.path(position))

    def explain(self, path: Sequence[Recorded]) -> Why | None:
        """Return the same, by the `path` that its causes make."""
        if not path:
            return None
        last = path[-1]
        behind = self._log.stream(last.stream, after=last.version, to=last.version + _BESIDE)
        words = words_beside(last, behind) or last
        event, *causes, root = self._telling.told_each([*path, words])
        return Why(
            event=event,
            causes=tuple(causes),
            root=root,
            root_kind=root_kind(words),
            root_by=words.event.doer,
        )
