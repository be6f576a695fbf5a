"""Scripts as child processes that need not import the system first: forked from a process that has, and has done no more.

Each child is a process of its own, to be killed for real; the one that it is forked from has no thread, no log and no system.
"""

import multiprocessing
import os
import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from intersession_events.crash_points import VARIABLE, arm, from_environment

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["intersession", "intersession_events.stores.sqlite", "runpy"])


class Forked:
    """A script that runs as a process of its own until it ends; it does not live longer than the block."""

    def __init__(self, script: Path, *arguments: str, says: Path, crash_at: str = "") -> None:
        self._says = says
        given = (str(script), arguments, str(says), crash_at)
        self._process = _FORKS.Process(target=_become, args=given, daemon=True)

    def wait(self, timeout: float) -> int | None:
        """Wait for its end; return its exit code, minus the signal that ended it, or None if it goes on."""
        self._process.join(timeout)
        return self._process.exitcode

    def kill(self) -> None:
        """Kill it, as `kill -9` does."""
        self._process.kill()

    @property
    def said(self) -> str:
        """What it has said on its standard error."""
        return self._says.read_text() if self._says.exists() else ""

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()


def _become(script: str, arguments: tuple[str, ...], says: str, crash_at: str) -> None:
    """Run a script as if it had been started with these arguments, and this crash point in its environment."""
    said = os.open(says, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 2)
    sys.argv = [script, *arguments]
    hook = from_environment({VARIABLE: crash_at})
    if hook is not None:
        arm(hook)
    runpy.run_path(script, run_name="__main__")
