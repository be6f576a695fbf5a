"""What code of the host's is called for: the run or the delivery that whatever it does is caused by (LOOP-5).

A host's agent may speak to the system by its doors (`inbound`, `tools`, `gateway.call`), and a host's channel may be another
session. That goes on with the causal chain and does not begin one. It is known where the call goes on in the same thread or task,
or in what these begin while they are called; not over a network, nor in an actor of the host's own.
"""

from collections.abc import Generator
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


_CAUSE: ContextVar[Cause | None] = ContextVar("intersession_cause", default=None)


def current_cause() -> Cause | None:
    """Return what the calling code is called for; None for what comes from outside: a person, the operator."""
    cause = _CAUSE.get()
    return cause if cause is not None and cause.is_under_way else None
