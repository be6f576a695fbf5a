"""Workers are killed, paused and woken while they call agents: each run has one end, and nothing is done for one that is over (WORK-13)."""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from intersession import SessionSystem
from intersession.gateway.protocol.client import GatewayClient
from intersession_events.facts import LateReplyDropped, RunCompleted, RunEnd, RunInterrupted, RunStarted
from intersession_events.log.recorded import Recorded
from support.beside import WITH_WORKERS, WORKER
from support.doors.command_line import environment
from support.doors.gateway_live import TOKEN, LiveGateway
from support.history import Evidence, broken
from support.loopback import free_port
from support.processes.forked import ForkedCommand
from support.running import SEES_ALL, WAIT, merged
from support.working import Working

AGENTS = "support.processes.agents_at_work:AGENTS"
ALIVE_S = 1.0
CONFIG = merged(SEES_ALL, WITH_WORKERS, {"runs": {"workerAliveSeconds": ALIVE_S, "retryInterrupted": 100}})


class Crew:
    """Workers of one writer, each of which may be killed, and is started again, or paused for longer than its calls are kept."""

    def __init__(self, start: Callable[[], Working], number: int) -> None:
        self._start = start
        self.workers = [start() for _ in range(number)]
        self._asleep: dict[int, threading.Timer] = {}

    def kill(self, at: int) -> None:
        self._woken(at)
        self.workers[at].signal(signal.SIGKILL)
        self.workers[at].end()
        self.workers[at] = self._start()

    def pause(self, at: int) -> None:
        self._woken(at)
        self.workers[at].signal(signal.SIGSTOP)
        self._asleep[at] = threading.Timer(2.5 * ALIVE_S, self.workers[at].signal, (signal.SIGCONT,))
        self._asleep[at].start()

    def _woken(self, at: int) -> None:
        """Wake it no more: it may be gone by then."""
        timer = self._asleep.pop(at, None)
        if timer is not None:
            timer.cancel()
            timer.join()

    def end(self) -> None:
        for at, worker in enumerate(self.workers):
            self._woken(at)
            worker.signal(signal.SIGKILL)
            worker.end()


@pytest.mark.clause("WORK-1", "WORK-5", "WORK-13")
@pytest.mark.parametrize("way", ["gateway", pytest.param("database", marks=pytest.mark.postgres)])
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1, marks=pytest.mark.ci),
        *(pytest.param(seed, marks=[pytest.mark.nightly, pytest.mark.timeout(600)]) for seed in range(2, 6)),
    ],
)
def test_each_run_has_one_end_whatever_happens_to_its_workers(
    request: pytest.FixtureRequest, tmp_path: Path, way: str, seed: int
) -> None:
    runs, faults = (16, 4) if seed == 1 else (120, 40)
    chance = random.Random(seed)  # noqa: S311 - whom it hits, and when
    url = str(request.getfixturevalue("postgres_url")) if way == "database" else str(tmp_path / "log.db")
    with ExitStack() as opened:
        system = opened.enter_context(SessionSystem(url, config=CONFIG))
        live = opened.enter_context(LiveGateway(system))
        system.log.announce_gateway(live.address)
        where = ["--store", url] if way == "database" else ["--gateway", live.address]

        def start() -> Working:
            given = [*where, "--agents", AGENTS, "--seats", "4"]
            return Working(*given, variables={"INTERSESSION_WORKER_TOKEN": WORKER, "AT_WORK": str(tmp_path)})

        crew = Crew(start, 4)
        opened.callback(crew.end)
        asked = [ask(system, number) for number in range(runs)]
        for _ in range(faults):
            fault = chance.choice((crew.kill, crew.pause))
            fault(chance.randrange(4))
            threading.Event().wait(chance.random() / 2)
        answers = [system.gateway.call("agent.wait", {"runId": run, "timeoutMs": 120_000}) for run in asked]
        events = list(system.log.all())

    assert [answer.get("reply") for answer in answers] == [f"did {number}" for number in range(runs)]
    late, refused = check(events, asked, tmp_path)
    assert seed == 1 or (late and refused)  # else none was woken in the middle of its work


