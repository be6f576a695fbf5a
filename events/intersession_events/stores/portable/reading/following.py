"""Follows a log that another process writes: a thread that has somebody catch up. How it hears of a commit is the database's."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable


class Following(ABC):
    """A thread that notices when another process has committed."""

    def __init__(self, catch_up: Callable[[], int]) -> None:
        """Catch up, then follow. `catch_up` returns the position that was reached."""
        self._catch_up = catch_up
        self._stopping = threading.Event()
        catch_up()
        self._thread = threading.Thread(target=self._run, name="intersession-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Have somebody catch up after each commit, until it is to stop."""
