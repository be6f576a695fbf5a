"""What a session goes on from when it wakes: its state and its transcript, read from the last snapshot on, and kept now and then."""

from collections.abc import Callable, Sequence

from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.owners.session.folding import Awake
from intersession_actors.owners.session.state import Session
from intersession_actors.owners.streams.world import World
from intersession_events.basics.ids import session_stream
from intersession_events.log.recorded import Recorded
from intersession_events.log.states import EVERY, Folded


class Memory:
    """The memory of one session, as long as it is awake. Its transcript is with those of all others, in `contexts`."""

    __slots__ = ("_contexts", "_key", "_snapshot_due", "_world")

    def __init__(self, world: World, contexts: ContextCache, key: str) -> None:
        self._world = world
        self._contexts = contexts
        self._key = key
        self._snapshot_due = EVERY
        """From which version on there is to be another snapshot."""

    def read(self, told: Callable[[Folded[Awake] | Exception], None]) -> None:
        """Have the stream read from its last snapshot on; never blocks."""
        # How it is read is made for each time, since that is seldom, and sessions that are awake are many.
        self._world.log.states.load(session_stream(self._key), self._contexts.folding(self._key), told)

    def woken(self, folded: Folded[Awake]) -> None:
        """Take over what was read."""
        self._contexts.offer(self._key, folded.state.transcript)
        self._snapshot_due = folded.kept + EVERY

    def take(self, fresh: Sequence[Recorded], state: Session) -> None:
        """Take new events in, and the state after them. Now and then it is kept as a snapshot; nobody waits for it."""
        self._contexts.take(self._key, fresh)
        if not fresh or fresh[-1].version < self._snapshot_due:
            return
        last = fresh[-1]
        transcript = self._contexts.transcript_at(self._key, last.version)
        kept = transcript is not None and self._world.log.states.keep(
            last.stream, self._contexts.folding(self._key), Folded(Awake(state, transcript), last, 0)
        )
        # One that was too large is tried again when the run that made it so has ended.
        self._snapshot_due = last.version + (EVERY if kept else EVERY // 10)

    def forget(self) -> None:
        """Let go of the transcript: the session sleeps, or has failed."""
        self._contexts.forget(self._key)