@pytest.mark.clause("WORK-4", "WORK-14")
@pytest.mark.sqlite(
    "one file has the writer, killed and started again; PostgreSQL's take-over is a standby's"
)
@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.ci), pytest.param(30, marks=pytest.mark.nightly)]
)
def test_no_agent_is_asked_twice_because_its_writer_was_killed(tmp_path: Path, kills: int) -> None:
    url, address = f"sqlite:///{tmp_path / 'log.db'}", f"http://127.0.0.1:{free_port()}"
    config = tmp_path / "host.json"
    config.write_bytes(msgspec.json.encode(merged(CONFIG, {"runs": {"workerAliveSeconds": 20}})))
    chance = random.Random(kills)  # noqa: S311 - when to kill

    def serving() -> ForkedCommand:
        given = ["--port", address.rpartition(":")[2], "--config", str(config), "--store", url]
        child = ForkedCommand(["serve", *given], environment())
        assert child.stdout is not None
        assert child.stdout.readline().startswith("serving")
        return child

    variables = {"INTERSESSION_WORKER_TOKEN": WORKER, "AT_WORK": str(tmp_path)}
    writer = serving()
    crew = [Working("--gateway", address, "--agents", AGENTS, variables=variables) for _ in range(2)]
    asked: list[str] = []
    try:
        for number in range(kills + 1):
            with GatewayClient(address, TOKEN) as client:
                for which in range(6):
                    said = {"sessionKey": f"agent:main:chat:group:{which}", "message": f"{number}.{which}"}
                    sent = client.call("chat.send", said | {"idempotencyKey": f"{number}.{which}"})
                    asked.append(str(sent["runId"]))
            if number == kills:
                break
            threading.Event().wait(chance.random() / 5)
            os.kill(writer.pid, signal.SIGKILL)
            writer.communicate(timeout=WAIT)
            writer = serving()
        with GatewayClient(address, TOKEN) as client:
            for run in asked:
                answer = client.call("agent.wait", {"runId": run, "timeoutMs": 60_000}, timeout=70)
                assert answer["status"] == "ok", answer
    finally:
        for worker in crew:
            worker.signal(signal.SIGKILL)
            worker.end()
        os.kill(writer.pid, signal.SIGTERM)
        writer.communicate(timeout=WAIT)

    # One whose writer died before a worker could hear of it is a second attempt: its agent was not called before.
    calls = Counter(line.partition(" ")[0] for line in (tmp_path / "calls").read_text().splitlines())
    assert [*calls.values()] == [1] * len(asked)


def ask(system: SessionSystem, number: int) -> str:
    who = f"person {number % 8}"
    said = system.inbound(channel="chat", chat_id=who, sender=who, text=str(number))
    return str(said["runId"])


def check(events: list[Recorded], asked: list[str], folder: Path) -> tuple[int, int]:
    """Check what the log says, and what agents have heard; return how many late answers there are, and refused calls."""
    ends = Counter(one.event.run_id for one in events if isinstance(one.event, RunEnd))
    assert ends == dict.fromkeys(asked, 1)
    ended = {
        (one.event.run_id, one.event.attempt): one.position
        for one in events
        if isinstance(one.event, RunCompleted | RunInterrupted)
    }
    started = {(one.event.run_id, one.event.attempt) for one in events if isinstance(one.event, RunStarted)}
    late = Counter(
        (one.event.run_id, one.event.attempt) for one in events if isinstance(one.event, LateReplyDropped)
    )
    assert started == {*ended}
    assert max(late.values(), default=1) == 1
    assert {*late} <= started
    # Each call of an agent was for an attempt that is on record, and none was made twice.
    calls = Counter((folder / "calls").read_text().splitlines())
    assert {tuple(one.split()) for one in calls} <= {(run, str(attempt)) for run, attempt in started}
    assert max(calls.values()) == 1
    assert broken(Evidence(events=events, attempts=101)) == []
    refused = folder / "refused"
    said = refused.read_text() if refused.exists() else ""
    assert all("this attempt is over" in line for line in said.splitlines())
    return late.total(), len(said.splitlines())
