"""Appends to a log from several threads without end, whatever happens to the server, and remembers what was acknowledged."""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import count

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.recorded import StreamAppend
from intersession_events.stores.postgres.log import PostgresLog
from support.log_drafts import anywhere, said

_PATIENCE_S = 60.0

Makes = Callable[[str, int], StreamAppend]
"""Makes an append to a stream, with events that its number tells from all others."""


def one_message(stream: str, number: int) -> StreamAppend:
    """Return an append of one message."""
    return anywhere(stream, said(f"{number}"))


class Load:
    """What was appended, and what came of it."""

    def __init__(self, log: PostgresLog, makes: Makes) -> None:
        self._log = log
        self._makes = makes
        self._acknowledging = threading.Condition()
        self._over = threading.Event()
        self._numbers = count()
        self._made = 0
        self.acknowledged: dict[str, int] = {}
        """The position of each event, by its id."""
        self.refused: Counter[str] = Counter()
        """How often an append was refused, by the name of the error; it was tried again."""
        self.failed: list[BaseException] = []

    def wait_for(self, more: int) -> None:
        """Wait until so many more appends are acknowledged."""
        with self._acknowledging:
            wanted = self._made + more
            reached = self._acknowledging.wait_for(lambda: self._made >= wanted or self.failed, _PATIENCE_S)
        assert reached, f"{more} more were wanted, refused were {self.refused}"
        assert not self.failed, self.failed

    def stop(self) -> None:
        """Append no more."""
        self._over.set()

    def run(self, stream: str) -> None:
        """Make one append after the other; what was refused is appended again, until it is there."""
        try:
            while not self._over.is_set():
                self._append(self._makes(stream, next(self._numbers)))
        except BaseException as error:  # noqa: BLE001 - the test's own thread has to know
            with self._acknowledging:
                self.failed.append(error)
                self._acknowledging.notify_all()

    def _append(self, append: StreamAppend) -> None:
        while True:
            try:
                done = self._log.append_now([append], timeout=_PATIENCE_S)
            except StoreUnavailable as error:
                self.refused[type(error).__name__] += 1
                if self._over.wait(0.01):
                    return
                continue
            with self._acknowledging:
                self._made += 1
                self.acknowledged.update((one.id, one.position) for one in done.recorded)
                self._acknowledging.notify_all()
            return

    def check(self, log: PostgresLog) -> None:
        """Make sure that a log has all that was acknowledged, where it was said to be, and nothing twice or between."""
        events = list(log.all())
        assert [event.position for event in events] == list(range(1, len(events) + 1))
        found = {event.id: event.position for event in events}
        assert len(found) == len(events)
        assert {each: found.get(each) for each in self.acknowledged} == self.acknowledged


@contextmanager
def load_on(
    log: PostgresLog, makes: Makes = one_message, *, streams: Sequence[str] = ("s0", "s1", "s2", "s3")
) -> Generator[Load]:
    """Load a log for a block, with a thread for each stream."""
    load = Load(log, makes)
    workers = [threading.Thread(target=load.run, args=(stream,)) for stream in streams]
    for worker in workers:
        worker.start()
    try:
        yield load
    finally:
        load.stop()
        for worker in workers:
            worker.join(_PATIENCE_S)
