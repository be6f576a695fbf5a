"""Channels at a worker that takes their texts over its writer's gateway; either of them is killed, or sleeps (WORK-15 to WORK-17)."""

import json
import os
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from intersession import Channel, ConfigError, File, Outbound, Reply, Turn
from intersession.gateway.protocol.client import GatewayClient
from intersession_events import facts
from support.any_log import log_at
from support.beside import WITH_WORKERS, WORKER, beside
from support.doors.command_line import environment
from support.doors.gateway_live import TOKEN
from support.loopback import Answer, Loopback
from support.processes.forked import ForkedCommand
from support.running import SEES_ALL, WAIT, merged, wait_for
from support.soaking import until
from support.working import Working

E = TypeVar("E")

CHANNELS = "support.processes.channels_at_work:CHANNELS"


@pytest.mark.clause("WORK-15")
def test_an_answer_and_its_file_go_out_by_a_worker() -> None:
    got: list[tuple[str, str, bytes]] = []

    async def deliver(outbound: Outbound) -> dict[str, str]:
        got.extend((outbound.text, file.name, file.read()) for file in outbound.files)
        return {"id": "m1"}

    def agent(_: Turn) -> Reply:
        return Reply("here", files=(File(data=b"what is in it", name="a.txt"),))

    with beside(":memory:", agents_here={"main": agent}) as writer:
        worker = writer.worker({}, channels={"chat": Channel(deliver=deliver)})
        writer.ask("hello")
        done = wait_for(writer.system, facts.DeliveryDone)

    assert got == [("here", "a.txt", b"what is in it")]
    assert done.receipt == '{"id":"m1"}'
    assert (worker.agents, [*worker.channels]) == ({}, ["chat"])


@pytest.mark.clause("WORK-15")
def test_a_worker_calls_the_url_of_a_channel_that_its_configuration_has() -> None:
    with Loopback(lambda _: Answer(200, b'{"id": 7}')) as server:
        channel = {"deliver": f"http://127.0.0.1:{server.port}/", "allowHosts": ["127.0.0.1"]}
        config = {"channels": {"chat": channel | {"worker": True}}}
        with beside(":memory:", agents_here={"main": lambda _: "hi"}, config=config) as writer:
            writer.worker({}, channels=["chat"], config=config)
            writer.ask("hello")
            done = wait_for(writer.system, facts.DeliveryDone)
            with pytest.raises(ConfigError, match=r"channels\.other\.deliver"):
                writer.worker({}, channels=["other"], config=config)

    assert done.receipt == '{"status":200,"answer":{"id":7}}'
    assert len(server.asked) == 1


class Bots:
    """A log with a writer and workers in processes of their own; `folder` steers the workers' channels and shows what they sent."""

    def __init__(self, url: str, folder: Path, alive_s: int) -> None:
        self.url = url
        self.folder = folder
        self.config = folder / "host.json"
        channels = {name: {"worker": True} for name in ("telegram", "keyed")}
        config = merged(
            SEES_ALL, WITH_WORKERS, {"runs": {"workerAliveSeconds": alive_s}, "channels": channels}
        )
        self.config.write_text(json.dumps(config), encoding="utf-8")
        self.address = ""
        self.running: list[Any] = []
        self.serve()

    def serve(self) -> None:
        """Start a writer, at the address of the one before."""
        port = self.address.rpartition(":")[2] or "0"
        arguments = ["serve", "--config", str(self.config), "--store", self.url, "--port", port]
        self.writer = ForkedCommand(arguments, environment())
        self.running.append(self.writer)
        line = self.writer.stdout.readline()
        assert line.startswith("serving "), (line, self.writer.communicate(timeout=WAIT))
        self.address = line.rpartition(" at ")[2].strip()

    def kill(self) -> None:
        """Kill the writer."""
        self.writer.kill()
        self.writer.communicate(timeout=WAIT)
        self.running.remove(self.writer)

    def work(self, channel: str, name: str) -> Working:
        """Start a worker."""
        given = ("--gateway", self.address, "--channels", CHANNELS, "--channel", channel, "--name", name)
        variables = {"INTERSESSION_WORKER_TOKEN": WORKER, "AT_WORK": str(self.folder)}
        worker = Working(*given, variables=variables)
        self.running.append(worker.child)
        return worker

    def send(self, channel: str, text: str) -> None:
        with GatewayClient(self.address, TOKEN) as client:
            client.call(
                "send",
                {"channel": channel, "to": "42", "message": text, "idempotencyKey": text},
                timeout=WAIT,
            )

    def shown(self) -> list[str]:
        """Return the texts that channels were called with, in order."""
        file = self.folder / "shown"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [line.partition(" ")[2] for line in lines]

    def events(self, kind: type[E]) -> list[E]:
        with log_at(self.url, read_only=True) as log:
            return [item.event for item in log.all() if isinstance(item.event, kind)]

    def close(self) -> None:
        for child in self.running:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGCONT)
            child.kill()
            child.communicate(timeout=WAIT)


