"""The cause of calls by the host's code: the run or delivery that the code was called for (LOOP-5).

A host's agent may speak to the system by its doors (`inbound`, `tools`, `gateway.call`, `ref`), a host's
channel may be another session, and `on_failure` may tell an agent of what failed. That goes on with the
causal chain and does not begin one. It is known where the call goes on in the same thread or task, or in what
these begin while they are called: a task that goes on when the call has come back does so for a minute more.
Over a network it is known of a credential that is an agent's own: while a run of one of its sessions is under
way, what is called with it is taken for what that run does.
"""

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from itertools import count
from typing import Final

import msgspec

from intersession_actors.running.runtime.clock import Clock
from intersession_events.facts import Budget, Event

LEFT_BEHIND_S: Final = 60.0
"""How long a task that a call began, and left behind, goes on with its chain. It may go on for ever, for others."""


class Times(dict[Hashable, "count[int]"]):
    """Counts repetitions of the same content, from any thread."""

    def next(self, said: Hashable) -> int:
        """Count once more; return the number of the repetition, from 1 on."""
        return next(self.setdefault(said, count(1)))


class CausedBy(msgspec.Struct, frozen=True, kw_only=True):
    """A session's run or delivery that the host's code is called for. `event` is the id of the event that began it.

    `of` is the id of the run or the delivery, where this is an `attempt` at it: an attempt that follows on one that was cut off
    has the same, and what is said in each is counted from the beginning.
    """

    session_key: str
    budget: Budget
    event: str | None
    of: str | None = None
    attempt: int = 1


class Cause:
    """A cause during its call: repetitions of content, and calls that have not returned."""

    def __init__(self, caused: CausedBy, clock: Clock) -> None:
        self.session_key, self.budget, self.event = caused.session_key, caused.budget, caused.event
        self.of, self.attempt = caused.of, caused.attempt
        self.times = Times()
        self._begun: dict[None, dict[str, Event]] = {}
        """What the attempts before began by other doors, and this one has not again, by the ids that it was asked for under."""
        self.clock = clock
        self.calls = 0
        """How many calls for it have not come back."""
        self.left_at = 0.0
        """When the last one came back."""

    def inside(self) -> "_Inside":
        """Be the cause of everything in the block."""
        return _Inside(self)

    def again(
        self, begun: Callable[[], dict[str, Event]], is_same: Callable[[str, Event], bool]
    ) -> str | None:
        """Return the id of what an attempt before began by the same call; each once. `begun` reads all that these began."""
        if None not in self._begun:
            self._begun.setdefault(None, begun())  # of two threads that read it, one is first
        known = self._begun[None]
        same = (one for one, event in list(known.items()) if is_same(one, event))
        return next((one for one in same if known.pop(one, None) is not None), None)

    @property
    def goes_on(self) -> bool:
        """Whether the call has not returned, or only just has."""
        return self.calls > 0 or self.clock.monotonic() - self.left_at < LEFT_BEHIND_S


class _Inside:
    """The context of one call: no generator, since each turn of an agent has one."""

    __slots__ = ("_cause", "_token")

    def __init__(self, cause: Cause) -> None:
        self._cause = cause

    def __enter__(self) -> None:
        self._token = _CAUSE.set(self._cause)
        self._cause.calls += 1

    def __exit__(self, *_: object) -> None:
        self._cause.calls -= 1
        self._cause.left_at = self._cause.clock.monotonic()
        _CAUSE.reset(self._token)


class UnderWay:
    """The runs whose agents are being called now, by session. Told by session actors, asked by the doors."""

    def __init__(self) -> None:
        self._runs: dict[str, Cause] = {}

    def begin(self, cause: Cause) -> None:
        """Note that a session's agent is called."""
        self._runs[cause.session_key] = cause

    def end(self, cause: Cause) -> None:
        """Note that the agent returned; a later run of the session stays."""
        if self._runs.get(cause.session_key) is cause:
            self._runs.pop(cause.session_key, None)

    def of(self, reaches: Callable[[str], bool]) -> Cause | None:
        """Return the running run of the sessions within reach: of several the one with the longest chain."""
        found = [cause for cause in list(self._runs.values()) if reaches(cause.session_key)]
        return max(found, key=lambda cause: cause.budget.hops, default=None)


_CAUSE: ContextVar[Cause | None] = ContextVar("intersession_cause", default=None)


def current_cause() -> Cause | None:
    """Return the cause of the calling code; None for calls from outside: a person, the operator."""
    cause = _CAUSE.get()
    return cause if cause is not None and cause.goes_on else None
