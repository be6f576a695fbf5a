"""The spawn tree: who spawned whom, and what became of each child."""

import msgspec

from intersession_events.log import Log
from intersession_projections.flows import Flows, SpawnSummary
from intersession_projections.sessions import SessionRow, Sessions


class SpawnNode(msgspec.Struct, frozen=True, kw_only=True):
    """A session in its tree. `spawn` is None for the root, and for a child whose spawn was not recorded."""

    key: str
    row: SessionRow | None
    spawn: SpawnSummary | None
    children: tuple["SpawnNode", ...]

    @property
    def status(self) -> str:
        """How far the child's task got: `archived`, `running`, or how it ended; for a root its run state."""
        if self.row is not None and self.row.archived is not None:
            return "archived"
        if self.spawn is not None:
            return self.spawn.status or "running"
        return "unknown" if self.row is None else self.row.run_state


class SpawnTree:
    """Queries on lineage. It needs no tables of its own: the list has the lineage, the flows the outcomes."""

    def __init__(self, log: Log) -> None:
        self._sessions = Sessions(log)
        self._flows = Flows(log)

    def of(self, key: str) -> SpawnNode:
        """Return a session with all it spawned below it, archived ones too, each level oldest first."""
        return self._node(key, frozenset())

    def root_of(self, key: str) -> str:
        """Return the session at the top of the tree that a session is in."""
        ancestors = self._sessions.ancestors(key)
        return ancestors[-1] if ancestors else key

    def _node(self, key: str, above: frozenset[str]) -> SpawnNode:
        # An imported state can claim anything, also that two sessions spawned each other.
        below = [child for child in self._sessions.children(key) if child not in above and child != key]
        return SpawnNode(
            key=key,
            row=self._sessions.get(key),
            spawn=self._flows.spawn_of_child(key),
            children=tuple(self._node(child, above | {key}) for child in below),
        )
