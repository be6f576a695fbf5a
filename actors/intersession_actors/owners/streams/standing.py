"""What process managers know of sessions outside of their own streams: from each commit, and at the start from views.

The methods may be called from any thread.
"""

import threading
from collections.abc import Sequence
from typing import NamedTuple

from intersession_actors.owners.holding.standing import Holds
from intersession_events import facts
from intersession_events.basics.ids import SESSIONS
from intersession_events.log.recorded import Recorded


class Generations:
    """The generations of watched sessions: a reset or a deletion ends a conversation (LOOP-2).

    It knows only what was recorded since a session is watched, and what was found at the start. A command may name a generation
    that never came to be: of two that would open a session, one is refused.
    """

    HANDLES = facts.SessionOpened | facts.SessionReset | facts.SessionArchived

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: dict[str, str | None] = {}
        self._watched: dict[str, set[str]] = {}

    def watch(self, key: str, *, by: str) -> None:
        """Follow a session for a stream, from now on."""
        with self._lock:
            self._watched.setdefault(key, set()).add(by)

    def unwatch(self, key: str, *, by: str) -> None:
        """Stop following a session, unless another stream follows it."""
        with self._lock:
            watching = self._watched.get(key, set())
            watching.discard(by)
            if not watching:
                self._watched.pop(key, None)
                self._now.pop(key, None)

    def found(self, key: str, session_id: str | None, *, by: str) -> None:
        """Follow a session for a stream that existed at the start, with its present generation; None: it is gone.

        The stream has not gone on yet, and others that look at the same session may be over before it does.
        """
        with self._lock:
            self._watched.setdefault(key, set()).add(by)
            self._now[key] = session_id

    def is_over(self, key: str, session_id: str) -> bool:
        """Whether a watched session is known to be in another generation, or gone."""
        with self._lock:
            return key in self._now and self._now[key] != session_id

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take in recorded events."""
        for recorded in batch:
            event = recorded.event
            if not isinstance(event, facts.SessionOpened | facts.SessionReset | facts.SessionArchived):
                continue
            key = recorded.stream.removeprefix(SESSIONS)
            with self._lock:
                if key in self._watched:
                    self._now[key] = None if isinstance(event, facts.SessionArchived) else event.session_id


class BoundThreads:
    """The session of each thread of a channel (SPAWN-12)."""

    HANDLES = facts.ThreadBound | facts.ThreadUnbound | facts.SessionArchived

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[facts.Route, str] = {}
        self._routes: dict[str, facts.Route] = {}

    def claim(self, route: facts.Route, key: str) -> bool:
        """Claim a thread for a session that is about to open; False if another session has it."""
        with self._lock:
            owner = self._owners.get(route)
            if owner not in {None, key}:
                return False
            self._put(route, key)
            return True

    def release(self, key: str) -> None:
        """Give back the thread of a session, if it has one."""
        with self._lock:
            self._drop(key)

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take in recorded events."""
        for recorded in batch:
            match recorded.event:
                case facts.ThreadBound(route=route):
                    with self._lock:
                        self._put(route, recorded.stream.removeprefix(SESSIONS))
                case facts.ThreadUnbound() | facts.SessionArchived():
                    self.release(recorded.stream.removeprefix(SESSIONS))
                case _:
                    pass

    def _put(self, route: facts.Route, key: str) -> None:
        self._drop(key)
        self._owners[route], self._routes[key] = key, route

    def _drop(self, key: str) -> None:
        route = self._routes.pop(key, None)
        if route is not None and self._owners.get(route) == key:
            del self._owners[route]


class Standing(NamedTuple):
    """Knowledge of sessions outside of flows' streams."""

    holds: Holds
    """Whose exchanges are held, and who is asked about the others."""
    generations: Generations
    """Which conversations of sessions in exchanges are over."""
    threads: BoundThreads
    """Whose the threads of channels are."""
