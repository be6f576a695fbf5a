"""The queue of calls on PostgreSQL: with a role of least rights, by several processes, and what a worker is given of the log."""

import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest

from intersession_events.basics.errors import NoSuchStore, StoreUnavailable, WorkRefused
from intersession_events.copies.migrating import migrate
from intersession_events.facts import Erased
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import Draft
from intersession_events.log.work_queue import CallId, TakesWork
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.opened import open_log, work_at
from intersession_events.stores.postgres.address import address_of
from support.any_log import changed_behind
from support.encrypted import master_key, source
from support.forked import A, fork_of, source_log
from support.log_drafts import anywhere
from support.paths import DOCS, TESTS
from support.postgres.server import Server
from support.work_queue import Queue, offer, queue, record, worker

pytestmark = pytest.mark.postgres


@pytest.fixture
def q(postgres_url: str) -> Iterator[Queue]:
    with queue(postgres_url) as opened:
        yield opened


@pytest.fixture
def role(postgres: Server, q: Queue) -> Iterator[str]:
    """A role for workers of `research`, made by the page's script."""
    schema = address_of(q.url).schema
    name = f"{schema}_worker"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        script = postgres.directory / "worker.sql"
        shutil.copy(DOCS / "howto" / "postgresql-worker.sql", script)
        script.chmod(0o644)
        given = {"schema": schema, "worker": name, "agents": "{research}", "channels": "{}"}
        settings = [f"--set={key}={value}" for key, value in given.items()]
        for _ in range(2):  # again does no harm
            postgres.run(
                *("psql", "-h", str(postgres.directory), "-U", "postgres", "-d", "postgres"),
                *(*settings, "-f", "worker.sql"),
            )
        yield name
        connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


@pytest.fixture
def work(q: Queue, role: str) -> Iterator[TakesWork]:
    with closing(work_at(q.url.replace("postgres@", f"{role}@"))) as opened:
        yield opened


@pytest.mark.clause("WORK-18")
def test_worker_at_the_database_of_an_encrypted_log_is_sent_to_the_gateway(
    q: Queue, work: TakesWork, tmp_path: Path
) -> None:
    work.announce(worker("w1", "research"))
    q.log.close()
    q.log = open_log(q.url, encryption=Encryption(source(master_key(tmp_path))))
    q.writer.offer([offer("a", agent="research")])

    with closing(work_at(q.url)) as owners:
        for one in (work, owners):  # the role's rights do not matter
            with pytest.raises(WorkRefused, match="--gateway in place of --store"):
                one.announce(worker("w1", "research"))
    with pytest.raises(WorkRefused, match="kept encrypted"):
        work.take("w1", 1, 0)
    q.workers.announce(worker("w2", "research"))
    assert q.workers.take("w2", 1, 0) == [offer("a", agent="research")]


