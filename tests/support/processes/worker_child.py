"""A worker in a process of its own: takes calls of the log at a URL, one after the other, and answers each with its own name."""

import sys

from intersession_events.log.work_queue import Worker
from intersession_events.stores.opened import work_at

if __name__ == "__main__":
    _, url, name = sys.argv
    work = work_at(url)
    work.announce(Worker(name=name, host="here", version="1", agents={"main": ""}, channels={}, seats=3))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for one in work.take(name, 3, 30):
            assert work.answer(name, one.call, name.encode())
