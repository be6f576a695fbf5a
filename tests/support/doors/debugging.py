"""`intersession debug` in a thread of the tests: on a log, or on a state directory that is imported first."""

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from queue import Queue

from intersession.gateway.process.alone import debug_alone
from intersession.gateway.process.server import listen
from intersession.web.alone import Deed
from intersession_actors.calls.service.reader import Reader

Opens = Callable[[Callable[[int, int | None], None]], AbstractContextManager[tuple[Reader, Deed | None]]]


@contextmanager
def debugging(opens: Opens, what: str = "the log") -> Generator[str]:
    """Serve what is opened; yield the address that lets in once, `http://…#token=…`."""
    ready = Queue[str]()
    serving = threading.Thread(
        target=lambda: debug_alone(
            opens,
            listen("127.0.0.1", 0),
            ready=lambda address, word: ready.put(f"{address}/debug/runs#token={word}"),
            what=what,
        ),
        daemon=True,  # there is no signal in a thread: it ends with the tests
    )
    serving.start()
    yield ready.get(timeout=60)
