"""The command line as tests use it: a command as a child process, or in this one, where that is all a test needs."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from intersession.cli.shell.run import main
from support.paths import TESTS
from support.processes.forked import ForkedCommand
from support.running import Booth


class Ran(NamedTuple):
    """What a command gave."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)


def ran(*tokens: object) -> Ran:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        exit_code = main([str(token) for token in tokens])
    return Ran(exit_code, out.getvalue(), err.getvalue())


def shown(booth: Booth, *tokens: object) -> Ran:
    """Run a command in this process on the log of a booth."""
    return ran(*tokens, "--store", booth.url)


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which nothing outside decides what a command prints."""
    clean = {name: value for name, value in os.environ.items() if name not in _DECIDING}
    return {**clean, "PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path)), **more}


def process(*tokens: object) -> list[str]:
    """Return the command line of a command as a process of its own."""
    return [sys.executable, "-m", "intersession", *(str(token) for token in tokens)]


def ran_as_process(
    *tokens: object, cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> Ran:
    """Run a command as a process of its own."""
    done = subprocess.run(
        process(*tokens),
        cwd=cwd,
        env=environment(**(variables or {})),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def ran_forked(*tokens: object) -> Ran:
    """Run a command as a process of its own, where a fresh interpreter is not the point."""
    child = ForkedCommand([str(token) for token in tokens], environment())
    out, err = child.communicate(timeout=60)
    assert child.returncode is not None
    return Ran(child.returncode, out, err)


def hear_ctrl_c() -> None:
    """Let a child be interrupted, also where the tests run in the background, which ignores it for all below."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class DemoLog:
    """The log of a demo, and what the demo said of it. Nobody writes to it; `copy` makes one that can be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        done = ran("demo", "--store", path, "--json")
        assert done.exit_code == 0, done.err
        self.value: Any = done.json

    @property
    def exchange(self) -> str:
        """The id of the exchange with its five turns."""
        return str(self.value["replay"][1]["id"])

    @property
    def closed(self) -> int:
        """The position of its end."""
        return int(self.value["replay"][1]["position"])

    @property
    def spawn(self) -> str:
        """The id of the spawn."""
        return str(self.value["replay"][3]["id"])

    def copy(self, folder: Path) -> Path:
        """Return a copy of the log in a folder of its own."""
        return Path(shutil.copy(self.path, folder / "copy.db"))


def words(text: str) -> Sequence[str]:
    """Return the lines that are not empty, without the spaces at their ends."""
    return [line.strip() for line in text.splitlines() if line.strip()]


_DECIDING = {"INTERSESSION_STORE", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS", "TERM"}
