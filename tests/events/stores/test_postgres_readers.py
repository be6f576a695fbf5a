"""Connections that read a log on a server: lent to as many at once as there may be, one after the other."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.readers import Readers
from support.running import WAIT
from support.soaking import until

pytestmark = pytest.mark.postgres


@pytest.fixture
def one(postgres_url: str) -> Iterator[Readers]:
    readers = Readers(lambda: psycopg.connect(address_of(postgres_url).conninfo), size=1, timeout=WAIT)
    yield readers
    readers.close()


def test_who_has_waited_longest_has_the_next_connection(one: Readers) -> None:
    """Before: who came just when one came back had it, and whoever waited was refused in the end, as if none had come back."""
    had: list[str] = []

    def waits() -> None:
        with one.connection():
            had.append("who waited")

    waiting = threading.Thread(target=waits)
    with one.connection():
        waiting.start()
        until(lambda: one.waiting == 1)
    with one.connection():
        had.append("who came then")
    waiting.join(WAIT)
    assert had == ["who waited", "who came then"]


def test_whoever_is_refused_takes_no_connection_away(one: Readers) -> None:
    one.timeout = 0.01
    with one.connection(), pytest.raises(PoolTimeout, match="all 1 are lent, 0 more wait"):
        one.query("SELECT 1")
    assert one.query("SELECT 1") == [(1,)]


def test_whoever_waits_hears_that_the_log_was_closed(one: Readers) -> None:
    told: list[str] = []

    def waits() -> None:
        with pytest.raises(StoreUnavailable) as closed:
            one.query("SELECT 1")
        told.append(str(closed.value))

    waiting = threading.Thread(target=waits)
    with one.connection():
        waiting.start()
        until(lambda: one.waiting == 1)
        one.close()
    waiting.join(WAIT)
    assert told == ["the log is closed"]
