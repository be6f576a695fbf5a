"""Scripts and commands as child processes that need not import the system first: forked from a process that has, and no more.

Each child is a process of its own, to be killed for real; the one that it is forked from has no thread, no log and no system.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

from intersession.cli.shell.run import main
from intersession_events.basics.crash_points import VARIABLE, arm, from_environment

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "intersession.cli",
        "intersession.gateway.process.serve",
        "intersession_actors.outside.agents.openai",
        "intersession_events.stores.sqlite",
        "runpy",
    ]
)


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
    def pid(self) -> int | None:
        """The number of the process, once it has begun."""
        return self._process.pid

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


class ForkedCommand:
    """A command that runs as a process of its own, with what it prints; as much of a `Popen` as tests use.

    Its interpreter is not a fresh one: what is read at the start of one, an encoding or a path, is this process's.
    """

    def __init__(self, tokens: Sequence[str], variables: Mapping[str, str]) -> None:
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading, encoding="utf-8")
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self.returncode: int | None = None
        # As connections, they are handed on to the child.
        with (
            Connection(writing, readable=False) as out,
            Connection(os.dup(self._stderr.fileno()), readable=False) as err,
        ):
            given = (tuple(tokens), dict(variables), out, err)
            self._process = _FORKS.Process(target=_command, args=given, daemon=True)
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit code, minus the signal that ended it, or None if it goes on."""
        return self._process.exitcode if self.returncode is None else self.returncode

    def kill(self) -> None:
        """Kill it, as `kill -9` does."""
        self._process.kill()

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait until it has ended; return what it printed, and what on its standard error."""
        with self.stdout, self._stderr:
            out = self.stdout.read()
            self._process.join(timeout)
            self.returncode = self._process.exitcode
            self._stderr.seek(0)
            err = self._stderr.read()
        self._process.close()
        return out, err


def _command(tokens: Sequence[str], variables: Mapping[str, str], out: Connection, err: Connection) -> None:
    """Run a command as if it had been started with these arguments and in this environment."""
    for number, given in enumerate((out, err), 1):
        os.dup2(given.fileno(), number)
        given.close()
    # Those that are there belong to what the numbers meant before.
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", buffering=1, closefd=False)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["intersession", *tokens]
    sys.exit(main(tokens))


def _become(script: str, arguments: tuple[str, ...], says: str, crash_at: str) -> None:
    """Run a script as if it had been started with these arguments, and this crash point in its environment."""
    said = os.open(says, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 2)
    sys.argv = [script, *arguments]
    hook = from_environment({VARIABLE: crash_at})
    if hook is not None:
        arm(hook)
    runpy.run_path(script, run_name="__main__")
