"""What agents of this process came back with and the log does not have yet: for session actors that are started again.

A session's actor that fails is started anew from the log, and what it had been told is gone. So its agent's result is kept
beside it until it is recorded: no agent is asked twice because an actor failed.
"""

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

from intersession_actors.outside.agents.result import AgentResult, Answered, Broke
from intersession_actors.running.failures.trace import described
from intersession_events.facts import (
    LateReplyDropped,
    RunAborted,
    RunCompleted,
    RunEnd,
    RunFailed,
    RunInterrupted,
)
from intersession_events.log.recorded import Recorded

MOST_FAILURES: Final = 3
"""So often an actor may fail on a result; then it is taken for a bad reply, and the session goes on."""


class _KnownResult(NamedTuple):
    result: AgentResult
    failures: int = 0


class Results:
    """The results by run and attempt. Its methods may be called from any thread."""

    HANDLES = RunEnd | RunInterrupted | LateReplyDropped

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int], _KnownResult] = {}
        self._due: set[tuple[str, int]] = set()

    def due(self, run_id: str, attempt: int) -> None:
        """Note that an attempt is on record for which the agent is yet to be called."""
        with self._lock:
            self._due.add((run_id, attempt))

    def called(self, run_id: str, attempt: int) -> None:
        """Note that the agent is called."""
        with self._lock:
            self._due.discard((run_id, attempt))

    def is_due(self, run_id: str, attempt: int) -> bool:
        """Whether this process began the attempt, and has not called the agent."""
        return (run_id, attempt) in self._due

    def keep(self, run_id: str, attempt: int, result: AgentResult) -> None:
        """Keep what an agent came back with; before anybody is told of it."""
        with self._lock:
            self._kept[run_id, attempt] = _KnownResult(result)

    def of(self, run_id: str, attempt: int) -> AgentResult | None:
        """Return what the agent came back with; None if it did not, or if that is on record."""
        kept = self._kept.get((run_id, attempt))
        return None if kept is None else kept.result

    def failed_on(self, run_id: str, attempt: int, error: Exception) -> None:
        """Note that an actor failed while it dealt with a result."""
        with self._lock:
            kept = self._kept.get((run_id, attempt))
            if kept is None:
                return
            result, failures = kept.result, kept.failures + 1
            if failures == MOST_FAILURES and isinstance(result, Answered):
                why = f"the session failed on the answer {failures} times: {described(error)}"
                result = Broke(code="bad_reply", error=why)
            self._kept[run_id, attempt] = _KnownResult(result, failures)

    def forget(self, run_id: str, attempt: int) -> None:
        """Forget a result of which nothing is to be recorded."""
        with self._lock:
            self._kept.pop((run_id, attempt), None)

    def take(self, recorded: Sequence[Recorded]) -> None:
        """Forget the results that are on record now."""
        for item in recorded:
            event = item.event
            match event:
                case RunCompleted() | LateReplyDropped():
                    self.forget(event.run_id, event.attempt)
                case RunFailed() | RunInterrupted() | RunAborted():
                    self.called(event.run_id, event.attempt)
                    # One that answered meanwhile comes too late, and that is to be recorded yet.
                    if isinstance(self.of(event.run_id, event.attempt), Broke):
                        self.forget(event.run_id, event.attempt)
                case _:
                    pass
