"""Two doors, a writer and a standby under load, any of which is killed at any moment: what a door acknowledged is there, once (DOOR)."""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from intersession.gateway.protocol.client import GatewayClient
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import message_in
from intersession_events.log.recorded import parts_in
from support.any_log import log_at
from support.doors.command_line import environment
from support.doors.following import with_door
from support.doors.gateway_live import TOKEN
from support.loopback import free_port
from support.processes.forked import ForkedCommand
from support.running import QUIET, SEES_ALL, merged

WAIT = 60.0
CLIENTS = 3
MAIN, OTHER = "agent:main:main", "agent:main:telegram:direct:1"


class Hosts:
    """Two hosts that may write the log, and two doors, each at a port of its own; killed and started again."""

    def __init__(self, url: str, folder: Path) -> None:
        self._config = folder / "config.json"
        self._config.write_text(json.dumps(merged(with_door(), SEES_ALL, QUIET)))
        self._url = url
        self.ports = {name: free_port() for name in ("one", "other", "left", "right")}
        self._children: dict[str, ForkedCommand] = {}

    @property
    def doors(self) -> list[str]:
        return [f"http://127.0.0.1:{self.ports[name]}" for name in ("left", "right")]

    def start(self, name: str) -> None:
        role = (
            ["--follow"]
            if name in {"left", "right"}
            else ["--standby", "--agents", "support.processes.echoing:AGENTS"]
        )
        common = [
            "serve",
            "--config",
            str(self._config),
            "--store",
            self._url,
            "--port",
            str(self.ports[name]),
        ]
        self._children[name] = ForkedCommand([*common, *role], environment())

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        os.kill(self._children[name].pid, number)
        self._children[name].communicate(timeout=WAIT)

    def pause(self, name: str) -> None:
        os.kill(self._children[name].pid, signal.SIGSTOP)

    def wake(self, name: str) -> None:
        os.kill(self._children[name].pid, signal.SIGCONT)

    def serves(self, name: str) -> None:
        line = self._children[name].stdout.readline()
        assert line.startswith(("serving", "following")), (
            line,
            self._children[name].communicate(timeout=WAIT),
        )

    def close(self) -> None:
        for name, child in self._children.items():
            if child.poll() is None:
                self.kill(name)


@contextmanager
def hosts(url: str, folder: Path) -> Generator[Hosts]:
    opened = Hosts(url, folder)
    try:
        opened.start("one")
        opened.serves("one")
        for name in ("other", "left", "right"):
            opened.start(name)
        for name in ("left", "right"):
            opened.serves(name)
        yield opened
    finally:
        opened.close()


class Client(threading.Thread):
    """Sends messages through either door, one after the other, until it is stopped: by methods with a key, by tools without.

    Where its door was killed it goes to the other one: with the same key, or, without one, with another message.
    """

    def __init__(self, number: int, doors: list[str]) -> None:
        super().__init__(daemon=True)
        self._number, self._doors = number, doors
        self._stopping = threading.Event()
        self._sent = 0
        self.acknowledged: list[str] = []
        self.answered: list[str] = []
        self.in_doubt: list[str] = []
        self.errors: list[str] = []

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._sent += 1
            text = f"m-{self._number}-{self._sent}."
            if self._sent % 2:
                self._by_method(text)
            else:
                self._by_tool(text)

    def _by_method(self, text: str) -> None:
        given = {"sessionKey": MAIN, "message": text, "idempotencyKey": text}
        while (answer := self._asked("chat.send", given)) is None:
            pass
        self.acknowledged.append(text)
        while (answer := self._asked("agent.wait", {"runId": text, "timeoutMs": 60_000})) is None:
            pass
        self._answered(text, answer)

    def _by_tool(self, text: str) -> None:
        args = {"sessionKey": MAIN, "message": text, "timeoutSeconds": 60}
        answer = self._asked("tools.invoke", {"name": "sessions_send", "args": args})
        if answer is None:
            self.in_doubt.append(text)
            return
        self.acknowledged.append(text)
        self._answered(text, answer)

    def _answered(self, text: str, answer: dict[str, object]) -> None:
        if answer.get("status") == "ok":
            self.answered.append(text)
        else:
            self.errors.append(f"{text}: {answer}")

    def _asked(self, method: str, params: Mapping[str, object]) -> dict[str, object] | None:
        """Ask a door; None if it is gone before it has answered, or is not there."""
        door = self._doors[(self._number + self._sent) % 2]
        try:
            with GatewayClient(door, TOKEN) as client:
                return client.call(method, params, timeout=WAIT)
        except ToolRefused as refused:
            gone = "closed the connection" in refused.error or "can't be reached" in refused.error
            if not gone or "log's writer" in refused.error:
                self.errors.append(f"{method}: {refused.error}")
            self._doors.reverse()
            return None


