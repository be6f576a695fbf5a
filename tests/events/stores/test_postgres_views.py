"""Views on PostgreSQL: written with the events, and noticed when somebody else writes into them or takes a part away."""

from collections.abc import Iterator

import msgspec
import psycopg
import pytest

from intersession_events.basics.errors import LogError
from intersession_events.facts import Route, RunCompleted, RunQueued, ThreadBound
from intersession_events.log.sql import Sql
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.connections import settle
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.dialect import translated
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.sessions.list import Sessions
from intersession_projections.views.sessions.threads import ThreadBindings
from support.postgres.server import Server, told_to
from support.story import MAIN, Story
from support.transacting import transact

pytestmark = pytest.mark.postgres

VIEWS = sorted(view.name for view in inline_views())


@pytest.fixture
def story(postgres_url: str) -> Iterator[Story]:
    told = Story(postgres_url)
    yield told
    told.close()


@pytest.mark.parametrize(
    ("statement", "touched"),
    [
        ("UPDATE session_list SET falling = 1", ["session_list"]),
        ("TRUNCATE flows", ["open_flows"]),
        ("DROP INDEX run_outcomes_session", ["run_outcomes"]),
        ("ALTER TABLE clock ADD COLUMN more text", ["positions"]),
        ("DROP TABLE held_sessions", ["held_sessions"]),
        ("ALTER TABLE thread_bindings DISABLE TRIGGER touched", ["thread_bindings"]),
        ("UPDATE inline_views SET position = 0 WHERE name = 'positions'", ["positions"]),
        ("DELETE FROM set_aside; INSERT INTO set_aside VALUES ('positions', 1, 's', 1, 't', 'r')", VIEWS),
        (
            "DELETE FROM session_list WHERE no = 77",
            ["session_list"],
        ),  # that it changed nothing is not looked at
    ],
)
@pytest.mark.clause("J1")
def test_a_view_that_somebody_else_touched_is_built_anew(
    postgres_url: str, statement: str, touched: list[str]
) -> None:
    first = Story(postgres_url)
    first.open()
    wanted = Sessions(first.log).get(MAIN)
    first.close()

    told_to(postgres_url, statement)

    with PostgresLog(postgres_url, inline=inline_views(), read_only=True) as reader:
        assert Sessions(reader).get(MAIN) == wanted  # made beside the log for as long as it is read
    with PostgresLog(postgres_url, inline=inline_views()) as log:
        assert sorted(log.built) == touched
        assert Sessions(log).get(MAIN) == wanted
        assert list(log.set_aside()) == []
    with PostgresLog(postgres_url, inline=inline_views()) as log:
        assert list(log.built) == []


