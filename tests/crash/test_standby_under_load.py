"""A gateway and its standby, killed and ended in turn under load: nothing acknowledged is lost or doubled (STBY-1, D1).

How long nobody answers is printed, for `docs/howto/standby.md`: `pytest -m nightly -s`.
"""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from itertools import count, pairwise
from pathlib import Path
from statistics import median

import httpx
import pytest

from intersession_events.facts import RunQueued
from intersession_events.log.recorded import parts_in
from support.any_log import log_at
from support.doors.command_line import environment
from support.doors.gateway_live import WAIT
from support.doors.served_gateway import CONFIGS, token_of
from support.history import check_whole
from support.loopback import free_port
from support.processes.forked import ForkedCommand
from support.running import merged

CONFIG = CONFIGS / "base.json"
HEADERS = {"authorization": f"Bearer {token_of(CONFIG)}"}
ONE_RUN_A_SEND = {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}}
AGENTS = {"main": lambda _: "REPLY_SKIP", "ops": lambda turn: f"heard {turn.message}"}
PATIENCE_S = 60.0
AT_NIGHT = pytest.mark.nightly


class Client:
    """Sends one message after the other to one address, each until it is answered, as a client with a key may."""

    def __init__(self, address: str, name: str) -> None:
        self._address = address
        self._name = name
        self.acknowledged: dict[str, str] = {}
        """The run of each key."""
        self.at: list[float] = []
        """When it was answered."""
        self.refused: Counter[str] = Counter()
        self.over = threading.Event()

    def send(self, key: str) -> str:
        arguments = {"agentId": "ops", "message": key, "idempotencyKey": key, "timeoutSeconds": 30}
        body = {"tool": "sessions_send", "sessionKey": "agent:main:main", "args": arguments}
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                with httpx.Client(headers=HEADERS, timeout=WAIT, trust_env=False, verify=False) as http:  # noqa: S501 - no TLS
                    found = http.post(f"{self._address}/tools/invoke", json=body)
            except httpx.TransportError as error:
                self.refused[type(error).__name__] += 1
            else:
                details = found.json().get("result", {}).get("details", {})
                if found.status_code == 200 and details.get("status") == "ok":
                    assert details["reply"] == f"heard {key}"
                    self.at.append(time.monotonic())
                    return str(details["runId"])
                # A host that ends lets its callers stop waiting: the run goes on, and the same key has its answer.
                why = details.get("code") or details.get("status") or found.status_code
                assert why in {"unavailable", "timeout", 503}, found.text
                self.refused[str(why)] += 1
            assert time.monotonic() < until, self.refused
            self.over.wait(0.02)  # else clients take the processors that the next writer needs

    def run(self) -> None:
        for number in count():
            # Not faster than the rounds need: each send makes a session longer.
            if self.over.wait(0.1):
                return
            key = f"{self._name}-{number}"
            self.acknowledged[key] = self.send(key)


@contextmanager
def loading(address: str, number: int) -> Generator[list[Client]]:
    clients = [Client(address, name) for name in "abcd"[:number]]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.over.set()
        for thread in threads:
            thread.join(WAIT)


def answered_after(clients: list[Client], moment: float, more: int = 1) -> float:
    """Wait until clients were answered so many times after a moment; return when that was for the first time."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = sorted(at for client in clients for at in [*client.at] if at > moment)
        if len(found) >= more:
            return found[0]
        assert time.monotonic() < until, [client.refused for client in clients]


@pytest.mark.long
@pytest.mark.clause("STBY-1", "STBY-2", "D1")
@pytest.mark.parametrize(
    ("number", "rounds"),
    [
        pytest.param(signal.SIGKILL, 2, marks=pytest.mark.ci),
        pytest.param(signal.SIGKILL, 50, marks=AT_NIGHT),
        pytest.param(signal.SIGTERM, 50, marks=AT_NIGHT),
    ],
)
def test_clients_that_try_again_lose_nothing_when_writers_end_one_after_the_other(
    log_url: str, tmp_path: Path, number: int, rounds: int
) -> None:
    port, path = free_port(), tmp_path / "openclaw.json"
    path.write_text(json.dumps(merged(json.loads(CONFIG.read_text()), {"session": ONE_RUN_A_SEND})))
    given = ("--config", path, "--store", log_url, "--port", port, "--agents", f"{__name__}:AGENTS")
    tokens = [*map(str, ("serve", "--standby", *given))]
    gaps: list[float] = []
    with ExitStack() as held:

        def started() -> ForkedCommand:
            child = ForkedCommand(tokens, environment())
            held.callback(ended, child)
            return child

        def ended(child: ForkedCommand, by: int = signal.SIGKILL) -> int | None:
            if child.returncode is None:
                if child.poll() is None:
                    os.kill(child.pid, by)
                sys.stderr.write("".join(child.communicate(timeout=WAIT)))  # for the reader of a failure
            return child.returncode

        writer = started()
        assert writer.stdout.readline().startswith("serving ")
        with loading(f"http://127.0.0.1:{port}", 2) as clients:
            for _ in range(rounds):
                standby = started()
                with log_at(log_url, read_only=True) as log:
                    until = time.monotonic() + WAIT
                    while not any(host.pid == standby.pid for host in log.hosts.alive()):
                        assert time.monotonic() < until
                answered_after(clients, time.monotonic(), 5)
                moment = time.monotonic()
                os.kill(writer.pid, number)
                assert standby.stdout.readline().startswith("serving ")
                answered_after(clients, time.monotonic())
                answers = [moment, *sorted(at for one in clients for at in [*one.at] if at > moment)]
                gaps.append(max(later - at for at, later in pairwise(answers)))
                code = ended(writer, 0)
                assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
                writer = standby
        for client in clients:
            for key, run_id in list(client.acknowledged.items())[:: max(1, rounds)]:
                assert client.send(key) == run_id
        assert ended(writer, signal.SIGTERM) == 0

    acknowledged = {key: run for client in clients for key, run in client.acknowledged.items()}
    with log_at(log_url, read_only=True) as log:
        assert check_whole(log) == []
        queued = Counter(
            part.event.run_id for part in parts_in(log.all()) if isinstance(part.event, RunQueued)
        )
    sys.stderr.write(
        f"{number!r}: {rounds} take-overs, median {median(gaps):.2f} s, longest {max(gaps):.2f} s, {len(acknowledged)} acknowledged\n"
    )
    assert {run for run in acknowledged.values() if queued[run] != 1} == set()
