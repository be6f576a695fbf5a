"""What the server refuses as late as with the commit: it says why, and the next append goes on."""

import logging
import threading
from collections.abc import Sequence

import psycopg
import pytest

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.recorded import Recorded
from intersession_events.log.views import InlineView
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from intersession_projections.views.inline_views import inline_views
from support.log_drafts import anywhere, said
from support.postgres.server import Server, postgres_server

pytestmark = pytest.mark.postgres

WRITTEN = pytest.mark.parametrize(
    "inline", [pytest.param([], id="by one call"), pytest.param(inline_views(), id="with views")]
)


@pytest.mark.clause("PG2")
@WRITTEN
def test_a_commit_that_is_refused_says_why(
    postgres: Server, postgres_url: str, inline: list[InlineView]
) -> None:
    """It was said that the server could not be reached: nobody took the answer that came behind the last one."""
    schema = address_of(postgres_url).schema
    with (
        PostgresLog(postgres_url, inline=inline) as log,
        psycopg.connect(postgres.url, autocommit=True) as other,
    ):
        log.append_now([anywhere("s", said("a"))])
        other.execute(
            f"CREATE FUNCTION {schema}.never() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'not today'; END $$".encode()
        )
        other.execute(
            f"CREATE CONSTRAINT TRIGGER never AFTER INSERT ON {schema}.stored_events DEFERRABLE INITIALLY DEFERRED "
            f"FOR EACH ROW EXECUTE FUNCTION {schema}.never()".encode()
        )
        with pytest.raises(StoreUnavailable, match="the store refused: P0001: not today"):
            log.append_now([anywhere("s", said("b"))])

        other.execute(f"DROP FUNCTION {schema}.never() CASCADE".encode())
        assert log.append_now([anywhere("s", said("b"))]).position == 2
        assert [event.id for event in log.all()] == ["id-a", "id-b"]


@pytest.mark.clause("PG1")
@WRITTEN
def test_a_log_whose_row_of_positions_is_gone_takes_nothing(
    postgres: Server, postgres_url: str, inline: list[InlineView]
) -> None:
    """Nobody would have waited for anybody, and each position could have been given twice."""
    schema = address_of(postgres_url).schema
    with (
        PostgresLog(postgres_url, inline=inline) as log,
        psycopg.connect(postgres.url, autocommit=True) as other,
    ):
        log.append_now([anywhere("s", said("a"))])
        other.execute(f"TRUNCATE {schema}.log_head".encode())
        for says in ("turn", "log_head has no row"):
            with pytest.raises(StoreUnavailable, match=says):
                log.append_now([anywhere("s", said("b"))])

        other.execute(f"INSERT INTO {schema}.log_head VALUES (1, 1)".encode())  # noqa: S608 - our own
        assert log.append_now([anywhere("s", said("b"))]).position == 2


@pytest.mark.clause("PG2")
@WRITTEN
def test_who_finds_a_table_or_function_missing_is_told_what_happened(
    postgres: Server, postgres_url: str, inline: list[InlineView]
) -> None:
    schema = address_of(postgres_url).schema
    with (
        PostgresLog(postgres_url, inline=inline) as log,
        psycopg.connect(postgres.url, autocommit=True) as other,
    ):
        log.append_now([anywhere("s", said("a"))])
        other.execute(f"ALTER SCHEMA {schema} RENAME TO {schema}_away".encode())
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=r"is missing .*: somebody has renamed or dropped it"):
                log.append_now([anywhere("s", said("b"))])

        other.execute(f"ALTER SCHEMA {schema}_away RENAME TO {schema}".encode())
        assert log.append_now([anywhere("s", said("b"))]).position == 2


def tell_without_end(connection: psycopg.Connection) -> None:
    while True:
        connection.execute(
            "SELECT count(pg_notify('other' || each, repeat('x', 7000))) FROM generate_series(1, 60) AS each"
        )


@pytest.mark.clause("PG2", "J4")
@WRITTEN
def test_a_queue_of_notifications_that_is_full_stops_no_append(
    inline: list[InlineView], caplog: pytest.LogCaptureFixture
) -> None:
    """One session that listens and sits in a transaction, of whatever database, fills it for all; no commit with a NOTIFY is taken then."""
    caplog.set_level(logging.WARNING, "intersession.store")
    heard: list[int] = []
    all_heard = threading.Event()
    with postgres_server() as server:
        with psycopg.connect(server.url, autocommit=True) as one:
            if one.info.server_version < 170000:
                pytest.skip("no queue can be made so small before PostgreSQL 17")
            one.execute("ALTER SYSTEM SET max_notify_queue_pages = 64")
        server.kill()
        server.start()
        url = f"{server.url}&schema=told"
        with (
            PostgresLog(url, inline=inline) as log,
            PostgresLog(url, read_only=True) as reader,
            psycopg.connect(server.url) as sits,
            psycopg.connect(server.url, autocommit=True) as fills,
        ):
            sits.execute("LISTEN whatever")
            sits.commit()
            sits.execute("SELECT 1")
            log.append_now([anywhere("s", said("a"))])

            def hear(events: Sequence[Recorded]) -> None:
                heard.extend(event.position for event in events)
                if heard[-1] == 3:
                    all_heard.set()

            reader.on_committed(hear)
            with pytest.raises(psycopg.errors.ProgramLimitExceeded):
                tell_without_end(fills)

            assert log.append_now([anywhere("s", said("b"))]).position == 2
            assert log.append_now([anywhere("s", said("c"))]).position == 3
            assert all_heard.wait(20)
            assert reader.written_by() is not None
            log.close()
            assert reader.written_by() is None, "the lease ends, though nobody can be told"
    assert heard == [2, 3]
    assert caplog.text.count("can tell nobody of commits") == 1
