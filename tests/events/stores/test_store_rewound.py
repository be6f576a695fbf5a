"""A server that lacks what was acknowledged: a standby that was promoted though it was behind, or an old primary that is back."""

import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import psycopg
import pytest

from intersession_events.basics.errors import LogRewound, StoreUnavailable, WriterSuperseded
from intersession_events.log.recorded import StreamAppend
from intersession_events.stores.postgres.application import WriterApplication
from intersession_events.stores.postgres.log import PostgresLog
from support.log_drafts import anywhere, said, to
from support.postgres.network import Network, network
from support.postgres.server import Server, postgres_server

pytestmark = [pytest.mark.postgres, pytest.mark.clause("PG3")]


@pytest.fixture
def primary() -> Iterator[Server]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def between(primary: Server) -> Iterator[Network]:
    """Where the host's connections go: to the primary, until a test says otherwise."""
    with network(primary.directory) as made:
        yield made


@pytest.fixture
def log(between: Network) -> Iterator[PostgresLog]:
    with PostgresLog(between.url("moved")) as opened:
        opened.append_now([to("s", 0, said("a"))])
        yield opened


def answers(between: Network, server: Server) -> None:
    between.to = server.directory
    between.cut()


def refused(log: PostgresLog) -> StoreUnavailable:
    """Append until the answer comes from the server, and not from a connection that was cut."""
    while True:
        with pytest.raises(StoreUnavailable) as caught:
            log.append_now([anywhere("t", said("refused"))])
        if "can't be reached" not in str(caught.value):
            return caught.value


def goes_on(log: PostgresLog, append: StreamAppend) -> int:
    """Append as a host does, which tries again: a connection may have been made in advance while another server answered."""
    for _ in range(2):
        with suppress(StoreUnavailable):
            return log.append_now([append]).recorded[-1].position
    return log.append_now([append]).recorded[-1].position


def positions(server: Server) -> list[int]:
    with psycopg.connect(server.url) as connection:
        rows = connection.execute("SELECT notification_id FROM moved.stored_events ORDER BY 1").fetchall()
    return [position for (position,) in rows]


def test_nothing_is_written_to_a_server_that_lacks_what_was_acknowledged(
    log: PostgresLog, between: Network, primary: Server
) -> None:
    """An append went on behind what the standby had: what was acknowledged was gone without a word, its positions were given again."""
    with postgres_server(standby_of=primary) as behind:
        behind.promote()
        log.append_now([to("s", 1, said("b"))])
        answers(between, behind)

        for _ in range(2):
            found = refused(log)
            assert isinstance(found, LogRewound)
            assert found.position == 2
        assert positions(behind) == [1]

        between.to = primary.directory  # of itself: what leads to the other server is not kept
        assert goes_on(log, anywhere("t", said("c"))) == 3
    assert positions(primary) == [1, 2, 3]


def test_a_writer_that_meets_a_standby_goes_on_once_the_primary_answers(
    log: PostgresLog, between: Network, primary: Server
) -> None:
    """An address that moved too late: the connection stayed open, and each append was refused for as long as that."""
    with postgres_server(standby_of=primary) as standby:
        answers(between, standby)
        assert "can only be read now" in str(refused(log))
        between.to = primary.directory
        assert goes_on(log, to("s", 1, said("b"))) == 2


def test_an_old_primary_that_got_events_of_its_own_is_not_taken_for_the_log(
    log: PostgresLog, between: Network, primary: Server
) -> None:
    """Its last position may be the same, or a later one."""
    with postgres_server(standby_of=primary) as new:
        new.promote()
        log.append_now([anywhere("s", said("unheard of"))])
        answers(between, new)
        with PostgresLog(f"{between.url('moved')}", read_only=True) as reader:
            assert reader.head() == 1
        with psycopg.connect(new.url, autocommit=True) as connection:
            connection.execute("UPDATE moved.log_writer SET alive_until = '-infinity'")
        with PostgresLog(between.url("moved")) as later:
            assert later.append_now([anywhere("s", said("on the new one"))]).position == 2
            assert isinstance(refused(log), WriterSuperseded)

            answers(between, primary)
            assert isinstance(refused(later), WriterSuperseded)  # there its epoch has not begun
            between.to = new.directory
            assert goes_on(later, anywhere("s", said("on"))) == 3
    assert positions(primary) == [1, 2]


