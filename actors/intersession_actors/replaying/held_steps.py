"""Steps of flows to sessions, and contexts of runs that are asked for: each is kept until the log comes to it in its session."""

from collections.abc import Callable

from intersession_actors.replaying.doors import Doors
from intersession_actors.replaying.outside import RecordedContexts
from intersession_actors.replaying.recording import Recording
from intersession_actors.session import ContextDue, Enqueue
from intersession_actors.streams import Command, Refused, Step, StepRefused
from intersession_events import facts
from intersession_events.ids import session_stream
from intersession_events.log import Recorded

Tell = Callable[[str, Command], None]
_BEFORE_A_MESSAGE = facts.SessionOpened | facts.RouteChanged | facts.RunAborted | facts.ThreadBound


class HeldSteps:
    """What sessions are still to be told. `tell_session` reaches a session by its key, `tell_flow` the manager of a stream."""

    def __init__(
        self,
        recording: Recording,
        contexts: RecordedContexts,
        doors: Doors,
        *,
        tell_session: Tell,
        tell_flow: Tell,
    ) -> None:
        self._recording = recording
        self._contexts = contexts
        self._doors = doors
        self._tell_session = tell_session
        self._tell_flow = tell_flow
        self._held: list[tuple[str, Step]] = []
        self._passed_over: set[tuple[str, str, int]] = set()
        """Runs that did not start next in their session when their context was asked for, and how far that had come."""

    def keep(self, key: str, step: Step) -> None:
        """Keep a step to a session."""
        self._held.append((key, step))

    def release(self, recorded: Recorded) -> bool:
        """Let go on what comes next in its session; say whether there is anything."""
        due = [held for held in self._held if self._is_due(*held)]
        for held in due[:1]:
            self._held.remove(held)
            self._tell_session(*held)
        if due:
            return True
        for wanted in self._contexts.wanted:
            key, run_id, read = wanted
            if session_stream(key) == recorded.stream and self._contexts.starts_any(key):
                self._contexts.wanted.remove(wanted)
                at = key, run_id, self._recording.version(recorded.stream)
                if self._contexts.starts(key, run_id) or at in self._passed_over:
                    read()  # the second time it is what starts today, whatever was recorded
                else:  # that run was aborted since
                    self._passed_over.add(at)
                    self._tell_session(key, ContextDue(run_id=run_id))
                return True
        return False

    def release_of(self, stream: str) -> bool:
        """Have a session take a step of a flow, or refuse it, where no such step was recorded."""
        for held in self._held:
            key, step = held
            if step.flow != stream:
                continue
            self._held.remove(held)
            taken = self._doors.stepped(stream, step, key) if isinstance(step, Enqueue) else step
            if isinstance(taken, Refused):
                self._tell_flow(
                    stream,
                    StepRefused(
                        stream=stream, run_id=step.run_id, code=taken.code, error=taken.error, ask=step.ask
                    ),
                )
            else:
                self._tell_session(key, taken)
            return True
        return False

    def release_any(self) -> bool:
        """Let one go on that was never recorded: it shows what is decided now."""
        if not self._held:
            return False
        self._tell_session(*self._held.pop(0))
        return True

    def _is_due(self, key: str, command: Step) -> bool:
        stream = session_stream(key)
        if not self._recording.has(stream):
            return False
        coming = self._recording.ahead(stream)
        if coming is None:
            return False
        if isinstance(command, Enqueue):
            version = self._recording.message_version(key, command.message.id)
            if version is None or version <= coming.version:
                return version is not None
            before = (self._recording.at(stream, near) for near in range(coming.version, version))
            return all(item is not None and isinstance(item.event, _BEFORE_A_MESSAGE) for item in before)
        return isinstance(coming.event, facts.SessionArchived | facts.RunAborted | facts.RunFailed)
