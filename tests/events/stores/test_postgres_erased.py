"""ERASE-3 on PostgreSQL: what was erased is in no file of the database, and where it may still be is said."""

import psycopg
import pytest

from intersession import SessionSystem, echo
from intersession_events.facts import Erased
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import Draft
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from support.log_drafts import anywhere, said, to
from support.postgres.roles import give_rights
from support.postgres.server import Server
from support.running import WAIT
from support.soaking import until

pytestmark = pytest.mark.postgres


def found(server: Server, words: str, where: str = "base") -> list[str]:
    """The files of the server that have some words, once it has written what it holds in memory."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("CHECKPOINT")
    files = (path for path in (server.directory / "data" / where).rglob("*") if path.is_file())
    return [path.name for path in files if words.encode() in path.read_bytes()]


def erase(log: PostgresLog, stream: str) -> None:
    rows = tuple((one.version, left) for one in log.stream(stream) if (left := left_of(one)) is not None)
    draft = Draft(event=Erased(stream=stream, rows=rows, by="operator"), id="erased", time=9)
    log.append_now([anywhere(erased_stream(stream), draft)])


@pytest.mark.clause("ERASE-3")
def test_no_file_of_the_database_has_the_words_any_more(postgres: Server, postgres_url: str) -> None:
    """A VACUUM that does not write a table anew leaves them in the unused part of its pages."""
    canary = f"zqx{address_of(postgres_url).schema.replace('_', '')}"
    config = {"views": {"keep": ["search"], "afterSeconds": 0}}
    with SessionSystem(postgres_url, agents={"main": echo()}, config=config) as system:
        for number in range(12):
            text = f"{canary} {number} {'and so on ' * 20 * number}"
            sent = {"sessionKey": "agent:main:main", "message": text, "idempotencyKey": str(number)}
            run = system.gateway.perform("chat.send", sent)
            system.gateway.perform("agent.wait", {"runId": run["runId"], "timeoutMs": int(WAIT * 1000)})
        assert system.gateway.perform("debug.search", {"words": canary})["hits"]
        until(lambda: not system.service.runs.open_runs())
        before = found(postgres, canary)

        answer = system.erase("agent:main:main")

        assert len(before) > 1
        assert found(postgres, canary) == []
        assert [said for said in answer["notReached"] if "write-ahead log" in said]
        assert not [said for said in answer["notReached"] if "VACUUM" in said or "pg_statistic" in said]
        assert not system.gateway.perform("debug.search", {"words": canary})["hits"]


@pytest.mark.clause("ERASE-3")
def test_who_may_not_have_a_table_written_anew_is_told_what_its_owner_runs(
    postgres: Server, postgres_url: str, roles: dict[str, str]
) -> None:
    schema = address_of(postgres_url).schema
    PostgresLog(roles["owner"]).close()
    give_rights(postgres, schema, {role: f"{schema}_{role}" for role in roles})
    with PostgresLog(roles["writer"]) as log, psycopg.connect(postgres.url, autocommit=True) as owner:
        log.append_now([to("s", 0, said("a", f"zqx{schema}"))])
        erase(log, "s")
        if owner.info.server_version >= 170_000:
            owner.execute(f"REVOKE MAINTAIN ON ALL TABLES IN SCHEMA {schema} FROM {schema}_writer".encode())
        refused = log.let_go()
        if owner.info.server_version >= 170_000:
            give_rights(postgres, schema, {role: f"{schema}_{role}" for role in roles})
            allowed = log.let_go()
            assert allowed == []
            assert found(postgres, f"zqx{schema}") == []

    (events,) = [said for said in refused if "stored_events" in said]
    assert f"have their owner run `VACUUM FULL {schema}.stored_events`: permission denied" in events


@pytest.mark.clause("ERASE-3")
def test_what_somebody_reads_meanwhile_is_named_and_nobody_waits_long_for_it(
    postgres: Server, postgres_url: str
) -> None:
    schema = address_of(postgres_url).schema
    with PostgresLog(postgres_url) as log, psycopg.connect(postgres.url) as reader:
        log.append_now([to("s", 0, said("a", f"zqx{schema}"))])
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT set_config('search_path', %s, true), pg_current_snapshot()", (schema,))
        erase(log, "s")
        old = log.let_go()
        reader.execute("SELECT COUNT(*) FROM stored_events")
        locked = log.let_go()
        log.append_now([to("s", 1, said("b"))])
        reader.rollback()

        assert old == [
            f"1 dead rows of stored_events that an older transaction may still read: run `VACUUM FULL {schema}.stored_events` later"
        ]
        (pages,) = locked
        assert "the pages of stored_events, which somebody reads for long: erase once more" in pages
        assert log.let_go() == []
        assert found(postgres, f"zqx{schema}") == []
