"""The log on PostgreSQL: who may write, what happens when connections or the server are lost, what is refused, what is shown."""

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

import intersession_events.stores.postgres
from intersession_events.basics.errors import (
    AppendConflict,
    NoSuchStore,
    NotALog,
    NotStorable,
    StoreLocked,
    StoreUnavailable,
    WriterSuperseded,
)
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql
from intersession_events.stores.opened import located
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.application import WriterApplication
from intersession_events.stores.postgres.cursor import OTHER_PLACE, PgCursor
from intersession_events.stores.postgres.dialect import translated
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.postgres.wire import byte_strings, number, numbers, texts, truth
from support.log_drafts import anywhere, said, to
from support.postgres.network import network
from support.postgres.pooler import pooler
from support.postgres.server import Server, told_to

A, B, C = (said(name) for name in "abc")


@pytest.fixture
def log(postgres_url: str) -> Iterator[PostgresLog]:
    with PostgresLog(postgres_url) as log:
        yield log


@pytest.mark.clause("D8")
def test_a_second_writer_is_refused_until_the_first_one_has_closed(postgres_url: str) -> None:
    """The smoke test of the everyday run: write, read, follow, close, go on."""
    heard: list[str] = []
    with PostgresLog(postgres_url) as log:
        log.announce_gateway("127.0.0.1:18789")
        with pytest.raises(StoreLocked, match=r"pid \d+ on .*, gateway 127\.0\.0\.1:18789"):
            PostgresLog(postgres_url)
        with PostgresLog(postgres_url, read_only=True) as reader:
            reader.on_committed(lambda events: heard.extend(event.id for event in events))
            log.append_now([to("s", 0, A), to("t", 0, B)])
            with pytest.raises(AppendConflict):
                log.append_now([to("s", 0, C)])
            assert reader.wait_for(2, timeout=20)
            assert [event.id for event in reader.all()] == ["id-a", "id-b"]
    with PostgresLog(postgres_url) as log:
        assert (log.epoch, log.append_now([to("s", 1, C)]).position) == (2, 3)
    assert heard == ["id-a", "id-b"]


@pytest.mark.postgres
@pytest.mark.clause("PG3")
def test_a_writer_that_was_given_up_writes_nothing_when_it_wakes(log: PostgresLog, postgres_url: str) -> None:
    log.append_now([to("s", 0, A)])
    # As of another epoch it is not renewed, however long this takes.
    told_to(
        postgres_url, "UPDATE log_writer SET epoch = 0, alive_until = clock_timestamp() - interval '1 second'"
    )

    with PostgresLog(postgres_url) as later:
        later.append_now([to("s", 1, B)])
        for batch in ([to("s", 1, C)], [to("elsewhere", 0, C)]):
            with pytest.raises(WriterSuperseded, match="epoch 2, this writer's was 1"):
                log.append_now(batch)
        assert [(event.id, event.epoch) for event in later.all()] == [("id-a", 1), ("id-b", 2)]


@pytest.mark.postgres
def test_a_writer_of_this_machine_that_has_died_is_taken_over_at_once(postgres_url: str) -> None:
    with PostgresLog(postgres_url):
        # Longer than a process number can be.
        told_to(
            postgres_url, "UPDATE log_writer SET holder = '999999999' || substr(holder, strpos(holder, ' '))"
        )
        with PostgresLog(postgres_url) as log:
            assert log.epoch == 2


def test_a_writer_in_another_container_of_this_machine_is_not_taken_to_have_died(postgres_url: str) -> None:
    """Its process id says nothing here: it was taken over at once, and wrote nothing any more."""
    with PostgresLog(postgres_url) as first:
        with psycopg.connect(address_of(postgres_url).conninfo, autocommit=True) as connection:
            connection.execute(f"SET search_path TO {address_of(postgres_url).schema}".encode())
            ((holder,),) = connection.execute("SELECT holder FROM log_writer").fetchall()
            assert holder.endswith(f"/{Path('/proc/self/ns/pid').readlink()}")
            its_own = f"{2**22 + 1} {holder.partition(' ')[2].partition('/')[0]}/pid:[1]"
            connection.execute("UPDATE log_writer SET holder = %s", (its_own,))
        assert isinstance(first.application, WriterApplication)
        first.application.commits.holder = its_own  # as it had written it there
        with pytest.raises(StoreLocked):
            PostgresLog(postgres_url)
        assert first.append_now([to("s", 0, said("a"))]).position == 1


