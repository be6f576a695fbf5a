"""Agents at workers: how many runs a second one, two and four of them make, and what a turn costs its writer then (issue 31).

The writer is `intersession serve` in a process of its own, and so is each worker. A worker has one seat, so that what it makes
is one call after the other: agents that wait 50 ms, and agents that take 50 ms of a processor.
"""

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Figure, per_second, progress
from intersession.gateway.protocol.client import GatewayClient
from intersession.worker.worker import Worker
from intersession_events.facts import RunCompleted
from intersession_events.log.recorded import Recorded, parts_in
from intersession_events.stores.opened import gateway_of, open_log, work_at
from support.paths import ROOT, TESTS
from support.postgres.server import postgres_server

NAME: Final = "workers"
STORES: Final = ("SQLite", "PostgreSQL")
TAKES_S: Final = 0.05
SESSIONS: Final = 32
_TOKEN: Final = "the-operators-token-0123456789abcdef"
_WORKER: Final = "the-workers-token-0123456789abcdef0"
_START_S: Final = 30
_KEPT: Final = 64
"""The seats of the workers with which the writer's own work is measured."""


def waits(_turn: Any) -> str:
    """Be an agent whose model thinks."""
    time.sleep(TAKES_S)
    return "It is done."


def works(_turn: Any) -> str:
    """Be an agent that takes a processor."""
    began = time.thread_time()
    while time.thread_time() - began < TAKES_S:
        pass
    return "It is done."


async def thinks(_turn: Any) -> str:
    """Be an agent whose model thinks, and that costs its process nothing."""
    await asyncio.sleep(TAKES_S)
    return "It is done."


HERE: Final = {"main": thinks}
"""What the writer is given to call agents itself."""


def measure(
    directory: Path, *, runs: int = 160, turns: int = 2_000, most: int = 4, stores: Sequence[str] = STORES
) -> list[Figure]:
    """Measure on a file, whose workers ask the gateway, and on PostgreSQL, whose workers take calls from the database."""
    figures: list[Figure] = []
    with postgres_server() as server:
        for store in stores:
            place = directory / store
            place.mkdir()

            def url(name: str, store: str = store, place: Path = place) -> str:
                if store == "SQLite":
                    return f"sqlite:///{place / f'{name}.db'}"
                return f"{server.url}&schema={name}&files={place}"

            for agent, numbers in (("waits", (1, 4)), ("works", (1, 2))):
                rates = {
                    number: _rate(place, url(f"{agent}{number}"), agent, number, runs * number)
                    for number in numbers
                    if number <= most
                }
                figures += [
                    Figure(
                        benchmark=NAME,
                        name=f"{store}, an agent that {agent}, {number} workers",
                        value=rate,
                        unit="runs/s",
                        ratios={} if number == 1 else {"one": rate / rates[1]},
                    )
                    for number, rate in rates.items()
                ]
                progress(f"{store}: {agent}")
            inside = _cost(place, url("inside"), turns, workers=0)
            remote = _cost(place, url("remote"), turns, workers=1)
            figures += [
                Figure(
                    benchmark=NAME, name=f"{store}, the writer, agents in it", value=inside, unit="ms cpu"
                ),
                Figure(
                    benchmark=NAME,
                    name=f"{store}, the writer, agents at a worker",
                    value=remote,
                    unit="ms cpu",
                    ratios={"agents in it": remote / inside},
                ),
            ]
            progress(f"{store}: the writer")
    return figures


def _rate(place: Path, url: str, agent: str, workers: int, runs: int) -> float:
    with _writer(place, url, is_here=False) as writer, ExitStack() as stack:
        for number in range(workers):
            stack.enter_context(_working(writer.address, url, agent, f"w{number}", seats=1))
        writer.run(2 * workers)
        return per_second(runs, writer.run(runs))


def _cost(place: Path, url: str, turns: int, *, workers: int) -> float:
    """Return the milliseconds of the writer's processor time a run."""
    with _writer(place, url, is_here=not workers) as writer, ExitStack() as stack:
        for number in range(workers):
            stack.enter_context(_working(writer.address, url, "thinks", f"w{number}", seats=_KEPT))
        writer.run(SESSIONS * 4)
        before = writer.cpu()
        writer.run(turns)
        return (writer.cpu() - before) * 1000 / turns


class _Writer:
    """A writer in a process of its own, whom many clients ask at once."""

    def __init__(self, pid: int, address: str, url: str) -> None:
        self.pid = pid
        self.address = address
        self._url = url
        self._begun = 0

    def cpu(self) -> float:
        """Return the seconds of processor time that it has had."""
        text = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(text[11]) + int(text[12])) / os.sysconf("SC_CLK_TCK")

    def run(self, runs: int) -> float:
        """Have runs made in sessions of their own turn; return the seconds until all are over."""
        ended = threading.Semaphore(0)

        def note(batch: Sequence[Recorded]) -> None:
            for item in parts_in(batch):
                if isinstance(item.event, RunCompleted):
                    ended.release()

        with open_log(self._url, read_only=True) as log, GatewayClient(self.address, _TOKEN) as client:
            stop = log.on_committed(note)
            began = time.perf_counter()
            for number in range(runs):
                client.call(
                    "chat.send",  # which is over once the run has begun; a connection has a limit of what it waits for
                    {
                        "sessionKey": f"agent:main:s{number % SESSIONS}",
                        "message": "Is it done?",
                        "idempotencyKey": f"{self._begun + number}",
                    },
                )
            for _ in range(runs):
                ended.acquire()
            seconds = time.perf_counter() - began
            stop()
        self._begun += runs
        return seconds


@contextmanager
def _writer(place: Path, url: str, *, is_here: bool) -> Generator[_Writer]:
    config: Mapping[str, Any] = {
        "agents": {"list": [{"id": "main", "worker": not is_here}]},
        "session": {"agentToAgent": {"limits": {"runs": 0}}},
        "gateway": {
            "port": 0,
            "auth": {
                "token": _TOKEN,
                "credentials": [
                    {"name": "work", "token": _WORKER, "scopes": ["worker"], "agents": ["*"], "channels": []}
                ],
            },
        },
    }
    file = place / "config.json5"
    file.write_text(json.dumps(config), encoding="utf-8")
    agents = ["--agents", "benchmarks.workers:HERE"] if is_here else []
    process = subprocess.Popen(
        [sys.executable, "-m", "intersession", "serve", "--store", url, "--config", str(file), *agents],
        env={**os.environ, "PYTHONPATH": f"{TESTS}"},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + _START_S
        while (address := _address(url)) is None:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the writer did not start: {process.returncode}")
            time.sleep(0.05)
        yield _Writer(process.pid, address, url)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _address(url: str) -> str | None:
    try:
        return gateway_of(url)
    except OSError:
        return None


@contextmanager
def _working(address: str, url: str, agent: str, name: str, *, seats: int) -> Generator[None]:
    spawn = multiprocessing.get_context("spawn")
    ready, ends = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_work, args=((address, url, agent, name, seats), ready, ends), daemon=True)
    process.start()
    ready.wait(_START_S)
    try:
        yield
    finally:
        ends.set()
        process.join()


def _work(told: tuple[str, str, str, str, int], ready: Any, ends: Any) -> None:
    address, url, agent, name, seats = told
    agents = {"main": {"waits": waits, "works": works, "thinks": thinks}[agent]}
    store = work_at(url) if url.startswith("postgresql:") else None
    with Worker(store, gateway=address, agents=agents, name=name, seats=seats, token=_WORKER):
        ready.set()
        ends.wait()
