"""A queue of calls for workers, on either store, whose time a test moves."""

from collections.abc import Generator
from contextlib import contextmanager

from intersession_events.log.work_queue import Offer, TakesWork, Worker, WorkQueue
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.url import is_postgres
from support.any_log import changed_behind
from support.log_drafts import said, to


class Queue:
    """A log that is written, with its queue, and the time that passes there."""

    def __init__(self, url: str, encryption: Encryption | None = None) -> None:
        self.url = url
        self.now = 1_000_000
        self.log: PortableLog = open_log(url, clock=lambda: self.now, encryption=encryption)

    @property
    def writer(self) -> WorkQueue:
        return self.log.work

    @property
    def workers(self) -> TakesWork:
        return self.log.work.to_take

    def later(self, seconds: float) -> None:
        """Let time pass: a server's goes as it likes, so that what is in its tables is made older there."""
        self.now += round(seconds * 1000)
        if is_postgres(self.url):
            for table, column in (
                ("agent_calls", "alive_until"),
                ("agent_calls", "over"),
                ("workers", "alive_until"),
            ):
                aged = f"UPDATE {table} SET {column} = {column} - make_interval(secs => ?)"  # noqa: S608 - our names
                changed_behind(self.url, aged, seconds)

    def again(self) -> None:
        """Open it anew, as after a crash of its writer's host."""
        self.log.close()
        self.log = open_log(self.url, clock=lambda: self.now)


@contextmanager
def queue(url: str, encryption: Encryption | None = None) -> Generator[Queue]:
    opened = Queue(url, encryption)
    try:
        yield opened
    finally:
        opened.log.close()


def offer(name: str, *, agent: str = "main", attempt: int = 1, version: int = 1) -> Offer:
    return Offer(
        kind="agent",
        id=f"run-{name}",
        attempt=attempt,
        name=agent,
        stream=f"session:{name}",
        version=version,
        secret=f"secret of {name}",
        context_hash="ab" * 32,
    )


def worker(name: str = "w1", *agents: str, seats: int = 4, draining: bool = False, **channels: str) -> Worker:
    return Worker(
        name=name,
        host="host-1",
        version="1.0",
        agents=dict.fromkeys(agents or ("main",), "{}"),
        channels=channels,
        seats=seats,
        is_draining=draining,
    )


def record(log: PortableLog, stream: str, count: int = 3) -> None:
    log.append_now([to(stream, 0, *(said(f"{stream}-{n}") for n in range(count)))])
