"""Which run a session begins next, and when: in the append that queues it where that can be, else once its context is read."""

from intersession_actors.agents import runner_of
from intersession_actors.policy import Reckoned
from intersession_actors.session import commands, rules
from intersession_actors.session.rules import Start
from intersession_actors.session.runs import RunStarter
from intersession_actors.session.state import Session
from intersession_actors.session.telling import Telling
from intersession_actors.streams import World
from intersession_events import facts


class NextRun:
    """Begins the runs of one session, one at a time."""

    def __init__(self, world: World, key: str, starter: RunStarter, telling: Telling) -> None:
        self._world = world
        self._key = key
        self._starter = starter
        self._telling = telling

    def with_its_message(self, state: Session, command: commands.Enqueue, version: int) -> Start | None:
        """Return how the run begins that is about to be queued, where the session is free and its transcript is at hand."""
        queued, events = command.queue, rules.starts_with(state, command)
        if queued is None or events is None or self._world.agents.closing or not self._has_agent():
            return None
        beginning = self._beginning(state, queued)
        context = self._starter.context_ahead(
            queued, command.message, at=version, version=version + events, room=beginning.words
        )
        return None if context is None else Start(beginning, context)

    def begin(self, state: Session, version: int) -> commands.StartNext | commands.ReadAgain | None:
        """Have the context of the run at the head of the queue read; with the context here, return what starts it.

        Where it holds more than the stream up to that version, return what has that read first.
        """
        if state.running is not None or not state.queue or not state.exists:
            return None
        if self._world.agents.closing:
            return None  # it begins after the restart, as a first attempt
        queued = state.queue[0].queued
        run_id = queued.run_id
        if not self._has_agent():
            self._telling.parked(state.queue[0])
            return None  # parked until the agent is registered (KEY-9)
        if self._starter.is_reading:
            return None
        room = self._beginning(state, queued).words
        if self._starter.context_at(run_id, version, room) is not None:
            return commands.StartNext()
        if self._starter.has_read_beyond(run_id, version):
            return commands.ReadAgain()
        self._starter.read(run_id, state.interrupted + 1, version, room)
        return None

    def of_queue(self, state: Session, version: int) -> Start | None:
        """Return how the run at the head of the queue begins. None: there is none, or the stream has moved since it was read."""
        head = next(iter(state.queue), None)
        if head is None:
            return None
        beginning = self._beginning(state, head.queued)
        context = self._starter.context_at(head.queued.run_id, version, beginning.words)
        # Without one the context is read anew before the run is started.
        return None if context is None else Start(beginning, context)

    def _beginning(self, state: Session, queued: facts.RunQueued) -> rules.Beginning:
        """Return what the next attempt begins with: its tools, and how much of the transcript its model takes."""
        runner = runner_of(self._key)
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
        return self._world.agents.has(runner_of(self._key))
