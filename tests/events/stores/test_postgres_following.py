"""Who follows a log on PostgreSQL goes on when the server was away, and can follow it on a standby."""

import threading
from typing import Any

import psycopg
import pytest

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.postgres.recorder import ReadingRecorder
from support.log_drafts import anywhere, said, to
from support.postgres.load import load_on
from support.postgres.network import network
from support.postgres.server import Server, postgres_server

pytestmark = pytest.mark.postgres


@pytest.mark.clause("J4", "PG1")
def test_followers_go_on_when_the_server_that_was_killed_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's subscriptions as well: a projection of somebody's own must not end with a connection."""
    select = ReadingRecorder.select_notifications
    lost = threading.Event()

    def lose_one(self: ReadingRecorder, *given: Any, **named: Any) -> Any:
        if threading.current_thread() is taking and not lost.is_set():
            lost.set()
            raise psycopg.OperationalError("the connection is lost")
        return select(self, *given, **named)

    with postgres_server() as server:
        url = f"{server.url}&schema=followed"
        with PostgresLog(url) as log, PostgresLog(url, read_only=True) as reader:
            heard: list[int] = []
            reader.on_committed(lambda events: heard.extend(event.position for event in events))
            recorder = reader.application.recorder
            with recorder.subscribe(gt=0) as subscribed:
                given: list[int] = []
                taking = threading.Thread(target=lambda: given.append(next(subscribed).id))
                monkeypatch.setattr(ReadingRecorder, "select_notifications", lose_one)
                taking.start()

                server.kill()
                server.start()
                log.append_now([anywhere("s", said("a"))])

                assert reader.wait_for(1, timeout=20)
                taking.join(20)
                assert (given, lost.is_set()) == ([1], True)
            while not heard:
                reader.wait_for(2, timeout=0.01)
            assert heard == [1]


@pytest.mark.clause("J4", "PG2")
@pytest.mark.parametrize("wake", ["notify", "poll"])
def test_followers_whose_connections_are_cut_again_and_again_hear_each_event_once(
    postgres: Server, postgres_url: str, wake: str
) -> None:
    schema = address_of(postgres_url).schema
    heard: list[int] = []
    with (
        network(postgres.directory) as between,
        PostgresLog(f"{postgres_url}&wake={wake}") as log,
        PostgresLog(between.url(schema, wake=wake), read_only=True) as reader,
    ):
        reader.on_committed(lambda events: heard.extend(event.position for event in events))
        with load_on(log) as load:
            for number in range(200):
                load.wait_for(5)
                between.cut(reset=bool(number % 2))
        load.check(log)
        head = log.head()
        assert reader.wait_for(head, timeout=30)
        while heard[-1:] != [head]:
            reader.wait_for(head + 1, timeout=0.01)
    assert heard == list(range(1, head + 1))


@pytest.mark.clause("J4")
def test_who_begins_to_follow_while_the_server_is_away_is_told_so() -> None:
    with postgres_server() as server:
        url = f"{server.url}&schema=followed"
        PostgresLog(url).close()
        with PostgresLog(url, read_only=True) as reader:
            server.kill()
            for follow in (
                lambda: reader.on_committed(print),
                lambda: reader.application.recorder.subscribe(gt=0),
            ):
                with pytest.raises(StoreUnavailable):
                    follow()


@pytest.mark.clause("J4")
def test_a_log_is_read_and_followed_on_a_standby() -> None:
    """A standby takes no LISTEN, and no writer."""
    with postgres_server() as primary, PostgresLog(f"{primary.url}&schema=copied") as log:
        log.append_now([to("s", 0, said("a"))])
        with postgres_server(standby_of=primary) as standby:
            for version, wake in enumerate(("notify", "poll"), 1):
                with PostgresLog(f"{standby.url}&schema=copied&wake={wake}", read_only=True) as reader:
                    assert len(reader.stream("s")) == version
                    log.append_now([to("s", version, said(wake))])
                    assert reader.wait_for(version + 1, timeout=20)
                    assert [event.id for event in reader.all()][-1] == f"id-{wake}"
            with pytest.raises(StoreUnavailable, match="standby"):
                PostgresLog(f"{standby.url}&schema=copied")