@pytest.mark.postgres
@pytest.mark.clause("O5", "PG2")
@pytest.mark.parametrize("moment", ["before the commit", "in it", "after it"])
def test_a_commit_whose_answer_was_lost_is_read_back(
    log: PostgresLog, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    log.append_now([to("s", 0, A)])
    commit = PgCursor.commit

    def cut(self: PgCursor) -> None:
        monkeypatch.undo()
        if moment == "after it":
            commit(self)
        self.in_doubt = moment != "before the commit"
        self._connection.close()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(PgCursor, "commit", cut)
    if moment == "in it":
        with pytest.raises(StoreUnavailable):
            log.append_now([to("s", 1, B)])
        assert log.head() == 1
        assert not log.append_now([to("s", 1, B)]).again
    else:
        # Before the commit nothing of it can be there: it was begun again.
        assert log.append_now([to("s", 1, B)]).position == 2

    assert log.append_now([to("s", 1, B)]).again
    assert [event.position for event in log.all()] == [1, 2]


@pytest.mark.postgres
@pytest.mark.clause("J4")
@pytest.mark.parametrize("wake", ["notify", "poll"])
def test_no_follower_misses_an_event_of_sixteen_threads(postgres_url: str, wake: str) -> None:
    url = f"{postgres_url}&wake={wake}"
    each, threads = 20, 16
    with PostgresLog(url) as log, PostgresLog(url, read_only=True) as reader:
        heard: list[int] = []

        def listener(events: Sequence[Recorded]) -> None:
            heard.extend(event.position for event in events)

        reader.on_committed(listener)

        def write(number: int) -> None:
            for version in range(each):
                log.append_now([to(f"s{number}", version, said(f"{number}-{version}"))])

        workers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert reader.wait_for(each * threads, timeout=20)
        stop = threading.Event()
        while len(heard) < each * threads and not stop.wait(0.01):
            pass
    assert heard == list(range(1, each * threads + 1))


@pytest.mark.postgres
def test_a_password_is_in_no_message(
    postgres: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    caplog.set_level(logging.DEBUG)
    host = postgres.directory
    for url in (
        f"postgresql://somebody:s3cr%40t@/postgres?host={host}",
        f"postgresql://postgres:s3cr%40t@/nowhere?host={host}",
        "postgresql://postgres:s3cr%40t@127.0.0.1:1/postgres?connect_timeout=1",
        f"postgresql://postgres@/postgres?host={host}&password=s3cr%40t&no_such_setting=s3cr%40t",
        f"postgresql://postgres:s3cr%40t@/postgres?host={host}&schema=No%20Name",
        "postgresql://postgres:s3cr%40t@[bad:1/postgres",
    ):
        with pytest.raises((NoSuchStore, StoreUnavailable)) as refused:
            PostgresLog(url)
        error: BaseException | None = refused.value
        while error is not None:
            assert "s3cr" not in f"{error!r} {error}"
            error = error.__cause__ or error.__context__
    with PostgresLog(f"postgresql://postgres:s3cr%40t@/postgres?host={host}&schema=secret") as log:
        assert "s3cr" not in log.path
    assert "s3cr" not in caplog.text


@pytest.mark.postgres
def test_a_server_that_is_none_for_a_log_is_refused_by_name(postgres: Server) -> None:
    """CockroachDB's advisory locks lock nothing, and it has no LISTEN. Another server says another `version()`."""
    told_to(
        postgres.url,
        "CREATE SCHEMA cockroach; CREATE FUNCTION cockroach.version() RETURNS text LANGUAGE sql "
        "AS $$ SELECT 'CockroachDB CCL v24.1.0 (x86_64)' $$",
    )
    with pytest.raises(NoSuchStore, match="it is CockroachDB"):
        PostgresLog(f"{postgres.url}&options=-csearch_path%3Dcockroach,pg_catalog")


@pytest.mark.postgres
def test_a_server_that_nobody_has_tried_is_named_once(
    postgres: Server, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 13: a log is looked at some times until it is open, and read by many connections."""
    told_to(
        postgres.url,
        "CREATE SCHEMA untried; CREATE FUNCTION untried.version() RETURNS text LANGUAGE sql "
        "AS $$ SELECT 'OtherDB 2.20 on x86_64' $$",
    )
    url = f"{postgres_url}&options=-csearch_path%3Duntried,pg_catalog"
    for _ in range(2):
        PostgresLog(url).close()
        PostgresLog(url, read_only=True).close()
    told = [record.getMessage() for record in caplog.records if "nobody has tried" in record.getMessage()]
    assert len(told) == 1
    assert "is OtherDB 2.20: " in told[0]


@pytest.mark.postgres
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_can_not_hold_every_text_is_refused(postgres: Server, encoding: str) -> None:
    name = f"of_{encoding.lower()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0".encode())
    for read_only in (False, True):
        with pytest.raises(NoSuchStore, match=f"keeps texts as {encoding}, a log needs UTF8"):
            PostgresLog(postgres.url.replace("/postgres?", f"/{name}?"), read_only=read_only)


@pytest.mark.postgres
def test_a_pooler_that_lends_its_connections_for_a_transaction_is_refused(
    postgres: Server, postgres_url: str
) -> None:
    """What the log sets for its connection would be another's, and another's its own."""
    schema = address_of(postgres_url).schema
    for read_only in (False, True):
        with pooler(postgres.directory, "transaction") as between:
            with pytest.raises(NoSuchStore, match="pool_mode"):
                PostgresLog(between.url(schema), read_only=read_only)
            with psycopg.connect(address_of(between.url(schema)).conninfo) as connection:
                found = connection.execute("SHOW search_path").fetchone()
                assert found == ('"$user", public',)  # nothing was left behind
    with pooler(postgres.directory, "session") as between, PostgresLog(between.url(schema)) as log:
        log.append_now([to("s", 0, A)])
        assert [event.id for event in log.all()] == ["id-a"]


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ("CREATE TABLE stored_events (mine int)", "stored_events"),
        ("CREATE TABLE log_identity (mine int)", "log_identity"),
        ("CREATE TABLE flows (mine int)", "flows"),  # which a view of ours would drop, to make its own
        ("CREATE TABLE orders (mine int)", "orders"),
        ("CREATE VIEW clock AS SELECT 1 AS mine", "clock"),
        ("CREATE FUNCTION touched() RETURNS int LANGUAGE sql AS 'SELECT 1'", "touched"),
    ],
)
@pytest.mark.postgres
def test_what_others_keep_in_a_schema_is_left_as_it_is(
    postgres: Server, postgres_url: str, made: str, name: str
) -> None:
    """Issue 13: a schema has one log, and nobody else's tables are dropped for it."""
    schema = address_of(postgres_url).schema
    told_to(postgres.url, f"CREATE SCHEMA {schema}")
    told_to(postgres_url, made)

    for read_only in (False, True):
        with pytest.raises(NotALog, match=rf"other tables or functions \({name}\)"):
            PostgresLog(postgres_url, read_only=read_only)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        left = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) UNION ALL "
            "SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace(%s)",
            (schema, schema),
        ).fetchall()
    assert left == [(name,)]


@pytest.mark.postgres
def test_a_role_that_may_not_look_into_the_schema_is_told_so(postgres: Server, postgres_url: str) -> None:
    """Issue 13: else it hears that a whole log was something else, or is not there."""
    schema = address_of(postgres_url).schema
    PostgresLog(postgres_url).close()
    role = f"stranger_{schema}"
    told_to(postgres.url, f"CREATE ROLE {role} LOGIN")
    url = postgres_url.replace("//postgres@", f"//{role}@")
    for what in (f"schema {schema}", "table"):
        for read_only in (False, True):
            with pytest.raises(StoreUnavailable, match=rf"lacks a right \(permission denied for {what}"):
                PostgresLog(url, read_only=read_only)
        told_to(postgres.url, f"GRANT USAGE ON SCHEMA {schema} TO {role}")


@pytest.mark.postgres
def test_what_is_not_there_can_not_be_read_and_is_not_made(postgres_url: str) -> None:
    for _ in range(2):
        with pytest.raises(NoSuchStore, match="no log"):
            PostgresLog(postgres_url, read_only=True)


@pytest.mark.postgres
def test_a_name_that_postgresql_can_not_hold_fails_its_own_append_alone(log: PostgresLog) -> None:
    with pytest.raises(NotStorable, match="NUL"):
        log.append_now([to("s\0", 0, A)])
    assert log.append_now([to("s", 0, said("nul", "a\0b"))]).position == 1
    assert next(iter(log.all())).event == said("nul", "a\0b").event


def test_no_statement_subtracts_times() -> None:
    """Issue 13: the lease of a new log ends at -infinity, from which PostgreSQL before version 17 subtracts nothing."""
    room = Path(intersession_events.stores.postgres.__file__).parent
    subtracted = [
        path.name for path in room.glob("*.py") if re.search(r"(?<!-)- *clock_timestamp", path.read_text())
    ]
    assert subtracted == []


@pytest.mark.parametrize(
    ("portable", "own"),
    [
        (
            "SELECT rowid FROM t WHERE a=? AND b LIKE 'x?%'",
            "SELECT notification_id FROM t WHERE a=%s AND b LIKE 'x?%%'",
        ),
        (
            "SELECT 5 % 2, 'it''s ?' WHERE substr(state, 1, 1) = X'01'",
            "SELECT 5 %% 2, 'it''s ?' WHERE part_of(state, 1, 1) = '\\x01'::bytea",
        ),
        ("SELECT narrowid, rowid_of FROM t", "SELECT narrowid, rowid_of FROM t"),
    ],
)
def test_portable_sql_becomes_that_of_postgresql(portable: str, own: str) -> None:
    assert translated(portable).statement.decode() == own


@pytest.mark.parametrize(
    ("url", "shown", "schema"),
    [
        (
            "postgresql://u:p@h:5433/d?sslmode=require",
            "postgresql://u@h:5433/d?schema=intersession",
            "intersession",
        ),
        (
            "postgresql://u@a,b/d?schema=x&target_session_attrs=read-write",
            "postgresql://u@a,b/d?schema=x",
            "x",
        ),
        (
            "postgresql://u:p@h/d?files=/srv/my files&wake=poll",
            "postgresql://u@h/d?schema=intersession&files=/srv/my+files",
            "intersession",
        ),
        (
            "postgres:///d?host=/run/pg&password=p",
            "postgresql:///d?host=/run/pg&schema=intersession",
            "intersession",
        ),
    ],
)
def test_an_address_is_shown_without_what_is_secret(url: str, shown: str, schema: str) -> None:
    address = address_of(url)
    assert (address.shown, address.schema) == (shown, schema)
    assert address_of(shown).place == address.place, "a command that is copied finds the same files"


SECRET = "s3cr3t-pw"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        # A password with characters that end it: nobody knows where it ends, so nothing is shown.
        (f"postgresql://u:a@{SECRET}@127.0.0.1:1/d", "%40"),
        (f"postgresql://u:a/{SECRET}@127.0.0.1:1/d", "%2F"),
        (f"postgresql://u:{SECRET}/b@127.0.0.1:1/d", "%2F"),
        (f"postgresql://u:a?{SECRET}@127.0.0.1:1/d", "%3F"),
        (f"postgresql://u:{SECRET}?b=c@127.0.0.1:1/d", "%3F"),
        (f"postgresql://u:a#{SECRET}@127.0.0.1:1/d", "%23"),
        (f"postgresql://u:12#{SECRET}@127.0.0.1:1/d", "%23"),
        (f"postgresql://u:a[{SECRET}@127.0.0.1:1/d", "this is no URL"),
        (f"postgresql://u:{SECRET}@127.0.0.1:{SECRET}/d", "%3A"),
        (f"postgresql:/u:{SECRET}@127.0.0.1:1/d", "// is missing"),
        (f"postgresql:u:{SECRET}@127.0.0.1:1/d", "// is missing"),
        (f"postgresql://u:{SECRET}\udce9@127.0.0.1:1/d", "valid Unicode"),
        (f"postgresql+psycopg://u:a/{SECRET}@127.0.0.1:1/d", "or postgresql://user"),
        (f"mysql://u:{SECRET}\udce9@h/d", "valid Unicode"),
        (f"host=127.0.0.1 user=u password={SECRET}", "settings of libpq"),
        (f"postgresql://u:{SECRET}@h/d?schema=a&schema=b", "schema twice"),
        (f"postgresql://u:{SECRET}@h/d?schema=pg_mine", "the server's own"),
        (f"postgresql://u:{SECRET}@h/d?schema=public", "is everybody's"),
        (f"postgresql://u:{SECRET}@h/d?schema=information_schema", "the server's own"),
        (f"postgresql://u:{SECRET}@h/d?files={__file__}", "is no folder"),
        (f"postgresql://u:{SECRET}@h/d?schema", "this is no URL"),
    ],
)
def test_a_url_that_may_be_read_in_two_ways_is_refused_and_not_shown(url: str, says: str) -> None:
    with pytest.raises(NoSuchStore, match=re.escape(says)) as refused:
        located(url)
    assert SECRET not in f"{refused.value}{refused.value!r}{refused.value.__cause__}"
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.postgres
def test_a_server_that_is_too_old_is_refused_by_its_version(postgres: Server, postgres_url: str) -> None:
    with psycopg.connect(address_of(postgres_url).conninfo) as connection:
        version = connection.info.parameter_status("server_version")
    assert version is not None
    old = "13.22".ljust(len(version))[: len(version)]
    with network(postgres.directory) as between:
        between.instead = (f"server_version\0{version}".encode(), f"server_version\0{old}".encode())
        with pytest.raises(NoSuchStore, match="a log needs PostgreSQL 14 or later"):
            PostgresLog(between.url(address_of(postgres_url).schema))