def test_a_writer_hears_of_it_while_it_writes_and_rebuild_mends_it(
    story: Story, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    story.open()
    told_to(postgres_url, "UPDATE session_list SET state = NULL")
    assert Sessions(story.log).get(MAIN) is None

    story.open("agent:main:other")  # does not wait to be told of it, and leaves the mark
    assert story.log.query("SELECT position FROM inline_views WHERE name = 'session_list'") == [(-1,)]
    story.open("agent:main:another")
    assert "somebody else has written into the view session_list" in caplog.text
    story.log.rebuild("session_list")

    assert Sessions(story.log).get(MAIN) is not None
    positions: dict[str, int] = dict(story.log.query("SELECT name, position FROM inline_views"))
    assert set(positions.values()) == {story.log.head()}


@pytest.mark.parametrize("run_id", ["", "r", "fifteen letters", "sixteen letters!", "ünï'cødé\\", "0" * 36])
def test_an_id_of_any_form_is_kept_beside_those_that_are_uuids(story: Story, run_id: str) -> None:
    uuid = "00000000-0000-0000-0000-000000000000"
    for name in (uuid, run_id):
        story.put(
            f"session:{MAIN}",
            RunQueued(run_id=name, session_id="s", step="message", answers="m"),
            RunCompleted(run_id=name, attempt=1, text=name),
        )
    story.log.rebuild("run_outcomes")
    runs = Runs(story.log)

    assert [found.run_id for name in (uuid, run_id) if (found := runs.get(name))] == [uuid, run_id]
    assert run_id in runs.ids(run_id[:-1], 10)
    assert runs.ids(run_id, 10)[:1] == [run_id]


def test_a_nul_that_a_channel_gave_is_one_in_every_view(story: Story) -> None:
    """PostgreSQL has no text with a NUL; what asks for one finds nothing else."""
    thread = Route(channel="tele\0gram", to="4\0", thread="t\0")
    story.open()
    story.put(f"session:{MAIN}", ThreadBound(route=thread))
    for _ in range(2):
        threads = ThreadBindings(story.log)
        assert (threads.session_of(thread), threads.of(MAIN)) == (MAIN, thread)
        assert threads.session_of(msgspec.structs.replace(thread, thread="t")) is None
        story.log.rebuild("thread_bindings")
    assert story.log.stream("session:\0") == []
    assert Sessions(story.log).get(f"{MAIN}\0") is None
    assert list(story.log.set_aside()) == []
    assert views_proven(story.log, inline_views()) == ([], [])


def test_what_sqlite_has_and_postgresql_has_not_is_translated() -> None:
    asked = translated("SELECT p.value FROM json_each(?2) AS p WHERE a = ?1 AND +b > ?1 AND c LIKE '50%?'")

    assert asked.statement == (
        b"SELECT p.value FROM (SELECT one.value::int AS value FROM jsonb_array_elements_text((%s)::jsonb) AS one (value)) AS p "
        b"WHERE a = %s AND b > %s AND c LIKE '50%%?'"
    )
    assert asked.arranged(("one", "two")) == ["two", "one", "one"]
    made = translated(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB, c TEXT NOT NULL) WITHOUT ROWID"
    ).statement
    assert made == b'CREATE TABLE t (a bigint PRIMARY KEY, b bytea, c text COLLATE "C" NOT NULL)'
    assert translated("SELECT 1 FROM a CROSS JOIN b ON a.x = b.x WHERE c IN ()").statement == (
        b"SELECT 1 FROM a JOIN b ON a.x = b.x WHERE c IN (NULL)"
    )


def test_a_connection_that_was_rolled_back_often_names_nothing_that_the_server_has_forgotten(
    postgres: Server,
) -> None:
    """psycopg names what it has prepared itself even after a DEALLOCATE ALL: each append on that connection was refused for good."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        settle(connection, "public", writes=True)

        def rolled_back() -> None:
            cursor = PgCursor(connection, None)
            cursor.execute("SELECT 1")
            cursor.rollback()

        for _ in range(3):
            rolled_back()
        for _ in range(8):  # often enough for psycopg to prepare it, if it might
            connection.execute("SELECT 7")
        rolled_back()
        assert connection.execute("SELECT 7").fetchone() == (7,)


@pytest.mark.parametrize("error", [psycopg.errors.DiskFull("full"), ValueError("only this work fails")])
def test_appends_go_on_after_a_transaction_that_was_rolled_back(story: Story, error: Exception) -> None:
    """psycopg has the server forget what was prepared after a ROLLBACK: no event was taken any more."""

    def fails(sql: Sql) -> None:
        sql.execute("SELECT 1")
        raise error

    for number in range(8):  # often enough for psycopg to prepare statements itself
        story.open(f"agent:a{number}:main")
        story.run(f"agent:a{number}:main", f"r{number}", "hello", "hi")
    with pytest.raises(LogError if isinstance(error, psycopg.Error) else ValueError):
        transact(story.log, fails)

    story.open("agent:later:main")
    story.run("agent:later:main", "later", "hello", "hi")
    story.log.rebuild("session_list")
    story.run("agent:later:main", "last", "hello", "hi")

    found = Runs(story.log).get("last")
    assert found is not None
    assert found.status == "ok"


def test_a_search_reads_few_words_that_the_index_has_not_sorted_yet(story: Story, postgres_url: str) -> None:
    """PostgreSQL puts new words aside until they are four megabytes, and each search read all that were."""
    for number in range(900):
        story.open(f"agent:main:job-{number}", label=f"a job with some words, number {number}")

    with psycopg.connect(address_of(postgres_url).conninfo) as connection:
        connection.execute(f"SET search_path TO {address_of(postgres_url).schema}".encode())
        aside = connection.execute("SELECT gin_clean_pending_list('session_search_grams')").fetchone()

    assert aside is not None
    assert aside[0] <= 10  # pages of 8 KiB
