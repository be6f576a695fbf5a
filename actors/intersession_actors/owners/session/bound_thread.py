"""The thread that belongs to a session: for how long it still does, and the timer that takes it away (SPAWN-12)."""

from intersession_actors.owners.session.commands import Unbind
from intersession_actors.owners.session.rules import ThreadLeft
from intersession_actors.owners.session.state import Session
from intersession_actors.owners.streams.world import World


class BoundThread:
    """Watches the thread of one session. Times are of the monotonic clock, as far as this process has seen them."""

    __slots__ = ("_key", "_world")

    def __init__(self, world: World, key: str) -> None:
        self._world = world
        self._key = key

    def watch(self, state: Session) -> None:
        """Have the thread taken from the session when it has had its time."""
        left = self.left(state)
        if left is not None:
            world, key = self._world, self._key
            world.time.timers.after(
                left[0], ("thread", key), lambda: world.mail.tell_session(key, Unbind(only_due=True))
            )

    def left(self, state: Session) -> ThreadLeft:
        """Return for how long the session's thread is still its own."""
        if state.bound is None:
            return None
        elapsed = self._world.time.stopwatch.elapsed_ms
        return state.thread_left(
            age_ms=elapsed("bound", self._key, since_ms=state.bound_ms),
            quiet_ms=elapsed("said", self._key, since_ms=state.last_message_ms),
        )
