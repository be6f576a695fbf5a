"""A process that appends while memory runs out under it, and says of each append that was acknowledged that it was.

Arguments: the log, the file for the acks, and at which allocation memory runs out: from, to, step. Each is said before it
is tried: not every library lives through it.
"""

import _testcapi  # type: ignore[import-not-found]  # the interpreter's own, without stubs
import os
import sys
from contextlib import suppress

from intersession_events.log.recorded import Committed, Outcome
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import anywhere, said


def main(path: str, acks: str, first: int, last: int, step: int) -> None:
    file = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    log = SqliteLog(path, threads=False)
    # What is found out about a kind of event once, when the first of it is appended, takes more than is starved here.
    log.append([anywhere("session:x", said(f"first-{first}"))], lambda _: None)
    log.step()
    for number in range(first, last, step):
        os.write(1, f"{number}\n".encode())
        for name, until in ((f"one-{number}", number + 1), (f"few-{number}", number + 7)):
            told: list[Outcome] = []
            batch = [anywhere("session:x", said(name))]
            line = f"id-{name}\n".encode()
            with suppress(Exception):
                _testcapi.set_nomemory(number, until)
                try:
                    log.append(batch, told.append)
                    log.step()
                    for event in log.stream("session:x", backwards=True, limit=1):
                        event.id.encode()
                finally:
                    _testcapi.remove_mem_hooks()
            while log.step():
                pass
            if told and isinstance(told[0], Committed):
                os.write(file, line)
    log.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
