"""How many events a sealed replay decides again in a second of the processor, beside reading and proving them (SEAL)."""

import time
from pathlib import Path

from benchmarks.figures import Figure, per_second
from intersession import open_log
from support.simulated_runs import simulated

NAME = "replay"


def measure(directory: Path, *, people: int = 200) -> list[Figure]:
    """Have so many people ask, one after the other, in a simulation; replay all of it."""
    directory.mkdir(exist_ok=True)
    store = directory / "log.db"
    runtime, system = simulated(f"sqlite:///{store}", 1)
    with system:
        for number in range(people):
            system.inbound(
                channel="chat", chat_id=f"u{number}", sender="u", agent_id="a", text="ask", wait=300
            )
            runtime.run_for(60)
    with open_log(store) as log:
        began = time.process_time()
        events = sum(1 for _ in log.log.all())
        read = time.process_time() - began
        began = time.process_time()
        replayed = log.debug.replay()
        took = time.process_time() - began
    assert replayed["same"], replayed["firstDifference"]
    return [
        Figure(
            benchmark=NAME,
            name=f"{events:,} events, read and replayed",
            value=per_second(events, took),
            unit="events/s",
            ratios={"reading and proving": read / took},
        )
    ]
