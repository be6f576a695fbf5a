"""`intersession serve --standby`: waits beside the gateway that writes a log, and serves once that is gone (STBY)."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from intersession import SessionSystem, StoreLocked, echo
from intersession_events.stores.hosts.host import Host
from intersession_events.stores.portable.log import PortableLog
from support.any_log import changed_behind, log_at
from support.doors.command_line import environment, ran
from support.doors.gateway_live import WAIT
from support.doors.served_gateway import CONFIGS, token_of
from support.processes.forked import ForkedCommand

CONFIG = CONFIGS / "base.json"
TOKEN = token_of(CONFIG)


class Serving:
    """A gateway of a log, or its standby, in a process of its own."""

    def __init__(self, url: str, *arguments: object, port: int = 0) -> None:
        self.url = url
        configured = () if "--config" in arguments else ("--config", CONFIG)
        given = ("serve", "--store", url, "--port", port, *configured, *arguments)
        self.child = ForkedCommand([*map(str, given)], environment())

    def serves(self) -> str:
        """Wait until it serves, and return its address."""
        line = self.child.stdout.readline()
        assert line.startswith("serving "), (line, self.child.communicate(timeout=WAIT))
        return line.rpartition(" at ")[2].strip()

    def waits(self) -> Host:
        """Wait until it is beside the log as a standby."""
        until = time.monotonic() + WAIT
        with log_at(self.url, read_only=True) as log:
            while not (found := [host for host in log.hosts.alive() if host.pid == self.child.pid]):
                assert self.child.poll() is None, self.child.communicate(timeout=WAIT)
                assert time.monotonic() < until
        return found[0]

    def ends(self) -> tuple[int | None, str]:
        said = "".join(self.child.communicate(timeout=WAIT))
        return self.child.returncode, said


@pytest.fixture
def serve() -> Iterator[Any]:
    running: list[Serving] = []

    def start(url: str, *arguments: object, port: int = 0) -> Serving:
        running.append(Serving(url, *arguments, port=port))
        return running[-1]

    yield start
    for one in running:
        if one.child.poll() is None:
            one.child.kill()
        if one.child.returncode is None:
            one.ends()


def sent(address: str, key: str, token: str = TOKEN) -> dict[str, Any]:
    """Send a message to an agent that is not here: it is durable, and waits."""
    found = httpx.post(
        f"{address}/tools/invoke",
        json={
            "tool": "sessions_send",
            "sessionKey": "agent:main:main",
            "args": {"sessionKey": "agent:ops:main", "message": key, "timeoutSeconds": 0},
        },
        headers={"authorization": f"Bearer {token}"},
        timeout=WAIT,
        trust_env=False,
    )
    assert found.status_code == 200, found.text
    details: dict[str, Any] = found.json()["result"]["details"]
    return details


def messages(log: PortableLog) -> str:
    return " ".join(str(recorded.event) for recorded in log.all())


@pytest.mark.long
@pytest.mark.clause("STBY-1", "STBY-2")
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.ci)])
def test_a_standby_serves_at_the_same_address_once_the_writer_is_gone(
    serve: Any, log_url: str, number: int
) -> None:
    writer = serve(log_url, "--standby")
    address = writer.serves()
    port = int(address.rpartition(":")[2])
    standby = serve(log_url, "--standby", port=port)
    host = standby.waits()
    assert (host.kind, host.machine) == ("standby", os.uname().nodename)
    assert sent(address, "before")["status"] == "accepted"

    os.kill(writer.child.pid, number)
    assert writer.ends()[0] == (-signal.SIGKILL if number == signal.SIGKILL else 0)

    assert standby.serves() == address
    assert sent(address, "after")["status"] == "accepted"
    with log_at(log_url, read_only=True) as log:
        assert {word for word in ("before", "after") if word in messages(log)} == {"before", "after"}
        assert log.hosts.alive() == []


@pytest.mark.clause("STBY-2")
def test_what_would_be_refused_is_refused_before_the_wait_and_a_signal_ends_it(
    serve: Any, log_url: str, tmp_path: Path
) -> None:
    writer = serve(log_url)
    writer.serves()
    empty = tmp_path / "empty.json"
    empty.write_text("{}")
    refused = ran("serve", "--config", empty, "--store", log_url, "--standby")
    assert (refused.exit_code, "token" in refused.err) == (1, True)
    agents = ran("serve", "--agents", "nowhere:agents", "--store", log_url, "--standby")
    assert (agents.exit_code, "nowhere" in agents.err) == (2, True)

    standby = serve(log_url, "--standby")
    standby.waits()
    os.kill(standby.child.pid, signal.SIGTERM)
    code, said = standby.ends()
    assert code == 0
    assert f"is written by pid {writer.child.pid} on this machine, gateway http://127.0.0.1:" in said
    with log_at(log_url, read_only=True) as log:
        assert log.hosts.alive() == []


@pytest.mark.clause("STBY-2")
@pytest.mark.parametrize(
    ("text", "token"),
    [(CONFIG.read_text().replace(TOKEN, "t" * 32), "t" * 32), pytest.param("{", TOKEN, marks=pytest.mark.ci)],
)
def test_a_standby_takes_over_with_the_configuration_of_that_time(
    serve: Any, log_url: str, tmp_path: Path, text: str, token: str
) -> None:
    """One that would be refused by then is not used: somebody has to write the log."""
    path = tmp_path / "openclaw.json"
    path.write_text(CONFIG.read_text())
    writer = serve(log_url)
    writer.serves()
    standby = serve(log_url, "--standby", "--config", path)
    standby.waits()
    path.write_text(text)
    writer.child.kill()
    assert sent(standby.serves(), "after", token)["status"] == "accepted"


@pytest.mark.postgres
@pytest.mark.clause("STBY-3", "STBY-4")
def test_a_gateway_that_was_paused_and_taken_over_ends_so_that_it_is_started_again(
    serve: Any, postgres_url: str
) -> None:
    writer = serve(postgres_url)
    address = writer.serves()
    standby = serve(postgres_url, "--standby")
    standby.waits()
    os.kill(writer.child.pid, signal.SIGSTOP)
    changed_behind(postgres_url, "UPDATE log_writer SET alive_until = '-infinity'")
    now = standby.serves()
    os.kill(writer.child.pid, signal.SIGCONT)

    code, said = writer.ends()
    assert code == 3, said
    assert "another writer has taken the log over" in said
    assert sent(now, "after")["status"] == "accepted"
    with pytest.raises(httpx.ConnectError):
        sent(address, "too late")


@pytest.mark.clause("STBY-1", "STBY-2")
def test_a_host_of_ones_own_waits_without_holding_its_loop(serve: Any, log_url: str) -> None:
    writer = serve(log_url)
    writer.serves()

    def look(log: PortableLog, number: int) -> None:
        until = time.monotonic() + WAIT
        while len(log.hosts.alive()) != number:
            assert time.monotonic() < until

    async def waits() -> int:
        with log_at(log_url, read_only=True) as log:
            given_up = asyncio.create_task(opened())
            await asyncio.to_thread(look, log, 1)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            await asyncio.to_thread(look, log, 0)

            goes_on = asyncio.create_task(opened())
            await asyncio.to_thread(look, log, 1)
        writer.child.kill()
        writer.ends()
        return await asyncio.wait_for(goes_on, WAIT)

    async def opened() -> int:
        async with SessionSystem(log_url, agents={"main": echo()}, standby=True) as system:
            answer = await system.ainbound(channel="c", chat_id="1", text="hello", sender="ann", wait=WAIT)
            assert answer["status"] == "ok"
            return system.log.epoch

    assert asyncio.run(waits()) == 2
    with SessionSystem(log_url, agents={"main": echo()}, standby=True) as system:
        assert system.log.epoch == 3
        with pytest.raises(StoreLocked, match="in this process already"):
            SessionSystem(log_url, standby=True)
