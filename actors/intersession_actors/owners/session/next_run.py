"""Which run a session begins next, and when: in the append that lets it begin where that can be, else once its context is read."""

from collections.abc import Sequence

from intersession_actors.owners.session import commands, rules
from intersession_actors.owners.session.effects import parked
from intersession_actors.owners.session.rules import Start
from intersession_actors.owners.session.runs import RunStarter
from intersession_actors.owners.session.state import Session
from intersession_actors.owners.streams.effects import Effect
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.policy.windows import Reckoned
from intersession_events import facts
from intersession_events.log.recorded import Recorded


class NextRun:
    """Begins the runs of one session, one at a time."""

    __slots__ = ("_key", "_starter", "_told_parked", "_world")

    def __init__(self, world: World, key: str, starter: RunStarter) -> None:
        self._world = world
        self._key = key
        self._starter = starter
        self._told_parked: str | None = None

    def is_due(self, state: Session) -> bool:
        """Whether the run at the head of the queue can begin: the session is free, its agent is here, and nothing is read for it."""
        agents = self._world.agents
        if state.running is not None or not state.queue or not state.exists or self._starter.is_reading:
            return False
        return not agents.closing and self._has_agent()  # else it begins after a restart, as a first attempt

    def parked(self, state: Session) -> Effect | None:
        """Return what is told once of the run at the head of the queue, if it waits for an agent that is not here (KEY-9)."""
        if not state.exists or self._world.agents.closing or self._has_agent():
            return None
        waiting = state.queue[0]
        if self._told_parked == waiting.queued.run_id:
            return None
        self._told_parked = waiting.queued.run_id
        return parked(self._key, waiting)

    def of_queue(
        self,
        owner: Owner[Session, commands.SessionCommand],
        state: Session,
        fresh: Sequence[Recorded] = (),
    ) -> Start | None:
        """Return how the run at the head of the queue begins. None: there is none, or its context is read first.

        `fresh` are events that are recorded with the start, behind which the session is in that state; then nothing is read.
        Where what was read holds more than the stream up to where it is known, the stream is read again.
        """
        if not self.is_due(state):
            return None
        queued = state.queue[0].queued
        run_id, version, beginning = queued.run_id, owner.version, self._beginning(state, queued)
        context = self._starter.context_at(run_id, version, beginning.words, fresh)
        if context is not None:
            return Start(beginning, context)
        if fresh:
            return None
        if self._starter.has_read_beyond(run_id, version):
            owner.load()
        else:
            self._starter.read(run_id, state.interrupted + 1, version, beginning.words)
        return None

    def _beginning(self, state: Session, queued: facts.RunQueued) -> rules.Beginning:
        """Return what the next attempt begins with: its tools, and how much of the transcript its model takes."""
        runner = self._starter.runner
        said = self._world.agents.window(runner, queued.run_id, state.interrupted + 1)
        if said == "as before":
            said = None if state.window is None else Reckoned(*state.window)
        if not isinstance(said, Reckoned):
            asked_for = queued.model or state.settings.get("model")
            said = self._world.rules.reckoned(runner, asked_for, said)
        return rules.beginning_of(state, self._tools(state), said)

    def _tools(self, state: Session) -> tuple[str, ...] | None:
        """Return the names of the tools that the session has now; they are recorded with the run's start (LENS-1)."""
        return None if state.opened is None else self._world.rules.tools_of(state.opened)

    def _has_agent(self) -> bool:
        return self._world.agents.has(self._starter.runner)
