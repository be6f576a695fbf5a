"""A process that appends for ever and says of each append, after its ack, that it is durable. Killed by a test.

Arguments: the log, the file for the acks. One line an ack: the ids of an append's events, by spaces.
"""

import itertools
import os
import sys
import threading

from intersession_events.exchange import ExchangeAccepted
from intersession_events.recorded import Committed, Outcome
from intersession_events.stores.sqlite import SqliteLog
from log_drafts import anywhere, draft, said, to

IN_FLIGHT = 32


def main(path: str, acks: str) -> None:
    log = SqliteLog(path)
    # One write a line, straight to the kernel: what was written is there, however this process ends.
    file = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    turns = threading.Semaphore(IN_FLIGHT)

    def on_outcome(outcome: Outcome) -> None:
        assert isinstance(outcome, Committed), outcome
        os.write(file, (" ".join(event.id for event in outcome.recorded) + "\n").encode())
        turns.release()

    for number in itertools.count():
        turns.acquire()
        name = f"{log.epoch}-{number}"
        accepted = ExchangeAccepted(
            exchange_id=name, run_id=name, target="t", target_session_id="s", message_id=name, message="hello"
        )
        log.append(
            [
                anywhere(f"session:{number % 5}", said(name)),
                to(f"exchange:{name}", 0, draft(accepted, f"x{name}")),
            ],
            on_outcome,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
