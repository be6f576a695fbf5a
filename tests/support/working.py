"""`intersession work` as a process of a test, forked from one that has imported it."""

import os
import signal
from collections.abc import Mapping
from typing import Any

from support.doors.command_line import environment
from support.doors.gateway_live import WAIT
from support.processes.forked import ForkedCommand


class Working:
    """A worker in another process; it has announced itself."""

    def __init__(self, *arguments: object, variables: Mapping[str, str]) -> None:
        self.child = ForkedCommand(["work", *map(str, arguments)], environment() | dict(variables))
        assert self.child.stdout is not None
        self.said = self.child.stdout.readline()
        if " calls " not in self.said:
            raise AssertionError(f"it did not start: {self.said} {self.child.communicate(timeout=WAIT)}")

    def signal(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.child.pid, number)

    def end(self) -> tuple[Any, str]:
        """Wait until it is gone; return its exit code and what it said."""
        said = "".join(self.child.communicate(timeout=WAIT))
        return self.child.returncode, said
