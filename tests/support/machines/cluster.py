"""A cluster on machines of their own: PostgreSQL here, two hosts of which one writes, workers, doors; and people who talk to it."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from intersession.gateway.protocol.client import GatewayClient
from intersession_actors.rules.errors import ToolRefused
from support.machines.machines import US, Machine, Machines, Program, machines
from support.postgres.server import postgres_server

PORT: Final = 18789
TOKEN: Final = "operators-token-of-the-cluster"
WORKER: Final = "workers-token-of-the-cluster"
DOOR: Final = "doors-token-of-the-cluster"

AGENTS: Final = """
import os, time
CALLS = os.environ["CALLS"]
def main(turn):
    with open(CALLS, "a") as file:
        file.write(f"{turn.run_id} {turn.attempt} {turn.message}\\n")
    time.sleep(0.05)
    return f"answer to {turn.message}"
AGENTS = {"main": main}
"""


@dataclass
class Host:
    """One part of the cluster: its machine, how it is started, and the program that runs now."""

    machine: Machine
    arguments: Sequence[str]
    env: dict[str, str]
    log: Path
    program: Program | None = None

    def start(self) -> None:
        """Start it, if it does not run."""
        if self.program is None or self.program.process.poll() is not None:
            self.program = self.machine.python(
                "-m", "intersession", *self.arguments, env=self.env, log=self.log
            )

    @property
    def address(self) -> str:
        """Where its gateway is."""
        return f"http://{self.machine.address}:{PORT}"


@dataclass
class Cluster:
    """The parts by name: `a` and `b` may write, `w1` and so on are workers, `d1` and `d2` doors."""

    url: str
    folder: Path
    hosts: dict[str, Host] = field(default_factory=dict[str, Host])

    @property
    def calls(self) -> list[str]:
        """Each call of an agent, as it noted it."""
        path = self.folder / "calls.txt"
        return path.read_text().splitlines() if path.exists() else []

    def start(self) -> None:
        """Start all parts that do not run."""
        for host in self.hosts.values():
            host.start()


def _config(folder: Path, machine: Machine) -> Path:
    path = folder / f"{machine.name}.json"
    path.write_text(
        json.dumps(
            {
                "agents": {"list": [{"id": "main", "default": True, "worker": True}]},
                "gateway": {
                    "bind": "lan",
                    "port": PORT,
                    "advertise": f"http://{machine.address}:{PORT}",
                    "auth": {
                        "mode": "token",
                        "token": TOKEN,
                        "credentials": [
                            {"name": "workers", "token": WORKER, "scopes": ["worker"], "agents": ["main"]},
                            {
                                "name": "doors",
                                "token": DOOR,
                                "actAs": ["*"],
                                "scopes": ["door", "operator.admin", "operator.approvals"],
                            },
                        ],
                    },
                },
            }
        )
    )
    return path


@contextmanager
def cluster(folder: Path, *, workers: int = 3, doors: int = 2) -> Generator[Cluster]:
    """Start a cluster for a block."""
    with machines() as fabric, postgres_server(address=US) as server:
        made = Cluster(f"{server.url}&schema=cluster", folder)
        (folder / "cluster_agents.py").write_text(AGENTS)
        for name in ("a", "b"):
            _add(made, fabric, name, ("serve", "--standby"))
        for number in range(1, workers + 1):
            work = ("work", "--agent", "main", "--agents", "cluster_agents:AGENTS", "--seats", "8")
            _add(made, fabric, f"w{number}", work)
        for number in range(1, doors + 1):
            _add(made, fabric, f"d{number}", ("serve", "--follow"))
        made.hosts["a"].start()
        wait_until(lambda: answers(made.hosts["a"].address))
        made.start()
        yield made


def answers(address: str) -> bool:
    """Whether a gateway answers there."""
    try:
        with GatewayClient(address, TOKEN):
            return True
    except ToolRefused:
        return False


def wait_until(is_so: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait until something is so, and fail if it is not in time."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.1)


def _add(made: Cluster, fabric: Machines, name: str, arguments: Sequence[str]) -> None:
    machine = fabric.machine(name)
    made.hosts[name] = Host(
        machine,
        (*arguments, "--store", made.url, "--config", str(_config(made.folder, machine))),
        {
            "PYTHONPATH": str(made.folder),
            "CALLS": str(made.folder / "calls.txt"),
            "INTERSESSION_WORKER_TOKEN": WORKER,
        },
        made.folder / f"{name}.log",
    )


class People:
    """Talk to the doors, one session each: what was accepted under a key is asked for until it is answered."""

    def __init__(self, addresses: Sequence[str], number: int) -> None:
        self._addresses = addresses
        self.accepted: dict[str, str] = {}
        """The run of each message that a door took."""
        self.ended: dict[str, dict[str, Any]] = {}
        """How each of these runs ended, as a door told."""
        self.troubles: dict[str, int] = defaultdict(int)
        self.stopping = threading.Event()
        self._threads = [threading.Thread(target=self._talk, args=(one,)) for one in range(number)]

    def start(self) -> None:
        """Begin to talk."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> bool:
        """Say no more, wait until everything is answered; return whether it was in time."""
        self.stopping.set()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        return not any(thread.is_alive() for thread in self._threads)

    def _talk(self, person: int) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            text = f"message {number} of {person}"
            params = {"message": text, "sessionKey": f"agent:main:person{person}", "idempotencyKey": text}
            run_id = self._asked(person, "agent", params)["runId"]
            self.accepted[text] = run_id
            while True:
                end = self._asked(person, "agent.wait", {"runId": run_id, "timeoutMs": 5_000})
                if end.get("status") != "timeout" or "endedAt" in end:
                    break
            self.ended[text] = end

    def _asked(self, person: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask one door, and another one if that does not answer; the key makes it the same message."""
        turn = person
        while True:
            address = self._addresses[turn % len(self._addresses)]
            try:
                with GatewayClient(address, TOKEN) as client:
                    return client.call(method, params, timeout=15.0)
            except ToolRefused as refused:
                if refused.code not in {"unavailable", "forbidden"}:
                    raise
                self.troubles[refused.error[:60]] += 1
            turn += 1
            time.sleep(0.1)
