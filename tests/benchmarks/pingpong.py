"""Turns per second of reply-back loops, with 1, 8 and 64 pairs of sessions talking at once."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, per_second
from benchmarks.logs import open_sessions, session_key
from benchmarks.systems import FULL_LOOP, answers_at_once, system
from intersession import SessionSystem
from intersession_events.exchange import ExchangeClosed
from intersession_events.recorded import Recorded

NAME = "pingpong"
PAIRS = (1, 8, 64)
TURNS = 6
"""The run that answers the message, and five turns of the loop."""


def measure(directory: Path, *, exchanges: int = 256) -> list[Figure]:
    """Let pairs talk: each begins its next exchange when the last is closed."""
    figures: list[Figure] = []
    with system(directory, {"main": answers_at_once, "desk": answers_at_once}, FULL_LOOP) as running:
        left = [session_key(number, "main") for number in range(max(PAIRS))]
        right = [session_key(number, "desk") for number in range(max(PAIRS))]
        open_sessions(running.log, [*left, *right])
        _talk(running, list(zip(left, right, strict=True)), len(left))
        for pairs in PAIRS:
            rounds = max(1, min(exchanges, 32 * pairs) // pairs)
            seconds = _talk(running, list(zip(left, right, strict=True))[:pairs], rounds * pairs)
            rate = per_second(rounds * pairs * TURNS, seconds)
            figures.append(Figure(benchmark=NAME, name=f"{pairs} pairs", value=rate, unit="turns/s"))
    return figures


def _talk(running: SessionSystem, pairs: list[tuple[str, str]], exchanges: int) -> float:
    """Return how many seconds it takes until all exchanges are closed."""
    closed = threading.Semaphore(0)

    def count(batch: Sequence[Recorded]) -> None:
        for item in batch:
            if isinstance(item.event, ExchangeClosed):
                closed.release()

    stop = running.log.on_committed(count)
    began = time.perf_counter()
    for at in range(exchanges):
        if at >= len(pairs):
            closed.acquire()
        speaker, other = pairs[at % len(pairs)]
        arguments = {"sessionKey": other, "message": "Is it done?", "timeoutSeconds": 0}
        answer = running.tools(speaker).call("sessions_send", arguments)
        if answer["status"] != "accepted":
            raise RuntimeError(f"the send was not accepted: {answer}")
    for _ in pairs:
        closed.acquire()
    stop()
    return time.perf_counter() - began
