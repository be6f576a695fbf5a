"""(q) What commands that only read take from the shell and back, beside a host that writes to the log."""

import contextlib
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, quantile, timed
from benchmarks.logs import crowd_told, long_session_told, write_directly
from benchmarks.systems import answers_at_once, system
from support.doors.command_line import environment, process

NAME: Final = "commands"
LONG: Final = "agent:main:telegram:group:long"
_STARTED: Final = "--version"
COMMANDS: Final[Sequence[str]] = (
    _STARTED,
    "sessions",
    f"history {LONG} --raw",
    "runs --limit 1000",
    "runs --person nobody",
    "messages --limit 1000",
    "events --limit 1000",
    "origin nobodysaidthis",
    "state --limit 1000",
    "why run-1",
    "show run-1",
    f"replay {LONG}",
    f"replay {LONG} --at 30",
    f"replay {LONG} --steps",
)


def measure(
    directory: Path, *, messages: int = 7_000, sessions: int = 10_000, calls: int = 3
) -> list[Figure]:
    """Time each command on a log of a long session and many short ones: the middle of some calls, as text and as JSON."""
    with _host(directory, messages=messages, sessions=sessions) as store:
        middles: dict[str, float] = {}
        for command in COMMANDS:
            for form in ("", " --json") if not command.startswith("--") else ("",):
                tokens = f"{command}{form}".split()
                middles[f"{command}{form}"] = quantile(timed(lambda: _run(tokens, store), calls), 0.5)  # noqa: B023 - called here
    return [_figure(name, middle, middles) for name, middle in middles.items()]


def _figure(name: str, middle: float, middles: Mapping[str, float]) -> Figure:
    ratios = {} if name == _STARTED else {"the start alone": middle / middles[_STARTED]}
    return Figure(benchmark=NAME, name=name.replace(LONG, "LONG"), value=middle, unit="ms", ratios=ratios)


def _run(tokens: Sequence[str], store: str) -> None:
    done = subprocess.run(
        process(*tokens), env=environment(INTERSESSION_STORE=store), capture_output=True, check=False
    )
    # 1 is the answer that nobody said some words.
    if done.returncode not in {0, 1} or (done.stderr and b"error" in done.stderr):
        raise RuntimeError(f"{tokens}: {done.stderr[:500]!r}")


@contextlib.contextmanager
def _host(directory: Path, *, messages: int, sessions: int) -> Generator[str]:
    """Yield a log that a host writes to: somebody says something every half second."""
    directory.mkdir(exist_ok=True)
    told = chain(long_session_told(messages, LONG), crowd_told(sessions, 8))
    write_directly(directory / "log.db", told)
    over = threading.Event()
    with system(directory, {"main": answers_at_once}) as running:

        def work() -> None:
            while not over.wait(0.5):
                running.inbound(
                    channel="chat", chat_id="1", sender="ann", text="And now?", wait=20, deliver=False
                )

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield f"sqlite:///{directory / 'log.db'}"
        finally:
            over.set()
            worker.join()
