"""Turns per second of reply-back loops, with 1, 8 and 64 pairs of sessions talking at once."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.figures import Figure, per_second
from benchmarks.logs import open_sessions, session_key
from benchmarks.systems import FULL_LOOP, answers_at_once, system
from intersession import SessionSystem
from intersession_events.basics import ids
from intersession_events.facts import ExchangeClosed
from intersession_events.log.recorded import Recorded, parts_in

NAME = "pingpong"
PAIRS = (1, 8, 64)
TURNS = 7
"""The run that answers the message, five turns of the loop, and the announce."""


def measure(directory: Path, *, exchanges: int = 512) -> list[Figure]:
    """Let pairs talk: each begins its next exchange when its last is closed."""
    figures: list[Figure] = []
    with system(directory, {"main": answers_at_once, "desk": answers_at_once}, FULL_LOOP) as running:
        left = [session_key(number, "main") for number in range(max(PAIRS))]
        right = [session_key(number, "desk") for number in range(max(PAIRS))]
        open_sessions(running.log, [*left, *right])
        everybody = list(zip(left, right, strict=True))
        talk(running, everybody, 1)
        for pairs in PAIRS:
            rounds = max(1, min(exchanges, 32 * pairs) // pairs)
            seconds = talk(running, everybody[:pairs], rounds)
            rate = per_second(rounds * pairs * TURNS, seconds)
            figures.append(Figure(benchmark=NAME, name=f"{pairs} pairs", value=rate, unit="turns/s"))
    return figures


class Talk:
    """Lets pairs of sessions talk, and waits until an exchange is closed."""

    def __init__(self, running: SessionSystem) -> None:
        self._running = running
        self._closed: dict[str, threading.Event] = {}
        self.stop = running.log.on_committed(self._note)

    def over(self, pair: tuple[str, str]) -> None:
        """Have the first of a pair send to the other, and wait until all that follows is over."""
        speaker, other = pair
        arguments = {"sessionKey": other, "message": "Is it done?", "timeoutSeconds": 0}
        answer = self._running.tools(speaker).call("sessions_send", arguments)
        if answer["status"] != "accepted":
            raise RuntimeError(f"the send was not accepted: {answer}")
        exchange = ids.exchange_stream(ids.derive(self._running.log.log_id, "exchange", answer["runId"]))
        self._closed.setdefault(exchange, threading.Event()).wait()
        del self._closed[exchange]

    def _note(self, batch: Sequence[Recorded]) -> None:
        for item in parts_in(batch):
            if isinstance(item.event, ExchangeClosed):
                self._closed.setdefault(item.stream, threading.Event()).set()


def talk(running: SessionSystem, pairs: Sequence[tuple[str, str]], rounds: int) -> float:
    """Return how many seconds it takes until every pair has had that many exchanges."""
    talking = Talk(running)

    def exchanges(pair: tuple[str, str]) -> None:
        for _ in range(rounds):
            talking.over(pair)

    began = time.perf_counter()
    with ThreadPoolExecutor(len(pairs)) as pool:
        for _ in pool.map(exchanges, pairs):
            pass
    talking.stop()
    return time.perf_counter() - began
