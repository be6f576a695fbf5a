"""The actor that Pykka's registry knows the system by. It hands messages on to `pykka.py` and, as an actor, waits for nothing."""

import threading
from collections.abc import Callable

from intersession_actors.runtime import Handler, ReplyFuture


class SystemActor(Handler):
    """Hands every message on with the answer that is owed, None for nobody's, and goes on with the next.

    `close` is called when it is stopped, on another thread: it waits for actors, which no handler may.
    """

    def __init__(self, take: Callable[[object, ReplyFuture | None], None], close: Callable[[], None]) -> None:
        super().__init__()
        self._take = take
        self._close = close

    def on_receive(self, message: object) -> None:
        """Hand a message on."""
        self._take(message, self.take_reply())

    def on_stop(self) -> None:
        """Close the system, and count as stopped when that is done: whoever stops all actors waits for it."""
        closing = threading.Thread(target=self._close, name="closing")
        closing.start()
        closing.join()
