"""What code of the host's is called for: the run or the delivery that whatever it does is caused by (LOOP-5).

A host's agent may speak to the system by its doors (`inbound`, `tools`, `gateway.call`, `ref`), a host's channel may be another
session, and `on_failure` may tell an agent of what failed. That goes on with the causal chain and does not begin one. It is known where the call goes on in the same thread or task,
or in what these begin while they are called. Over a network it is known of a credential that is an agent's
own: while a run of one of its sessions is under way, what is called with it is taken for what that run does.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from intersession_events.facts import Budget


class Cause:
    """A run, or a delivery, of a session. `event` is the id of the event that began it."""

    def __init__(self, *, session_key: str, budget: Budget, event: str | None) -> None:
        self.session_key = session_key
        self.budget = budget
        self.event = event
        self._calls = 0

    @contextmanager
    def inside(self) -> Generator[None]:
        """Be the cause of what is done inside."""
        token = _CAUSE.set(self)
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            _CAUSE.reset(token)

    @property
    def is_under_way(self) -> bool:
        """Whether the call has not come back. A task that it began may go on for ever, for others."""
        return self._calls > 0


class UnderWay:
    """The runs whose agents are being called now, by session. Told by session actors, asked by the doors."""

    def __init__(self) -> None:
        self._runs: dict[str, Cause] = {}

    def begin(self, cause: Cause) -> None:
        """Note that the agent of a session is called."""
        self._runs[cause.session_key] = cause

    def end(self, cause: Cause) -> None:
        """Note that it has come back; a later run of the session stays."""
        if self._runs.get(cause.session_key) is cause:
            self._runs.pop(cause.session_key, None)

    def of(self, reaches: Callable[[str], bool]) -> Cause | None:
        """Return the run under way in one of the sessions within reach: of several the one that has come furthest."""
        found = [cause for cause in list(self._runs.values()) if reaches(cause.session_key)]
        return max(found, key=lambda cause: cause.budget.hops, default=None)


_CAUSE: ContextVar[Cause | None] = ContextVar("intersession_cause", default=None)


def current_cause() -> Cause | None:
    """Return what the calling code is called for; None for what comes from outside: a person, the operator."""
    cause = _CAUSE.get()
    return cause if cause is not None and cause.is_under_way else None
