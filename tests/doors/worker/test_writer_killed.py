"""A writer that is killed while a worker's agents are at work: the next one adopts the calls, and asks nobody again (WORK-4)."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from intersession import Turn
from intersession.gateway.protocol.client import GatewayClient
from intersession.worker.worker import Worker
from intersession_events import facts
from support.any_log import Logs, log_at
from support.doors.served_gateway import ForkedGateway
from support.encrypted import master_key, where, with_key
from support.loopback import free_port
from support.running import WAIT
from support.soaking import until

TOKEN, WORKERS = "operator-of-the-writer", "workers-of-the-writer"


class Asked:
    """An agent that counts how often it is asked, and lists sessions before and after it stands."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._lock = threading.Lock()
        self.count = 0
        self.stand = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, turn: Turn) -> str:
        before = turn.tools.call("sessions_list", {"limit": 1})
        with self._lock:
            self.count += 1
            if self.count == self._wanted:
                self.stand.set()
        assert self.go_on.wait(WAIT)
        after = turn.tools.call("sessions_list", {"limit": 1})
        return f"{turn.message}: {before.get('count')} and {after.get('count')}"


@pytest.mark.ci
@pytest.mark.clause("WORK-4", "WORK-18")
@pytest.mark.parametrize(("kills", "is_encrypted"), [(1, True), (3, False)])
def test_no_agent_is_asked_again_because_a_writer_was_killed(
    logs: Logs, tmp_path: Path, kills: int, is_encrypted: bool
) -> None:
    url = logs.at(tmp_path)
    port = free_port()
    worker_of = {"name": "work", "token": WORKERS, "scopes": ["worker"], "agents": ["*"]}
    config: dict[str, Any] = {
        "store": url,
        "agents": {"defaults": {"worker": True}, "list": [{"id": "main"}]},
        "gateway": {
            "port": port,
            "auth": {"token": TOKEN, "credentials": [worker_of]},
        },
    }
    if is_encrypted:
        config |= with_key(master_key(tmp_path))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    agent = Asked(wanted=3)

    def served() -> ForkedGateway:
        return ForkedGateway("--config", path, port=port)

    writer = served()
    with Worker(gateway=f"http://127.0.0.1:{port}", token=WORKERS, agents={"main": agent}):
        try:
            with GatewayClient(writer.address, TOKEN) as client:
                runs = [
                    client.call(
                        "chat.send",
                        {"sessionKey": f"agent:main:n{n}", "message": f"hello {n}", "idempotencyKey": f"{n}"},
                    )["runId"]
                    for n in range(3)
                ]
            assert agent.stand.wait(WAIT)
            for _ in range(kills):
                writer.signal(9)
                writer.end()
                writer = served()
            agent.go_on.set()
            assert (where(url, tmp_path, b"hello ") == []) == is_encrypted
            with GatewayClient(writer.address, TOKEN) as client:
                ends = [client.call("agent.wait", {"runId": run, "timeoutMs": 20_000}) for run in runs]
            assert [end["reply"] for end in ends] == [f"hello {n}: 1 and 1" for n in range(3)]
            with log_at(url, read_only=True) as log:  # soon, what is done with is written down
                until(lambda: log.work.standing() == [])
        finally:
            agent.go_on.set()
            writer.signal()
            writer.end()

    assert agent.count == 3
    assert (where(url, tmp_path, b"hello ") == []) == is_encrypted
    with log_at(url, read_only=True) as log:
        ended = [
            one.event for one in log.all() if isinstance(one.event, facts.RunCompleted | facts.RunInterrupted)
        ]
    assert [type(one) for one in ended] == [facts.RunCompleted] * 3
