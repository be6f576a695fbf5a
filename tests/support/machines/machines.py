"""Starts programs on machines of their own: network, process ids and host name are each machine's."""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from support.machines.switch import Port, Switch, has_cards

IP: Final = shutil.which("ip")
NETWORK: Final = "10.77.0"
US: Final = f"{NETWORK}.1"
"""The address of the machine that the test runs on."""


def can_make_machines() -> bool:
    """Whether this machine lets the test make others."""
    return has_cards() and IP is not None and shutil.which("unshare") is not None


def _ip(*arguments: str) -> None:
    assert IP is not None
    done = subprocess.run([IP, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr}")


class Program:
    """A program that runs on a machine."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @property
    def pids(self) -> list[int]:
        """The process ids of the program and of its children, as this machine sees them; not of what set the machine up."""
        found: list[int] = []
        at = [self.process.pid]
        while at:
            pid = at.pop()
            with suppress(OSError):
                for task in (Path("/proc") / str(pid) / "task").iterdir():
                    children = [int(one) for one in (task / "children").read_text().split()]
                    found += children
                    at += children
        return found

    def tell(self, number: int) -> None:
        """Send a signal to it."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End it as a power cut does."""
        self.tell(signal.SIGKILL)
        self.process.kill()
        self.process.wait(30)

    def pause(self) -> None:
        """Stop it in its tracks."""
        self.tell(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self.tell(signal.SIGCONT)

    def stop(self, timeout: float = 40.0) -> int:
        """End it by SIGTERM, and return its exit code."""
        self.tell(signal.SIGTERM)
        return self.process.wait(timeout)


class Machine:
    """A machine of its own, with one network card."""

    def __init__(self, name: str, space: str, address: str, port: Port) -> None:
        self.name = name
        self.address = address
        self._space = space
        self._port = port
        self.programs: list[Program] = []

    def run(
        self, arguments: Sequence[str], *, env: Mapping[str, str] | None = None, log: Path | None = None
    ) -> Program:
        """Start a program; what it prints goes to a file."""
        assert IP is not None
        # The first process of a machine ignores signals that it has no handler for, so the program is not that one.
        inside = ["sh", "-c", 'hostname "$0"; "$@"; exit $?', self.name, *arguments]
        with open(log or os.devnull, "a") as out:  # noqa: PTH123 - it may be no file
            process = subprocess.Popen(
                [
                    *(IP, "netns", "exec", self._space),
                    *("unshare", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"),
                    *inside,
                ],
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )
        program = Program(process)
        self.programs.append(program)
        return program

    def python(
        self, *arguments: str, env: Mapping[str, str] | None = None, log: Path | None = None
    ) -> Program:
        """Start this Python there."""
        return self.run([sys.executable, *arguments], env=env, log=log)

    def cut(self) -> None:
        """Cut its network cable."""
        self._port.is_cut = True

    def heal(self) -> None:
        """Plug its network cable in again."""
        self._port.is_cut = False

    def slow(self, delay_ms: float) -> None:
        """Let every frame from it and to it take longer."""
        self._port.delay_s = delay_ms / 1000


class Machines:
    """Machines on one switch. The machine of the test is on it as well, as `US`."""

    def __init__(self) -> None:
        self._tag = uuid.uuid4().hex[:5]
        self._switch = Switch()
        self._spaces: list[str] = []
        self.all: list[Machine] = []
        card = f"is{self._tag}0"
        self._switch.plug_in(card)
        _ip("addr", "add", f"{US}/24", "dev", card)
        _ip("link", "set", card, "up")

    def machine(self, name: str) -> Machine:
        """Add a machine."""
        number = len(self._spaces) + 2
        space, card, address = f"is{self._tag}-{name}", f"is{self._tag}{number - 1}", f"{NETWORK}.{number}"
        port = self._switch.plug_in(card)
        _ip("netns", "add", space)
        self._spaces.append(space)
        _ip("link", "set", card, "netns", space)
        for arguments in (
            ("addr", "add", f"{address}/24", "dev", card),
            ("link", "set", card, "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", space, *arguments)
        made = Machine(name, space, address, port)
        self.all.append(made)
        return made

    def close(self) -> None:
        """End all programs and machines."""
        for machine in self.all:
            for program in machine.programs:
                if program.process.poll() is None:
                    program.kill()
        for space in self._spaces:
            _ip("netns", "del", space)
        self._switch.close()


@contextmanager
def machines() -> Generator[Machines]:
    """Give machines for a block."""
    made = Machines()
    try:
        yield made
    finally:
        made.close()
