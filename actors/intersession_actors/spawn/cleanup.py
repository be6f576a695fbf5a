"""What is left to do of a spawn that is over: its child is archived when its time has come, its files are removed (SPAWN-11, ATT-5)."""

from collections.abc import Callable, Iterable

from intersession_actors.session import Archive
from intersession_actors.spawn import rules
from intersession_actors.spawn.commands import ArchiveDue, FilesRemoved, SpawnCommand
from intersession_actors.spawn.preparation import is_own, remove_files
from intersession_actors.streams import Flow, Plan, World
from intersession_events import facts
from intersession_events.crash_points import crash_point

BUSY_CHILD_MS = 60_000
"""How long a child that is due for archiving but still runs is left alone."""

SpawnFlow = Flow[rules.Spawn, SpawnCommand]


class Cleanup:
    """Cleans up for the spawner; `tell` gives the spawner a command."""

    def __init__(self, world: World, tell: Callable[[SpawnCommand], None]) -> None:
        self._world = world
        self._tell = tell
        self._removing: set[str] = set()
        """Spawns whose files are being removed."""

    def begin(self, stream: str, state: rules.Spawn) -> None:
        """Set the clock for the child's archiving, and have its files removed if it is time."""
        after, ended = state.archive_after_ms, state.ended
        if after is None:
            self._world.stopwatch.forget("ended", stream)
        else:
            if after and ended is not None:
                after -= self._world.stopwatch.elapsed_ms("ended", stream, since_ms=ended.ended_ms or 0)
            self._wake(stream, after)
        self.remove_files(stream, state)

    def remove_files(self, stream: str, state: rules.Spawn) -> None:
        """Have the child's files removed if it is time, once (ATT-5)."""
        files = state.files_due
        if files is not None and stream not in self._removing and is_own(self._world.log, state.accepted):
            self._removing.add(stream)
            remove_files(self._world, state.accepted.spawn_id, files, self._tell)

    def removed(self, flow: SpawnFlow, command: FilesRemoved) -> Plan:
        """Note what became of the files."""
        self._removing.discard(flow.stream)
        return _noted(flow, () if flow.state is None else rules.decide_removed(flow.state, command.error))

    def gone(self, flow: SpawnFlow) -> Plan:
        """Note that somebody else archived the child (HIST-7)."""
        return _noted(flow, () if flow.state is None else rules.decide_gone(flow.state))

    def archive(self, flow: SpawnFlow) -> Plan | None:
        """Archive the child, if it does nothing; else look again later."""
        state, stream = flow.state, flow.stream
        if state is None or state.archive_after_ms is None:
            return None
        refusal = flow.refused.pop("", None)
        if refusal is not None and refusal.code != "not_visible":
            self._wake(stream, BUSY_CHILD_MS)
            return None
        archived = rules.decide_archived(state)
        crash_point("P8" if archived.reason == "cleanup" else "P9")
        plan = _noted(flow, (archived,))
        if refusal is not None:  # somebody archived the child before us; say so in the spawn's stream
            return plan
        return plan.sent_through(
            lambda appends: (
                archived.child,
                Archive(
                    reason=archived.reason,
                    session_id=state.accepted.child_session_id,
                    flow=stream,
                    carried=appends,
                    only_idle=True,
                ),
            )
        )

    def _wake(self, stream: str, after_ms: int) -> None:
        self._world.timers.after(after_ms, ("archive", stream), lambda: self._tell(ArchiveDue(stream=stream)))


def _noted(flow: SpawnFlow, events: Iterable[facts.SpawnEvent]) -> Plan:
    return Plan(events=tuple(events), cause=flow.cause, correlation=flow.correlation)
