"""What actors of a replay tell flows, kept until the log comes to what was decided on it: then all stands as it stood."""

from collections import deque
from collections.abc import Callable


class Told:
    """Words to flows, by stream, in order. Whoever decides on one earlier than it was decided sees another world."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[Callable[[], None]]] = {}

    def keep(self, stream: str, tell: Callable[[], None]) -> None:
        """Keep a word to a flow."""
        self._kept.setdefault(stream, deque()).append(tell)

    def hand_on(self, stream: str) -> bool:
        """Tell a flow what was told it first; False if there is nothing."""
        kept = self._kept.get(stream)
        if not kept:
            return False
        kept.popleft()()
        if not kept:
            del self._kept[stream]
        return True

    def forget(self) -> None:
        """Forget it all, as the end of a process does."""
        self._kept.clear()

    def hand_on_any(self) -> bool:
        """Tell any flow what was told it; False if there is nothing."""
        return any(self.hand_on(stream) for stream in list(self._kept)[:1])