@pytest.fixture
def alive_s() -> int:
    """How long a worker may be silent: longer than a writer takes to start on a busy machine."""
    return 30


@pytest.fixture
def bots(log_url: str, tmp_path: Path, alive_s: int) -> Iterator[Bots]:
    opened = Bots(log_url, tmp_path, alive_s)
    yield opened
    opened.close()


@pytest.mark.ci
@pytest.mark.clause("WORK-16")
def test_a_text_that_a_worker_sends_while_the_writer_is_killed_goes_out_once(bots: Bots) -> None:
    bots.work("telegram", "one")
    bots.send("telegram", "first waits for go")
    bots.send("telegram", "second")
    until(lambda: bots.shown() == ["first waits for go"])

    bots.kill()
    bots.serve()
    (bots.folder / "go").touch()
    until(lambda: len(bots.events(facts.DeliveryDone)) == 2)

    assert bots.shown() == ["first waits for go", "second"]
    assert [started.attempt for started in bots.events(facts.DeliveryStarted)] == [1, 1]


@pytest.mark.ci
@pytest.mark.clause("WORK-16")
def test_a_text_that_was_sent_while_no_writer_lived_is_not_sent_again(bots: Bots) -> None:
    bots.work("telegram", "one")
    bots.send("telegram", "it waits for go")
    until(bots.shown)

    bots.kill()
    (bots.folder / "go").touch()
    bots.serve()
    until(lambda: bots.events(facts.DeliveryDone))

    assert bots.shown() == ["it waits for go"]


@pytest.mark.ci
@pytest.mark.clause("WORK-17")
@pytest.mark.parametrize("channel", ["telegram", "keyed"])
@pytest.mark.parametrize("how", ["killed", "paused"])
@pytest.mark.parametrize("alive_s", [2])
def test_a_text_of_a_worker_that_is_gone_for_too_long_is_in_doubt_or_sent_by_another(
    bots: Bots, channel: str, how: str
) -> None:
    first = bots.work(channel, "one")
    bots.send(channel, "it waits for go")
    until(bots.shown)
    first.signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    bots.work(channel, "two")
    (bots.folder / "go").touch()
    ended = facts.DeliveryUnknown if channel == "telegram" else facts.DeliveryDone
    until(lambda: bots.events(ended))
    if how == "paused":
        first.signal(signal.SIGCONT)
    bots.send(channel, "after it")
    until(lambda: "after it" in bots.shown())
    until(lambda: len(bots.events(facts.DeliveryDone)) == (1 if channel == "telegram" else 2))

    again = ["it waits for go"] if channel == "keyed" else []
    assert bots.shown() == ["it waits for go", *again, "after it"]


@pytest.mark.nightly
@pytest.mark.clause("WORK-15", "WORK-16", "WORK-17")
@pytest.mark.parametrize("alive_s", [2])
def test_no_text_is_lost_or_shown_twice_while_writers_and_workers_are_killed(bots: Bots) -> None:
    chance = random.Random(7)  # noqa: S311 - a seed decides
    workers = [bots.work("keyed", f"first {number}") for number in range(3)]
    texts = [f"text {number}" for number in range(60)]
    for number, text in enumerate(texts):
        bots.send("keyed", text)
        if chance.random() < 0.2:
            at = chance.randrange(len(workers))
            workers[at].signal(signal.SIGKILL)
            workers[at] = bots.work("keyed", f"later {number}")
        if chance.random() < 0.15:
            bots.kill()
            bots.serve()
    until(lambda: len(bots.events(facts.DeliveryDone)) == len(texts), within=300)

    first = list(dict.fromkeys(bots.shown()))
    assert first == texts
    assert bots.events(facts.DeliveryUnknown) == []
