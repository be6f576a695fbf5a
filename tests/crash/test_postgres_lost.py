"""Nothing that was acknowledged is lost or there twice when a PostgreSQL server is killed, cut off, stalled, or replaced."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
import pytest

from benchmarks.logs import open_sessions, session_key, turn
from intersession_events.basics.errors import StoreBusy, StoreLocked, StoreUnavailable, WriterSuperseded
from intersession_events.stores.postgres import connections
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from intersession_projections.views.inline_views import inline_views
from support.history import check_views
from support.log_drafts import anywhere, said, to
from support.postgres.load import Load, load_on
from support.postgres.network import network
from support.postgres.server import Server, postgres_server

AT_NIGHT = (pytest.mark.nightly, pytest.mark.timeout(3_600))
KILLS = pytest.mark.parametrize("kills", [4, pytest.param(200, marks=AT_NIGHT)])
CUTS = pytest.mark.parametrize("cuts", [12, pytest.param(500, marks=AT_NIGHT)])


WRITTEN = pytest.mark.parametrize("written", ["by one call", "with views"])
"""Without views a batch is one call, which is its own transaction; with them it is a pipeline of statements, and COMMIT behind."""


KEYS = [session_key(number) for number in range(4)]


def opened(url: str, written: str) -> PostgresLog:
    """Open a new log."""
    if written == "by one call":
        return PostgresLog(url)
    log = PostgresLog(url, inline=inline_views())
    open_sessions(log, KEYS)
    return log


@contextmanager
def loaded(log: PostgresLog, written: str) -> Generator[Load]:
    """Load a log for a block, and make sure that nothing that was acknowledged is lost then, or there twice."""
    plain = written == "by one call"
    with load_on(log) if plain else load_on(log, turn, streams=KEYS) as load:
        yield load
    load.check(log)
    assert check_views(log, [] if plain else [view.name for view in inline_views()]) == []
    # Between the end of a server, or of a connection, and the next start there is nothing to connect to.
    assert set(load.refused) <= {"StoreUnavailable", "StoreBusy"}


@pytest.mark.postgres
@pytest.mark.clause("PG1")
@WRITTEN
@KILLS
def test_a_server_that_is_killed_again_and_again_loses_nothing(kills: int, written: str) -> None:
    with (
        postgres_server() as server,
        opened(f"{server.url}&schema=killed", written) as log,
        loaded(log, written) as load,
    ):
        for _ in range(kills):
            load.wait_for(40)
            server.kill()
            server.start()
        load.wait_for(40)


@pytest.mark.postgres
@pytest.mark.clause("PG2", "O5")
@pytest.mark.parametrize("how", ["end", "reset", "instead of an answer", "half open"])
@WRITTEN
@CUTS
def test_connections_that_are_cut_under_load_lose_nothing(
    postgres: Server, postgres_url: str, how: str, cuts: int, written: str
) -> None:
    schema = address_of(postgres_url).schema
    # What was committed, and nobody was told of:
    answer = b"COMMIT" if written == "with views" else b"SELECT 1"
    with (
        network(postgres.directory) as between,
        opened(between.url(schema), written) as log,
        loaded(log, written) as load,
    ):
        for _ in range(cuts):
            load.wait_for(10)
            if how == "instead of an answer":
                between.cut_instead_of(lambda said: answer in said)
            elif how == "half open":
                between.keep_answers()
                between.cut()
                between.flow()
            else:
                between.cut(reset=how == "reset")
        load.wait_for(40)


@pytest.mark.postgres
@pytest.mark.clause("PG2", "O5")
def test_an_append_that_stalls_is_told_in_time_and_is_there_once(postgres: Server, postgres_url: str) -> None:
    schema = address_of(postgres_url).schema
    with network(postgres.directory) as between, PostgresLog(between.url(schema)) as log:
        log.append_now([to("s", 0, said("a"))])
        between.stall()
        with pytest.raises(StoreUnavailable, match="it may still become so"):
            log.append_now([to("s", 1, said("b"))], timeout=0.2)
        between.flow()

        assert log.append_now([to("s", 1, said("b"))]).again
        assert [event.id for event in log.all()] == ["id-a", "id-b"]


@pytest.mark.postgres
@pytest.mark.clause("PG2", "O5")
def test_what_a_server_takes_up_late_is_refused_where_it_was_said_to_have_failed(
    postgres: Server, postgres_url: str
) -> None:
    """A server that is short of time takes up a call when its client has long looked what is there, and found nothing."""
    schema = address_of(postgres_url).schema
    with network(postgres.directory) as between, PostgresLog(between.url(schema)) as log:
        log.append_now([to("s", 0, said("a"))])
        between.cut_before(lambda asked: b"hello" in asked)  # the events themselves
        with pytest.raises(StoreUnavailable):
            log.append_now([anywhere("s", said("b"))])

        assert b"is not the next" in between.let_in()

        assert not log.append_now([anywhere("s", said("b"))]).again
        assert [event.id for event in log.all()] == ["id-a", "id-b"]


def wait_for_standby(old: Server) -> None:
    """Have commits wait for the standby of a server, and wait until they do."""
    with psycopg.connect(old.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        waits = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        while connection.execute(waits).fetchone() is None:
            pass
    while True:  # until who connects from now on knows it
        with psycopg.connect(old.url, autocommit=True) as connection:
            if connection.execute("SHOW synchronous_standby_names").fetchone() == ("*",):
                return


def taken_over(server: Server) -> PostgresLog:
    """Open a log whose writer is taken for dead, though it says now and then that it is not."""
    while True:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("UPDATE moved.log_writer SET alive_until = '-infinity'")
        try:
            return PostgresLog(f"{server.url}&schema=moved")
        except StoreLocked:
            continue


@pytest.mark.postgres
@pytest.mark.clause("PG3")
@WRITTEN
@pytest.mark.parametrize("moves", [1, pytest.param(50, marks=AT_NIGHT)])
def test_a_standby_takes_over_with_all_that_was_acknowledged(moves: int, written: str) -> None:
    """A commit waits for the standby (`synchronous_standby_names`); the old primary acknowledges nothing any more."""
    for _ in range(moves):
        with postgres_server() as old, postgres_server(standby_of=old) as new:
            wait_for_standby(old)
            both = f"postgresql://postgres@/postgres?host={old.directory},{new.directory}"
            url = f"{both}&target_session_attrs=read-write&schema=moved"
            with opened(url, written) as log:
                with loaded(log, written) as load:
                    load.wait_for(100)
                    old.kill()
                    new.promote()
                    load.wait_for(100)
                before = log.head()

                # Whoever has it then is not held up by who had it before.
                with taken_over(new) as later:
                    with pytest.raises(WriterSuperseded):
                        log.append_now([anywhere("s", said("too late"))])
                    assert later.append_now([anywhere("s", said("on"))]).position == before + 1

            old.start()
            acknowledges_nothing(old)


def acknowledges_nothing(old: Server) -> None:
    """Make sure that a writer of a server whose standby is gone waits for it, until the server is killed."""
    refused: list[StoreUnavailable] = []

    def write() -> None:
        try:
            PostgresLog(f"{old.url}&schema=moved")
        except StoreUnavailable as error:
            refused.append(error)

    with psycopg.connect(old.url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = local")
        connection.execute("UPDATE moved.log_writer SET alive_until = '-infinity'")
        writing = threading.Thread(target=write)
        writing.start()
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        while connection.execute(waits).fetchone() is None:
            assert writing.is_alive()
    old.kill()
    writing.join(30)
    assert len(refused) == 1


@pytest.mark.postgres
@pytest.mark.clause("PG4")
def test_fifty_threads_with_one_connection_wait_for_it_or_hear_that_it_is_busy(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READERS", 1)
    with PostgresLog(postgres_url) as log:
        log.append_now([to("s", 0, said("a"))])
        log.application.datastore.readers.timeout = 0.1
        came: list[str] = []  # which takes one from each thread without losing another's
        held = threading.Event()

        def read() -> None:
            held.wait(20)
            try:
                came.extend("read" for _ in log.stream("s"))
            except StoreBusy:
                came.append("busy")

        threads = [threading.Thread(target=read) for _ in range(50)]
        for thread in threads:
            thread.start()
        with log.moment():
            held.set()
            threads[0].join(20)
            threads[1].join(20)
        for thread in threads:
            thread.join(20)
        assert len(came) == 50
        assert came.count("busy") >= 2
        log.application.datastore.readers.timeout = connections.PATIENCE_S
        assert len(log.stream("s")) == 1