def said(url: str) -> Counter[str]:
    """Return how often each text was said to the session."""
    counts: Counter[str] = Counter()
    with log_at(url, read_only=True) as log:
        for recorded in log.all():
            for part in parts_in([recorded]):
                message = message_in(part.event)
                if message is not None and message.role == "user" and recorded.stream.startswith("session:"):
                    counts[str(message.content)] += 1
    return counts


ROUNDS = [
    pytest.param(4, signal.SIGKILL, marks=[pytest.mark.ci, pytest.mark.timeout(300)]),
    pytest.param(200, signal.SIGKILL, marks=[pytest.mark.nightly, pytest.mark.timeout(7_200)]),
    pytest.param(10, signal.SIGTERM, marks=[pytest.mark.nightly, pytest.mark.timeout(900)]),
]


@pytest.mark.clause("DOOR-2")
@pytest.mark.clause("DOOR-4")
@pytest.mark.parametrize(("kills", "ended_by"), ROUNDS)
def test_what_a_door_acknowledged_is_there_once_whoever_is_killed(
    log_url: str, beside_log: Path, kills: int, ended_by: int
) -> None:
    """Nobody is told of an error. Hosts that write the log are also ended in order, as an upgrade does."""
    chance = random.Random(31)  # noqa: S311 - the order of kills
    with ExitStack() as stack:
        running = stack.enter_context(hosts(log_url, beside_log))
        clients = [Client(number, list(running.doors)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
            stack.callback(client.stop)
        names = list(running.ports) if ended_by == signal.SIGKILL else ["one", "other"]
        order = [*names, *(chance.choice(names) for _ in range(kills))][:kills]
        for name in order:
            running.kill(name, ended_by)
            running.start(name)
            before = [len(client.answered) for client in clients]
            until = time.monotonic() + WAIT
            while any(len(client.answered) < was + 2 for client, was in zip(clients, before, strict=True)):
                assert time.monotonic() < until, [client.errors[-3:] for client in clients]
                clients[0]._stopping.wait(0.02)
        for client in clients:
            client.stop()
        for client in clients:
            client.join(WAIT)
    counts = said(log_url)

    acknowledged = [text for client in clients for text in client.acknowledged]
    in_doubt = [text for client in clients for text in client.in_doubt]
    assert [error for client in clients for error in client.errors] == []
    assert [text for text in acknowledged if _times(counts, text) != 1] == []
    assert [text for text in in_doubt if _times(counts, text) > 1] == []
    assert len(acknowledged) > kills


def _times(counts: Counter[str], text: str) -> int:
    return sum(number for content, number in counts.items() if text in content)


@pytest.mark.postgres
@pytest.mark.nightly
@pytest.mark.clause("DOOR-1")
def test_a_door_leaves_a_writer_that_is_paused_for_the_one_that_has_taken_over(
    postgres_url: str, tmp_path: Path
) -> None:
    """A paused writer keeps its connections, and answers nothing; when it wakes, it has nothing to say."""
    given = {"sessionKey": MAIN, "message": "meanwhile", "idempotencyKey": "k"}
    with hosts(postgres_url, tmp_path) as running, GatewayClient(running.doors[0], TOKEN) as client:
        client.call("chat.send", given | {"message": "before", "idempotencyKey": "j"})
        running.pause("one")
        sent = client.call("chat.send", given)
        running.wake("one")
        waited = client.call("agent.wait", {"runId": "k"})
        later = client.call("chat.send", given | {"message": "later", "idempotencyKey": "l"})
    counts = said(postgres_url)

    assert [sent["status"], waited["reply"], later["status"]] == ["started", "heard meanwhile", "started"]
    assert [_times(counts, text) for text in ("before", "meanwhile", "later")] == [1, 1, 1]