def test_two_writers_that_began_on_two_servers_are_told_apart_though_they_have_one_epoch(
    between: Network, primary: Server
) -> None:
    PostgresLog(between.url("moved")).close()
    with postgres_server(standby_of=primary) as new:
        new.promote()
        with PostgresLog(between.url("moved")) as lost, PostgresLog(f"{new.url}&schema=moved") as later:
            assert lost.epoch == later.epoch
            with psycopg.connect(new.url, autocommit=True) as connection:  # it is of another process
                connection.execute("UPDATE moved.log_writer SET holder = '1 elsewhere '")
            assert isinstance(later.application, WriterApplication)
            later.application.commits.holder = "1 elsewhere "
            answers(between, new)

            assert isinstance(refused(lost), WriterSuperseded)
            assert later.append_now([anywhere("s", said("mine"))]).position == 1


@pytest.mark.clause("J4")
@pytest.mark.parametrize("wake", ["notify", "poll"])
def test_who_follows_a_log_that_went_back_says_so(
    log: PostgresLog, between: Network, primary: Server, caplog: pytest.LogCaptureFixture, wake: str
) -> None:
    told = threading.Event()

    def hear(record: logging.LogRecord) -> bool:
        if "was followed" in record.msg:
            told.set()
        return True

    caplog.set_level(logging.WARNING, "intersession.store")
    caplog.handler.addFilter(hear)
    with (
        postgres_server(standby_of=primary) as behind,
        PostgresLog(between.url("moved", wake=wake), read_only=True) as reader,
    ):
        behind.promote()
        reader.on_committed(lambda _: None)
        log.append_now([to("s", 1, said("b"))])
        assert reader.wait_for(2, timeout=20)

        answers(between, behind)

        assert told.wait(20)
    assert "the log is at position 1, and was followed up to 2" in caplog.text


def wait_ended(log: PostgresLog, primary: Server) -> tuple[int, StoreUnavailable]:
    """Have commits wait for a standby that is not there; return at which version one did, and what came of it once that was ended."""
    refused: list[tuple[int, StoreUnavailable]] = []

    def append() -> None:
        for version in count(1):  # the server's processes hear of the setting one after the other
            try:
                log.append_now([to("s", version, said(f"b{version}"))])
            except StoreUnavailable as error:
                refused.append((version, error))
                return

    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = local")
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        connection.execute("SELECT pg_reload_conf()")
        appending = threading.Thread(target=append)
        appending.start()
        while appending.is_alive():
            connection.execute(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )
    (found,) = refused
    return found


def test_a_commit_whose_wait_for_its_standby_is_ended_is_not_acknowledged(
    log: PostgresLog, primary: Server
) -> None:
    """The server makes it all the same, and says so in a warning alone: it is lost with this server."""
    version, error = wait_ended(log, primary)
    assert "wait for its standby" in str(error)

    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_reload_conf()")
    assert log.append_now([to("s", version, said(f"b{version}"))]).again
    assert positions(primary) == [*range(1, version + 2)]


def test_a_log_is_closed_and_given_back_though_its_standby_is_gone(log: PostgresLog, primary: Server) -> None:
    """Giving the lease back waited for the standby, as an append does: a host could not be stopped."""
    wait_ended(log, primary)
    closed = threading.Event()

    def close() -> None:
        log.close()
        closed.set()

    threading.Thread(target=close, daemon=True).start()
    try:
        assert closed.wait(20)
    finally:
        with psycopg.connect(primary.url, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = local")
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
            held = connection.execute(
                "SELECT 1 FROM moved.log_writer WHERE alive_until > clock_timestamp()"
            ).fetchall()
    assert held == []
