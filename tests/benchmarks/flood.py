"""How long others wait for their answers while one session is flooded, beside a quiet system (finding A21)."""

import asyncio
import time
from itertools import count
from pathlib import Path

from benchmarks.figures import Figure, quantile
from benchmarks.systems import answers_at_once_async, system
from intersession import SessionSystem

NAME = "flood"
_SHARES = (50, 99)


def measure(directory: Path, *, messages: int = 400, at_once: int = 64) -> list[Figure]:
    """Let a person speak, message after message: alone, and while another one has `at_once` messages under way all the time."""
    running = system(directory, {"main": answers_at_once_async}, {"dmScope": "per-peer"})
    running.register_channel("webchat", lambda _: None)
    return asyncio.run(_measure(running, messages, at_once))


async def _measure(running: SessionSystem, messages: int, at_once: int) -> list[Figure]:
    numbers = count()

    async def say(peer: str) -> None:
        answer = await running.ainbound(
            channel="webchat", chat_id=peer, sender=peer, text=f"{next(numbers)}", wait=60
        )
        if answer["status"] != "ok":
            raise RuntimeError(f"{peer} was not answered: {answer}")

    async def flood() -> None:
        while True:
            await say("flood")

    async def spoken() -> list[float]:
        samples: list[float] = []
        for _ in range(messages):
            began = time.perf_counter()
            await say("ann")
            samples.append((time.perf_counter() - began) * 1000)
        return samples

    async with running:
        await spoken()
        quiet = await spoken()
        flooding = [asyncio.create_task(flood()) for _ in range(at_once)]
        await asyncio.sleep(0)
        flooded = await spoken()
        for task in flooding:
            task.cancel()
        await asyncio.gather(*flooding, return_exceptions=True)
    return [
        Figure(
            benchmark=NAME,
            name=f"{name}, p{share}",
            value=quantile(samples, share / 100),
            unit="ms",
            ratios={} if samples is quiet else {f"quiet, p{share}": _times(samples, quiet, share / 100)},
        )
        for name, samples in (("quiet", quiet), ("another session flooded", flooded))
        for share in _SHARES
    ]


def _times(samples: list[float], quiet: list[float], share: float) -> float:
    return quantile(samples, share) / max(quantile(quiet, share), 1e-9)
