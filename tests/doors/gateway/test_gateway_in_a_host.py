"""The gateway in a server of the host's, such as uvicorn: where that one stops, no stream keeps it waiting, and no answer is a fault."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from intersession import SessionSystem, echo
from intersession.gateway import app as gateway_of
from intersession.web.stopping import ended_well
from support.doors.command_line import environment
from support.doors.gateway_live import WAIT
from support.doors.mcp_clients import served
from support.loopback import free_port

HOST = """
import uvicorn
from intersession import SessionSystem, echo
from intersession.gateway import app

system = SessionSystem(":memory:", agents={"main": echo()})
gateway = app(system, {"gateway": {"auth": {"token": "the-token-of-this-host"}}})
uvicorn.run(gateway, port=PORT, lifespan="off")
"""
IN = {"authorization": "Bearer the-token-of-this-host"}


@pytest.mark.ci
@pytest.mark.clause("X10")
def test_open_streams_end_where_a_server_of_the_hosts_stops(tmp_path: Path) -> None:
    """It waited for them for ever, or cut them off and logged a fault of ours."""
    port = free_port()
    script = tmp_path / "host.py"
    script.write_text(HOST.replace("PORT", str(port)), encoding="utf-8")
    child = subprocess.Popen(
        [sys.executable, script],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=IN, trust_env=False) as client:
            answers(client)
            with client.stream("GET", "/events") as one, client.stream("GET", "/debug/api/live") as other:
                begun = one.iter_bytes(), other.iter_bytes()
                assert [next(stream) for stream in begun] == [b"retry: 1000\n\n"] * 2
                child.send_signal(signal.SIGTERM)
                for stream in begun:
                    assert all(b"data" not in rest or b"forks" in rest for rest in stream)
        said, _ = child.communicate(timeout=WAIT)
    finally:
        child.kill()
    assert "Traceback" not in said
    assert "ERROR" not in said
    assert "Finished server process" in said


def answers(client: httpx.Client) -> None:
    until = time.monotonic() + WAIT
    while True:
        try:
            client.get("/healthz").raise_for_status()
        except httpx.TransportError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


async def given_up(*, begun: bool, whole: bool = False) -> list[dict[str, Any]]:
    """Return what was sent of an answer whose server gives it up."""
    sent: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": not whole})
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody asks")

    serving = asyncio.create_task(ended_well(app, {"type": "http"}, receive, send))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    serving.cancel()
    await serving
    return sent


def test_what_a_server_gives_up_gets_its_end_or_a_refusal() -> None:
    streamed = asyncio.run(given_up(begun=True))
    waited = asyncio.run(given_up(begun=False))
    whole = asyncio.run(given_up(begun=True, whole=True))

    assert streamed[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
    assert (waited[0]["status"], waited[1]["more_body"]) == (503, False)
    assert b"is stopping" in waited[1]["body"]
    assert len(whole) == 2


@pytest.mark.clause("X10")
async def test_two_gateways_of_a_process_answer_each_for_its_own_system() -> None:
    """Their routes are made once. A server that speaks of its start and its end is told that there is nothing to do."""
    tokens = ("the-token-of-the-first", "the-token-of-the-other")
    told: list[tuple[int, Any]] = []
    with (
        SessionSystem(":memory:", agents={"first": echo("first: ")}) as first,
        SessionSystem(":memory:", agents={"other": echo("other: ")}) as other,
    ):
        apps = [
            gateway_of(system, {"gateway": {"auth": {"token": token}}})
            for system, token in zip((first, other), tokens, strict=True)
        ]
        async with served(apps[0]) as here, served(apps[1]) as there, httpx.AsyncClient() as client:
            for address in (here, there):
                for token in tokens:
                    answer = await client.post(
                        f"{address}/tools/invoke",
                        headers={"authorization": f"Bearer {token}"},
                        json={"tool": "agents_list"},
                    )
                    told.append((answer.status_code, answer.json()))

    assert [status for status, _ in told] == [200, 401, 401, 200]
    assert [told[at][1]["result"]["details"]["agents"][0]["id"] for at in (0, 3)] == ["first", "other"]
