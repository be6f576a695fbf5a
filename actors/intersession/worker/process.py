"""A worker as a process of its own: it works until a signal comes (`intersession work`)."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from intersession.worker.worker import Worker

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(ready: Callable[[str], None], **given: Any) -> None:  # as `Worker` takes them
    """Work until SIGTERM or SIGINT; `ready` gets a line that says what the worker has. Blocks; must run in the main thread.

    The first signal takes no more calls, and gives those under way `runs.shutdownGraceSeconds`. The second ends the process at
    once: what it had is tried again by others.

    Raises:
        ConfigError: as `Worker` does.
        ToolRefused: the same.
    """
    stopping = threading.Event()

    def stop(number: int, _: FrameType | None) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    with Worker(**given) as worker:
        for number in SIGNALS:
            signal.signal(number, stop)
        ready(f"{worker.name} calls {', '.join((*worker.agents, *worker.channels))}, {worker.seats} at once")
        stopping.wait()