@pytest.mark.postgres
def test_whose_role_lacks_a_right_is_told_which_and_where_to_look(postgres_url: str) -> None:
    told_to(postgres_url, "CREATE ROLE lacking LOGIN")
    try:
        with pytest.raises(
            StoreUnavailable, match=r"lacks a right \(permission denied .*postgresql-roles\.sql"
        ):
            PostgresLog(postgres_url.replace("postgres@", f"lacking:{SECRET}@")).close()
    finally:
        told_to(postgres_url, "DROP ROLE lacking")


def test_the_tests_keep_no_files_of_logs_in_the_home_of_who_runs_them() -> None:
    assert not located("postgresql:///").place.startswith(str(Path.home() / ".local"))


@pytest.mark.parametrize("setting", ["dbname", "port", "hostaddr", "user", "service"])
def test_logs_that_differ_in_a_setting_of_libpq_have_folders_of_their_own(setting: str) -> None:
    one, other = (located(f"postgresql:///?host=/run/pg&{setting}={value}") for value in (1, 2))
    assert one.place != other.place
    assert one.shown != other.shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://{}@h/d?schema=x",
        "postgresql:///d?user={}&host=h",
        "postgresql://{}@h?dbname=d",
        "postgresql://h?service=bots&user={}",
    ],
)
def test_the_roles_of_a_log_find_the_same_files(url: str) -> None:
    """Forks that its owner had moved along were none for its writer and its readers."""
    owner, reader = (located(url.format(role)) for role in ("owner", "reader:p"))
    assert owner.place == reader.place


