"""Filters of the session list: which sessions match, and which are visible to a reader (LIST-4, VIS-2)."""

from collections.abc import Callable
from typing import NamedTuple

from intersession_events.basics.keys.key import Kind
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.sets import kind_of


class VisibleSessions(NamedTuple):
    """The sessions visible to a reader: all of some agents, itself, and its descendants (VIS-2).

    Of these it sees itself, and those that are `within` something else that limits it, by their keys (VIS-6); None is no limit.
    """

    agent: Callable[[str], bool]
    key: str
    tree: bool = True
    within: Callable[[str], bool] | None = None

    def has(self, key: str) -> bool:
        """Whether a session is within the reader's limits."""
        return self.within is None or key == self.key or self.within(key)


class SessionFilter(NamedTuple):
    """A filter for sessions; all set fields must match. No kinds mean all kinds.

    `kinds` are those of a log whose main sessions have their usual name. `parent` is the key of the session that spawned
    them itself, `seen` is what the reader sees (None: all).
    """

    agent_id: str | None = None
    kinds: frozenset[Kind] = frozenset()
    label: str | None = None
    parent: str | None = None
    seen: VisibleSessions | None = None


def matches(row: SessionRow, wanted: SessionFilter) -> bool:
    """Whether a row matches the filter, visible or not."""
    return (
        wanted.agent_id in {None, row.agent_id}
        and (not wanted.kinds or kind_of(row.key) in wanted.kinds)
        and wanted.label in {None, row.label}
        and wanted.parent in {None, row.spawned_by}
    )
