"""Runs one contender's work in this process and prints what it took. Standard library only: each has an environment of its own.

A contender is a module beside this one: `python -m benchmarks.rivals.raw_pairs DIRECTORY '{"pairs": 8,
"exchanges": 64, "turns": 7}'`. It makes all that it needs in the directory, and its agents answer at once.
Seven turns are an exchange: the answer, five turns of a reply-back loop, the announce. One turn is a send
that waits for its answer: the message is durable before the agent is asked, the answer before it is given.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

MESSAGE, REPLY = "Is it done?", "It is done."

Exchange = Callable[[int, int], object]
"""One exchange: the number of its pair, and its own number within the pair."""


def given() -> tuple[Path, dict[str, Any]]:
    """Return the directory, and the sizes, that this process was asked for."""
    return Path(sys.argv[1]), json.loads(sys.argv[2])


def talk(exchange: Exchange, sizes: Mapping[str, Any]) -> None:
    """Have all pairs talk at once, each one exchange after the other, and print what that took. One of each goes before."""
    pairs = sizes["pairs"]
    rounds = max(1, sizes["exchanges"] // pairs)
    times: list[float] = []

    def first(number: int) -> None:
        exchange(number, 0)

    def others(number: int) -> None:
        for one in range(1, rounds + 1):
            began = time.perf_counter()
            exchange(number, one)
            times.append(time.perf_counter() - began)

    with ThreadPoolExecutor(pairs) as pool:
        list(pool.map(first, range(pairs)))
        report(lambda: list(pool.map(others, range(pairs))), pairs * rounds * sizes["turns"], times)


def report(work: Callable[[], object], turns: int, times: list[float]) -> None:
    """Do the work, and print what each of its turns took: processor time of all threads, bytes handed to the system."""
    before, began, processor = written(), time.perf_counter(), time.process_time()
    work()
    seconds, used = time.perf_counter() - began, time.process_time() - processor
    took = {
        "rate": turns / seconds,
        "cpu_ms": 1000 * used / turns,
        "kib": (written() - before) / 1024 / turns,
        "p50_ms": 1000 * median(times),
    }
    sys.stdout.write(json.dumps(took) + "\n")


def written() -> int:
    """Return how many bytes this process has handed to the system, a page of a file each time that it is written."""
    status = Path("/proc/self/io")
    if not status.exists():
        return 0
    return int(status.read_text(encoding="ascii").split("wchar:", 1)[1].split(None, 1)[0])