def test_roles_whose_databases_are_called_like_them_have_folders_of_their_own() -> None:
    one, other = (located(f"postgresql://{role}@h/?schema=x") for role in ("ann", "bob"))
    assert one.place != other.place


def test_the_scheme_of_a_url_may_be_written_in_any_case() -> None:
    assert located("POSTGRES://u@h/d").shown == located("postgresql://u@h/d").shown


@pytest.mark.parametrize("query", ["schema=Pg%20Catalog", "schema=", "wake=never"])
def test_settings_of_ours_that_say_nothing_are_refused(query: str) -> None:
    with pytest.raises(NoSuchStore):
        address_of(f"postgresql://u@h/d?{query}")


@pytest.mark.postgres
def test_snapshots_ride_on_commits_and_are_dropped(log: PostgresLog) -> None:
    folding: Any = _Counting()
    log.append_now([to("s", 0, *(said(f"{n}") for n in range(300)))])

    assert log.states.fold("s", folding).state == 300  # keeps one on the way
    log.append_now([to("s", 300, said("last"))])
    assert log.states.versions("s", "counted.1") == [250]
    assert log.states.fold("s", folding).kept == 250
    assert log.states.drop() == 1
    assert log.states.streams() == []


class _Counting:
    topic = "counted.1"

    def begin(self) -> int:
        return 0

    def apply(self, state: int, events: Sequence[Recorded]) -> int:
        return state + len(events)

    def encode(self, state: int) -> bytes:
        return str(state).encode()

    def decode(self, data: bytes, version: int) -> int:
        assert version
        return int(data)


