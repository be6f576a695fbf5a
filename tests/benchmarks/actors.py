"""(c) Live actors per gigabyte: what an awake session that has nothing to do holds of the memory."""

import gc
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, per_second
from benchmarks.logs import open_sessions, session_key
from benchmarks.systems import answers_at_once, system
from intersession_actors.calls.service.supervisor import Supervisor
from intersession_actors.owners.session.commands import CheckSend

NAME = "actors"
GIGABYTE = 2**30


def measure(directory: Path, *, actors: int = 20_000) -> list[Figure]:
    """Wake sessions that exist, and look at what the process holds before and after."""
    with system(directory, {"main": answers_at_once}, idle_seconds=3600) as running:
        keys = [session_key(number) for number in range(actors + 100)]
        open_sessions(running.log, keys)
        _wake(running.service.supervisor, keys[:100])
        before = _resident()
        began = time.perf_counter()
        _wake(running.service.supervisor, keys[100:])
        seconds = time.perf_counter() - began
        # A few actors take less than what the process gives back meanwhile.
        each = max(_resident() - before, 0) / actors
        awake = running.status()["liveSessions"]
        if awake < actors:
            raise RuntimeError(f"only {awake} of {actors} are awake")
    return [
        Figure(benchmark=NAME, name=f"memory of each of {actors:,} idle", value=each / 1024, unit="KiB"),
        Figure(benchmark=NAME, name="live actors a gigabyte", value=GIGABYTE / max(each, 1), unit="actors"),
        Figure(benchmark=NAME, name="woken from the log", value=per_second(actors, seconds), unit="actors/s"),
    ]


def _wake(supervisor: Supervisor, keys: Sequence[str]) -> None:
    """Ask each session something that it answers once it has read its stream; a few hundred at a time."""
    room, answered = threading.Semaphore(500), threading.Semaphore(0)

    def answer(_rule: object) -> None:
        room.release()
        answered.release()

    for key in keys:
        room.acquire()
        supervisor.tell_session(key, CheckSend(channel="webchat", answer=answer))
    for _ in keys:
        answered.acquire()


def _resident() -> int:
    """Return the bytes of memory that the process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
