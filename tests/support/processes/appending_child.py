"""A process that appends for ever and says of each append, after its ack, that it is durable. Killed by a test.

Arguments: the log, the file for the acks, how many appends may be in flight, and after how many it ends; it closes the log
in an orderly way halfway there and opens it again. One line an ack: the ids of an append's events, by spaces.
"""

import itertools
import os
import sys
import threading

from intersession_events.facts import ExchangeAccepted
from intersession_events.log.recorded import Committed, Outcome
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import anywhere, draft, said, to


def main(path: str, acks: str, in_flight: str = "32", appends: str = "0") -> None:
    # One write a line, straight to the kernel: what was written is there, however this process ends.
    file = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    half = int(appends) // 2
    if half:
        append(path, file, int(in_flight), half)
    append(path, file, int(in_flight), half)


def append(path: str, file: int, in_flight: int, number: int) -> None:
    """Append so many times, 0 for ever, and close the log."""
    turns = threading.Semaphore(in_flight)

    def on_outcome(outcome: Outcome) -> None:
        assert isinstance(outcome, Committed), outcome
        os.write(file, (" ".join(event.id for event in outcome.recorded) + "\n").encode())
        turns.release()

    log = SqliteLog(path)
    for at in itertools.count() if number == 0 else range(number):
        turns.acquire()
        name = f"{log.epoch}-{at}"
        accepted = ExchangeAccepted(
            exchange_id=name, run_id=name, target="t", target_session_id="s", message_id=name, message="hello"
        )
        log.append(
            [
                anywhere(f"session:{at % 5}", said(name)),
                to(f"exchange:{name}", 0, draft(accepted, f"x{name}")),
            ],
            on_outcome,
        )
    log.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