class _OncePerStream:
    """A view that takes one event of each stream: what comes second is refused by an index, and nobody waits to hear it."""

    name = "once"
    shape = 1

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS once (stream TEXT PRIMARY KEY, position INTEGER NOT NULL)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS once")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for event in events:
            sql.execute("INSERT INTO once VALUES (?, ?)", (event.stream, event.position))


@pytest.mark.postgres
@pytest.mark.clause("J3")
def test_what_a_view_can_not_write_is_set_aside_though_nobody_waits_for_its_statements(
    postgres_url: str,
) -> None:
    with PostgresLog(postgres_url, inline=[_OncePerStream()]) as log:
        for number in range(3):
            log.append_now([to("s", number, said(f"{number}")), anywhere(f"t{number}", said(f"t{number}"))])
        assert [event.position for event in log.all()] == [1, 2, 3, 4, 5, 6]
        assert log.query("SELECT stream FROM once ORDER BY position") == [("s",), ("t0",), ("t1",), ("t2",)]
        assert [(one.view, one.position) for one in log.set_aside()] == [("once", 3), ("once", 5)]


@pytest.mark.clause("PG1")
@pytest.mark.parametrize(
    ("versions", "refused"),
    [
        ([("new", 1), ("new", 2), ("s", 2)], None),
        ([("s", 3)], OTHER_PLACE),
        ([("new", 2)], OTHER_PLACE),
        ([("new", 1), ("new", 3)], OTHER_PLACE),
        ([("s", 2), ("new", 1), ("other", 2)], OTHER_PLACE),
        ([("s", 1)], "23505"),
    ],
)
def test_the_server_takes_no_version_that_is_there_or_leaves_one_out(
    log: PostgresLog, versions: list[tuple[str, int]], refused: str | None
) -> None:
    log.append_now([anywhere("s", said("one"))])
    head = log.head()
    store = log.application.datastore
    ((turn,),) = log.application.reading.rows("SELECT turn FROM log_head")

    def append() -> None:
        with store.writing(log.epoch) as cursor:
            cursor.append(
                (
                    number(log.epoch),
                    number(turn),
                    number(head + 1),
                    texts(stream for stream, _ in versions),
                    numbers(version for _, version in versions),
                    texts("t" for _ in versions),
                    byte_strings([b"x" for _ in versions]),
                    truth(True),
                )
            )

    if refused is None:
        append()
    else:
        with pytest.raises(psycopg.Error) as caught:
            append()
        assert caught.value.sqlstate == refused

    assert log.application.reading.positions_given() == head + (0 if refused else len(versions))


