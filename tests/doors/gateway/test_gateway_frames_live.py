"""Random bytes, frames and cuts against a real gateway: it answers, closes, and keeps nothing of them (X8)."""

import asyncio
import contextlib
import gc
import json
import os
import random
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession.gateway.admission.limits import Limits
from support.doors.gateway_live import CONNECT, GATEWAY, TOKEN, WAIT, LiveGateway
from support.mutations import mutations
from support.running import SEES_ALL, merged

CONNECTED = json.dumps(
    {"type": "req", "id": "c", "method": "connect", "params": {**CONNECT, "auth": {"token": TOKEN}}}
).encode()
REQUESTS = [
    json.dumps({"type": "req", "id": str(number), "method": method, "params": params}).encode()
    for number, (method, params) in enumerate(
        [
            ("health", {}),
            ("sessions.list", {"limit": 2}),
            ("chat.history", {"sessionKey": "main"}),
            ("agent.wait", {"runId": "x", "timeoutMs": 1}),
            ("tools.invoke", {"name": "sessions_list", "args": {}}),
        ]
    )
]
CLOSES = {*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)}
"""Codes that there are; a client's own is given back."""


def frame(opcode: int, data: bytes, *, first: int = 0x80) -> bytes:
    """Return a frame as a client sends it, masked with zeros."""
    size = len(data)
    if size < 126:
        length = struct.pack("!B", 0x80 | size)
    elif size < 1 << 16:
        length = struct.pack("!BH", 0xFE, size)
    else:
        length = struct.pack("!BQ", 0xFF, size)
    return bytes([first | opcode]) + length + bytes(4) + data


def script(chance: random.Random, damaged: Callable[[], bytes]) -> tuple[bytes, int, bool]:
    """Return what one client sends, how many frames are in it, and whether they are whole: let in or not, whole, damaged, in parts, or cut."""
    parts = [frame(1, CONNECTED)] if chance.random() < 0.7 else []
    for _ in range(chance.randrange(60)):
        data = chance.choice(REQUESTS) if chance.random() < 0.4 else damaged()[:20_000]
        match chance.randrange(40):
            case 0:
                parts += [frame(1, data[:5], first=0), frame(9, b"p"), frame(0, data[5:])]
            case 1:
                parts.append(frame(2, data))
            case 2:
                parts.append(frame(9, data[:125]))
            case 3:
                parts.append(frame(chance.randrange(16), data[:100], first=chance.choice([0, 0x80, 0xC0])))
            case 4:
                parts.append(frame(8, struct.pack("!H", chance.randrange(5000))))
            case _:
                parts.append(frame(1, data))
    sent = b"".join(parts)
    if chance.random() < 0.3:
        return sent[: chance.randrange(len(sent) + 1)], len(parts), False
    if chance.random() < 0.05:
        return sent + chance.randbytes(50), len(parts), False
    return sent, len(parts), True


def attack(live: LiveGateway, chance: random.Random, damaged: Callable[[], bytes]) -> int:
    """Open a connection, send it all, and go: at once, or when there is nothing more to hear. Returns the frames."""
    data, frames, whole = script(chance, damaged)
    with socket.create_connection(("127.0.0.1", live.port), timeout=WAIT) as opened:
        opened.sendall(
            b"GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert opened.recv(65536).startswith(b"HTTP/1.1 101 ")
        with contextlib.suppress(ConnectionError):
            opened.sendall(data)
            if whole and chance.random() < 0.5:
                opened.sendall(frame(8, struct.pack("!H", 1000)))
                check(read_to_end(opened))
    return frames


def read_to_end(opened: socket.socket) -> bytes:
    said = b""
    while part := opened.recv(1 << 16):
        said += part
    return said


def check(said: bytes) -> None:
    """Every frame of the gateway is JSON of its protocol, a pong, or one close with a code that there is."""
    at = 0
    if not said.startswith((b"\x81", b"\x82", b"\x88", b"\x89", b"\x8a")):
        return  # the rest of a challenge whose head came with the answer to the upgrade
    while at + 2 <= len(said):
        opcode, size, at = said[at] & 0x0F, said[at + 1], at + 2
        if size == 126:
            size, at = int.from_bytes(said[at : at + 2]), at + 2
        elif size == 127:
            size, at = int.from_bytes(said[at : at + 8]), at + 8
        data, at = said[at : at + size], at + size
        if len(data) < size:
            return  # cut off with the connection
        match opcode:
            case 1:
                told = json.loads(data)
                assert told["type"] in {"res", "event"}
                if told["type"] == "res" and not told["ok"]:
                    assert told["error"]["code"] in {"INVALID_REQUEST", "UNAVAILABLE"}
            case 8:
                assert not data or int.from_bytes(data[:2]) in CLOSES
            case _:
                assert opcode in {9, 10}


def left(live: LiveGateway) -> tuple[int, int, int]:
    """Return how many tasks, threads and open files there are, once what was going has gone."""

    async def settled() -> int:
        while len(asyncio.all_tasks()) > 3:  # noqa: ASYNC110 - what ends here has no event to wait for
            await asyncio.sleep(0.01)
        return len(asyncio.all_tasks())

    future = asyncio.run_coroutine_threadsafe(settled(), live.loop)
    tasks = future.result(WAIT)
    gc.collect()
    return tasks, threading.active_count(), len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths


NO_VIEWS = {"views": {"keep": list[str]()}}
"""A host begins to keep them after some seconds: their threads and files are none of a connection's."""


def storm(path: Path, frames: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(8)  # noqa: S311 - the same again
    damaged = mutations(REQUESTS, 1 << 40).__next__
    with (
        SessionSystem(
            path / "log.db", agents={"main": echo()}, config=merged(SEES_ALL, GATEWAY, NO_VIEWS)
        ) as system,
        LiveGateway(system, limits=Limits(check_s=0.02)) as live,
    ):
        for _ in range(20):
            attack(live, chance, damaged)
        before = left(live)
        sent = 0
        while sent < frames:
            sent += attack(live, chance, damaged)
        after = left(live)
        with live.client() as client:
            assert client.request("health")["ok"]

    assert after[0] <= before[0]
    # Pools of threads, and of readers of the log, grow to their size; thousands of connections came and went.
    assert after[1] <= before[1] + 32
    assert after[2] <= before[2] + 32
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.clause("X8")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_a_storm_of_frames_leaves_nothing_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storm(tmp_path, 3_000, caplog)


@pytest.mark.nightly
@pytest.mark.clause("X8")
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_nor_does_one_of_a_quarter_of_a_million(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storm(tmp_path, 250_000, caplog)
