"""How long the host's event loop is kept from its work while 100 sends are under way on it."""

import asyncio
import time
from pathlib import Path

from benchmarks.figures import Figure, per_second, spread
from benchmarks.systems import NO_LOOP, answers_at_once_async, system
from intersession import SessionSystem

NAME = "event loop"
_TICK_S = 0.001


def measure(directory: Path, *, sends: int = 1_000, at_once: int = 100) -> list[Figure]:
    """Await sends side by side, and look every millisecond how late the loop comes back to us."""
    agents = {
        "main": answers_at_once_async,
        **{f"desk{number}": answers_at_once_async for number in range(at_once)},
    }
    return asyncio.run(_measure(system(directory, agents, NO_LOOP), sends, at_once))


async def _measure(running: SessionSystem, sends: int, at_once: int) -> list[Figure]:
    late: list[float] = []
    async with running:
        await _send(running, 0, at_once)
        await asyncio.gather(*(_send(running, number, at_once) for number in range(at_once)))
        ticking = asyncio.create_task(_tick(late))
        await asyncio.sleep(_TICK_S * 20)
        late.clear()
        began = time.perf_counter()
        for start in range(0, sends, at_once):
            await asyncio.gather(
                *(_send(running, number, at_once) for number in range(start, start + at_once))
            )
        seconds = time.perf_counter() - began
        ticking.cancel()
    return [
        *spread(NAME, f"late, {at_once} sends at once", late),
        Figure(benchmark=NAME, name=f"late, {at_once} sends at once, at most", value=max(late), unit="ms"),
        Figure(benchmark=NAME, name="sends", value=per_second(sends, seconds), unit="sends/s"),
    ]


async def _send(running: SessionSystem, number: int, at_once: int) -> None:
    arguments = {"agentId": f"desk{number % at_once}", "message": "Is it done?", "timeoutSeconds": 30}
    answer = await running.tools().acall("sessions_send", arguments)
    if answer["status"] != "ok":
        raise RuntimeError(f"the send was not answered: {answer}")


async def _tick(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(_TICK_S)
        late.append((time.perf_counter() - began - _TICK_S) * 1000)
