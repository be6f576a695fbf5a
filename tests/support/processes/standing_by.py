"""A host that waits for a log beside its writer, and appends to it once it has it; killed, stopped and woken by a test.

Arguments: the URL of the log, and the file for what it says, a line each: `has EPOCH` once it is the writer, the id of each event
that is durable, and `gone` when another writer has taken the log. Then it waits again, as a service that is started again does.
"""

import itertools
import os
import sys
import threading

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.stores.opened import located, open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.standby import when_free
from support.log_drafts import anywhere, said


def wait_until_superseded(log: PortableLog) -> None:
    over = threading.Event()
    log.on_superseded(lambda _: over.set())
    assert over.wait(30)


def main(url: str, lines: str) -> None:
    # One write a line, straight to the kernel: what was written is there, however this process ends.
    file = os.open(lines, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(line: str) -> None:
        os.write(file, f"{line}\n".encode())

    while True:
        log = when_free(located(url), lambda: open_log(url), stopping=threading.Event())
        assert isinstance(log, PortableLog)
        say(f"has {log.epoch}")
        for at in itertools.count():
            name = f"{log.epoch}-{at}"
            try:
                log.append_now([anywhere(f"session:{at % 5}", said(name))])
            except StoreUnavailable:
                break
            say(f"id-{name}")
        wait_until_superseded(log)
        say("gone")
        log.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