@pytest.mark.clause("WORK-3")
def test_role_of_a_worker_works_and_can_do_nothing_else(q: Queue, role: str, work: TakesWork) -> None:
    for stream in ("session:a", "session:b", "session:c"):
        record(q.log, stream)
    q.workers.announce(worker("owners"))
    work.announce(worker("w1", "research"))
    q.writer.offer([offer("b"), offer("a", agent="research", version=2), offer("c", agent="research")])
    (theirs,) = (one.call for one in q.workers.take("owners", 1, 0))

    taken, second = work.take("w1", 5, 0)

    assert taken == offer("a", agent="research", version=2)
    assert work.events("w1", taken.call, 0) == q.log.stream("session:a", to=2)
    assert work.events("w1", taken.call, 1) == q.log.stream("session:a", after=1, to=2)
    assert work.take("w1", 5, 0) == []
    assert work.renew("w1", [taken.call, theirs]) == [theirs]
    assert work.answer("w1", taken.call, b"1")
    # Nor under another worker's name, or for another agent.
    for forbidden in (
        lambda: work.events("w1", theirs, 0),
        lambda: work.events("owners", theirs, 0),
        lambda: work.take("owners", 1, 0),
        lambda: work.announce(worker("owners", "research")),
        lambda: work.announce(worker("w1", "research", "main")),
        lambda: work.announce(worker("w1", "research", telegram="")),
    ):
        with pytest.raises(WorkRefused):
            forbidden()
    assert not work.answer("owners", theirs, b"stolen")
    assert work.renew("owners", [theirs]) == [theirs]
    work.leave("owners")
    assert [one.name for one in q.writer.workers()] == ["owners", "w1"]
    assert q.writer.lapsed() == []
    with psycopg.connect(
        address_of(q.url.replace("postgres@", f"{role}@")).conninfo, autocommit=True
    ) as connection:
        schema = address_of(q.url).schema
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchall()
        assert ("stored_events",) in tables
        for (table,) in tables:
            for statement in (f"TABLE {schema}.{table}", f"TRUNCATE {schema}.{table}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())
        for function in (
            "offer_calls",
            "withdraw_calls",
            "drop_calls",
            "extend_calls",
            "set_up_work",
            "append_events",
        ):
            given = connection.execute(
                "SELECT pronargs FROM pg_proc WHERE proname = %s", (function,)
            ).fetchone()
            assert given is not None
            nothing = ", ".join(["NULL"] * given[0])
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT {schema}.{function}({nothing})".encode())
    # Locked out, with what it has.
    changed_behind(q.url, "DELETE FROM worker_roles")
    q.writer.offer([offer("d", agent="research")])
    for locked_out in (
        lambda: work.announce(worker("w1", "research")),
        lambda: work.take("w1", 1, 0),
        lambda: work.events("w1", second.call, 0),
        lambda: work.renew("w1", [second.call]),
        lambda: work.answer("w1", second.call, b"2"),
        lambda: work.leave("w1"),
    ):
        with pytest.raises(WorkRefused, match=r"may take no calls: .* worker_roles"):
            locked_out()


def test_role_without_rights_is_told_which_script_gives_them(q: Queue, role: str, work: TakesWork) -> None:
    schema = address_of(q.url).schema
    changed_behind(q.url, f"REVOKE EXECUTE ON FUNCTION take_calls FROM {role}")
    work.announce(worker("w1", "research"))
    with pytest.raises(StoreUnavailable, match=r"denied for function take_calls.*postgresql-worker\.sql"):
        work.take("w1", 1, 0)
    changed_behind(q.url, f"REVOKE USAGE ON SCHEMA {schema} FROM {role}")
    with pytest.raises(StoreUnavailable, match=r"may not look for it.*postgresql-worker\.sql"):
        work.announce(worker("w1", "research"))


@pytest.mark.clause("WORK-3")
def test_worker_is_told_where_the_writers_gateway_is(q: Queue, work: TakesWork) -> None:
    assert work.gateway() is None
    q.log.announce_gateway("http://10.0.0.5:18789")
    assert work.gateway() == q.workers.gateway() == "http://10.0.0.5:18789"
    q.writer.alive_s = 40
    q.writer.wait(0)
    work.announce(worker("w1", "research"))
    assert work.alive_s == 40
    q.writer.alive_s = 50
    q.writer.wait(0)
    work.renew("w1", [])
    assert work.alive_s == 50


@pytest.mark.clause("WORK-2")
def test_worker_proves_what_it_reads_and_what_was_erased(q: Queue) -> None:
    record(q.log, "session:a")
    row = (2, left_of(q.log.stream("session:a")[1]) or "")
    erased = Erased(stream="session:a", rows=(row,), by="operator")
    q.log.append_now([anywhere(erased_stream("session:a"), Draft(event=erased, id="e", time=9))])
    q.workers.announce(worker())
    q.writer.offer([offer("a", version=3)])
    (call,) = (one.call for one in q.workers.take("w1", 1, 0))

    assert q.workers.events("w1", call, 0) == q.log.stream("session:a")


@pytest.mark.clause("WORK-1")
def test_each_call_is_taken_once_by_one_of_four_processes(q: Queue) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "support.processes.worker_child", q.url, f"w{number}"],
            cwd=TESTS,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    calls = [offer(str(number)) for number in range(500)]
    for at in range(0, 500, 20):
        q.writer.offer(calls[at : at + 20])

    answered: Counter[CallId] = Counter()
    while len(answered) < 500 and q.writer.wait(60):
        answers = q.writer.answers()
        answered.update(one.call for one in answers)
        assert {one.worker for one in answers} <= {one.content.decode() for one in answers}
        q.writer.drop([one.call for one in answers])
    for child in children:
        child.terminate()
        with child:
            child.wait(60)

    assert answered == Counter(one.call for one in calls)
    assert q.writer.standing() == []


def test_file_has_no_calls_for_other_processes(tmp_path: Path) -> None:
    with pytest.raises(NoSuchStore, match="through the gateway"):
        work_at(f"sqlite:///{tmp_path / 'log.db'}")


def test_queue_that_nobody_has_made_is_said_to_be_the_owners_to_make(q: Queue) -> None:
    changed_behind(q.url, "DROP TABLE agent_calls")

    with pytest.raises(StoreUnavailable, match="the log's owner makes that"):
        q.writer.offer([offer("a")])


def test_queue_of_an_older_log_is_made_as_its_owner_opens_it(q: Queue) -> None:
    for table in ("agent_calls", "workers", "worker_roles", "work_settings"):
        changed_behind(q.url, f"DROP TABLE {table}")
    changed_behind(q.url, "COMMENT ON FUNCTION append_events IS 'older'")
    assert (q.writer.standing(), q.writer.workers(), q.writer.answers(), q.writer.lapsed()) == (
        [],
        [],
        [],
        [],
    )

    q.again()
    q.writer.offer([offer("a")])

    assert [one.id for one in q.writer.standing()] == ["run-a"]


def test_queue_is_looked_at_where_no_notification_comes(postgres_url: str) -> None:
    with queue(f"{postgres_url}&wake=poll") as q:
        q.workers.announce(worker())
        taken: list[str] = []
        waiting = threading.Thread(target=lambda: taken.extend(one.id for one in q.workers.take("w1", 1, 60)))
        waiting.start()
        q.writer.offer([offer("a")])
        waiting.join(60)
        assert taken == ["run-a"]
        q.writer.wait(0)
        q.workers.answer("w1", offer("a").call, b"1")
        assert q.writer.wait(60)


@pytest.mark.clause("WORK-2")
def test_worker_proves_what_a_fork_has_of_its_source(postgres_url: str, tmp_path: Path) -> None:
    migrate(str(fork_of(source_log(tmp_path / "log.db"))), postgres_url)
    with queue(postgres_url) as q:
        q.workers.announce(worker())
        end = len(q.log.stream(A))
        q.writer.offer([msgspec.structs.replace(offer("a", version=end), stream=A)])
        (call,) = (one.call for one in q.workers.take("w1", 1, 0))

        assert q.log.forked is not None
        assert q.workers.events("w1", call, 0) == q.log.stream(A)