def test_appends_are_planned_once_and_what_views_are_asked_each_time(log: PostgresLog) -> None:
    settings = "SELECT current_setting('plan_cache_mode'), current_setting('enable_seqscan')"
    store = log.application.datastore

    with store.writing(log.epoch) as cursor:
        (of_appends,) = cursor._connection.execute(settings).fetchall()
        cursor.execute(settings)
        in_a_transaction = cursor.fetchall()
    with store.writing(None) as cursor:
        ((unchecked,),) = cursor.together([(settings, ())])
        with cursor.without_answers():
            assert cursor.later(settings)() == [unchecked]

    assert [*of_appends] == ["force_generic_plan", "off"]
    assert in_a_transaction == [("force_custom_plan", "on")]
    assert unchecked == ("force_custom_plan", "on")


def test_no_statement_is_compiled_whatever_the_server_would_have(postgres_url: str) -> None:
    """On PostgreSQL 15 with LLVM an append took 58 ms of the server's processor, 0.5 without (its plan reads a table of one row)."""
    compiles = f"{postgres_url}&options=-c%20jit%3Don%20-c%20jit_above_cost%3D0"
    asked = "SELECT current_setting('jit')"
    with PostgresLog(compiles) as log:
        with log.application.datastore.writing(log.epoch) as cursor:
            (of_appends,) = cursor._connection.execute(asked).fetchall()
            cursor.execute(asked)
            in_a_transaction = cursor.fetchall()
        assert [*of_appends] == ["off"]
        assert in_a_transaction == log.query(asked) == [("off",)]
    with PostgresLog(compiles, read_only=True) as log:
        assert log.query(asked) == [("off",)]


def test_a_connection_stays_at_hand_for_a_while_and_none_is_lost(
    log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = log.application.datastore

    def lent() -> int:
        with store.writing(log.epoch) as cursor:
            return cursor._connection.info.backend_pid

    first = lent()
    assert lent() == first
    with store.writing(None), store.writing(None):
        assert lent() != first  # it is somebody's
    monkeypatch.setattr("intersession_events.stores.postgres.connections.KEPT_S", -1.0)
    for _ in range(3 * 6):
        lent()
    store.check()
    log.append_now([anywhere("s", said("one"))])
