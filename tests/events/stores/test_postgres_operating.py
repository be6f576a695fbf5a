"""What an operator does with a log on PostgreSQL: backups by `pg_dump`, roles with the least rights, and messages without secrets."""

import re
import shutil
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intersession_events.basics.errors import (
    BackupFailed,
    IntersessionError,
    MigrationFailed,
    NoSuchStore,
    StoreUnavailable,
)
from intersession_events.copies.migrating import migrate
from intersession_events.facts import Erased
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import Draft
from intersession_events.stores.backup import back_up
from intersession_events.stores.hosts.announcing import this_host
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.postgres.upkeep import dumping
from intersession_events.stores.tailing import inside
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.places import kept
from intersession_events.stores.tailing.tail import Tail
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.usage import UsageView
from support.any_log import changed_behind
from support.forked import A, source_log
from support.log_drafts import anywhere, said, to
from support.paths import DOCS
from support.postgres.network import network
from support.postgres.roles import give_rights, schema_of
from support.postgres.server import Server
from support.work_queue import offer, worker

pytestmark = pytest.mark.postgres


@pytest.fixture
def programs(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have PostgreSQL's own programs on the PATH."""
    monkeypatch.setenv("PATH", str(postgres.binaries), prepend=":")


@pytest.mark.usefixtures("programs")
@pytest.mark.clause("D10")
def test_a_dump_under_load_is_verified_and_restores_to_the_same_log(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    migrate(str(source_log(tmp_path / "log.db")), postgres_url)
    dump = tmp_path / "log.dump"
    with PostgresLog(postgres_url) as log:
        log.append_now([anywhere("odd\t\\ \n\r\x0b: ü", said("x", "tab\t back\\slash \n"))])
        before = list(log.rows(limit=1000))
        report = back_up(log, dump, verifying=lambda _done, _of: None)
        log.append_now([anywhere(A, said("later"))])
        with pytest.raises(BackupFailed, match="already"):
            back_up(log, dump)
    assert (report.ok, report.events, report.head.position) == (True, len(before), before[-1][0])
    assert [path.name for path in tmp_path.iterdir() if "dump" in path.name] == ["log.dump"]

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema_of(postgres_url)} CASCADE".encode())
    shutil.copy(dump, postgres.directory / "log.dump")
    (postgres.directory / "log.dump").chmod(0o644)
    postgres.run("pg_restore", "-h", str(postgres.directory), "-U", "postgres", "-d", "postgres", "log.dump")
    with psycopg.connect(address_of(postgres_url).conninfo, autocommit=True) as connection:
        # As it is a quarter of a minute after the dump: who wrote then may be taken to be gone.
        connection.execute(f"SET search_path TO {schema_of(postgres_url)}".encode())
        connection.execute("UPDATE log_writer SET alive_until = '-infinity'")
    with PostgresLog(postgres_url) as log:
        assert list(log.rows(limit=1000)) == before
        assert log.append_now([anywhere(A, said("on"))]).position == before[-1][0] + 1


@pytest.mark.usefixtures("programs")
@pytest.mark.clause("D10")
def test_no_dump_is_kept_of_a_log_that_was_changed(postgres_url: str, tmp_path: Path) -> None:
    with PostgresLog(postgres_url) as log:
        log.append_now([to("s", 0, said("a"), said("b"))])
        with psycopg.connect(address_of(postgres_url).conninfo, autocommit=True) as connection:
            connection.execute(f"SET search_path TO {schema_of(postgres_url)}".encode())
            connection.execute("UPDATE stored_events SET topic = 'run_failed.1' WHERE notification_id = 2")
        with pytest.raises(BackupFailed, match="changed"):
            back_up(log, tmp_path / "log.dump")
    assert list(tmp_path.iterdir()) == []


def test_without_the_programs_no_backup_is_made(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dumping, "_packaged", lambda: ())
    with PostgresLog(postgres_url) as log, pytest.raises(BackupFailed, match="pg_dump is not on the PATH"):
        back_up(log, tmp_path / "log.dump")
    assert list(tmp_path.iterdir()) == []


def test_programs_that_are_older_than_the_server_are_passed_over(
    postgres: Server, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pg_dump refuses a server that is newer than itself: what a distribution has first on the PATH often is older."""
    old, same = tmp_path / "old", tmp_path / "same"
    for folder in (old, same):  # a distribution has a wrapper beside its programs
        folder.mkdir()
        for name in ("pg_dump", "pg_restore"):
            (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) 13.2 (Debian 13.2-1)'\n")
            (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{old}:{same}")
    monkeypatch.setattr(dumping, "_packaged", lambda: ())
    with psycopg.connect(postgres.url) as connection:
        version = connection.info.server_version // 10_000
    with PostgresLog(postgres_url) as log:
        log.append_now([to("s", 0, said("a"))])
        with pytest.raises(
            BackupFailed, match=rf"pg_dump is of version 13: that is older .* install .* version {version} "
        ) as failed:
            back_up(log, tmp_path / "log.dump")
        assert str(failed.value).count("is of version 13") == 1, "each version is named once"
        monkeypatch.setattr(dumping, "_packaged", lambda: (postgres.binaries,))
        assert back_up(log, tmp_path / "packaged.dump").events == 1
        monkeypatch.setattr(dumping, "_packaged", lambda: ())
        monkeypatch.setenv("PATH", str(postgres.binaries), prepend=":")
        monkeypatch.setenv("PATH", str(old), prepend=":")
        assert back_up(log, tmp_path / "path.dump").events == 1


@pytest.mark.parametrize("named_by", ["the URL", "the environment"])
@pytest.mark.usefixtures("programs")
def test_a_log_that_a_service_names_is_backed_up_as_any_other(
    postgres: Server, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    """What pg_dump is told lies in a service file itself, and libpq takes no service that names another one."""
    services = tmp_path / "services.conf"
    services.write_text(f"[bots]\nhost={postgres.directory}\nuser=postgres\ndbname=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    if named_by == "the environment":
        monkeypatch.setenv("PGSERVICE", "bots")
    service = "service=bots&" if named_by == "the URL" else ""
    url = f"postgresql:///?{service}schema={schema_of(postgres_url)}&files={tmp_path}"
    with PostgresLog(url) as log:
        log.append_now([to("s", 0, said("a"))])
        assert back_up(log, tmp_path / "log.dump").events == 1
    # Programs of an earlier version refuse a service file with a setting that is newer than they are.
    told = dumping.programs_for(address_of(url)).settings
    assert {key: told[key] for key in ("host", "user", "dbname")} == {
        "host": str(postgres.directory),
        "user": "postgres",
        "dbname": "postgres",
    }
    assert "sslcertmode" not in told


def test_an_owner_who_may_make_no_schema_gives_the_rights_itself(
    postgres: Server, postgres_url: str, roles: dict[str, str]
) -> None:
    """The script made the schema if it was missing, and only who may make one may ask for that."""
    schema = schema_of(postgres_url)
    names = {role: f"{schema}_{role}" for role in roles}
    give_rights(postgres, schema, names, by=names["owner"])
    PostgresLog(roles["owner"]).close()
    give_rights(postgres, schema, names, by=names["owner"])
    with PostgresLog(roles["writer"]) as log:
        assert log.append_now([to("s", 0, said("a"))]).position == 1


def test_a_role_that_owns_no_view_is_told_so_when_it_builds_one_anew(
    postgres: Server, postgres_url: str, roles: dict[str, str]
) -> None:
    """`rebuild` ended with a traceback, as a fault of this software; so did a host of a version with another view."""
    schema = schema_of(postgres_url)
    PostgresLog(roles["owner"], inline=inline_views()).close()
    give_rights(postgres, schema, {role: f"{schema}_{role}" for role in roles})
    with (
        PostgresLog(roles["writer"], inline=inline_views()) as log,
        pytest.raises(StoreUnavailable, match=r"lacks a right .* only the owner makes"),
    ):
        log.rebuild("session_list")


@pytest.mark.clause("STBY-2")
def test_a_role_that_can_not_make_the_functions_of_its_version_takes_no_log_over(
    postgres: Server, postgres_url: str, roles: dict[str, str]
) -> None:
    """A standby that connects as the writer took over after an upgrade, and was refused only then: the log had no writer."""
    schema = schema_of(postgres_url)
    PostgresLog(roles["owner"]).close()
    give_rights(postgres, schema, {role: f"{schema}_{role}" for role in roles})
    changed_behind(roles["owner"], "COMMENT ON FUNCTION append_events IS 'as an earlier version made them'")

    with pytest.raises(StoreUnavailable, match=f"only their owner, {schema}_owner, can make those of this"):
        PostgresLog(roles["writer"])
    PostgresLog(roles["reader"], read_only=True).close()
    PostgresLog(roles["owner"]).close()
    with PostgresLog(roles["writer"]) as log:
        assert log.epoch == 3


def test_each_role_can_do_what_it_is_for_and_nothing_else(
    postgres: Server, postgres_url: str, roles: dict[str, str]
) -> None:
    schema = schema_of(postgres_url)
    for role in ("writer", "reader"):
        with pytest.raises((NoSuchStore, StoreUnavailable)):
            PostgresLog(roles[role])
    PostgresLog(roles["owner"]).close()
    give_rights(postgres, schema, {role: f"{schema}_{role}" for role in roles})

    with PostgresLog(roles["writer"]) as log, PostgresLog(roles["reader"], read_only=True) as reader:
        log.append_now([to("s", 0, said("a", "secret"), said("b"))])
        row = (1, left_of(log.stream("s")[0]) or "")
        erased = Erased(stream="s", rows=(row,), by="operator")
        log.append_now([anywhere(erased_stream("s"), Draft(event=erased, id="e", time=9))])
        assert reader.wait_for(3, timeout=20)
        assert "secret" not in repr(reader.stream("s"))
        content = log.files.write(b"a picture", since=0)
        log.files.keep([content])
        assert reader.files.read(content) == b"a picture"
        log.work.to_take.announce(worker())
        log.work.offer([offer("a")])
        assert [one.id for one in log.work.to_take.take("w1", 1, 0)] == ["run-a"]
        assert [(one.worker, one.secret) for one in reader.work.standing()] == [("w1", "")]
        assert [one.secret for one in log.work.standing()] == [offer("a").secret]
        reader.hosts.announce(this_host("door"))
        log.hosts.announce(this_host("standby"))
        assert sorted(host.kind for host in reader.hosts.alive()) == ["door", "standby"]
    with pytest.raises(StoreUnavailable, match="permission denied"):
        PostgresLog(roles["reader"])

    refused = {
        "writer": [
            "DELETE FROM stored_events",
            "UPDATE stored_events SET notification_id = 9",
            "UPDATE stored_events SET topic = 'x'",
            "TRUNCATE stored_events",
            "DROP TABLE stored_events",
            "UPDATE log_identity SET log_id = 'x'",
            "DELETE FROM log_identity",
            "DELETE FROM log_head",
            "INSERT INTO worker_roles VALUES ('x')",
            "CREATE TABLE mine (a int)",
            "CREATE OR REPLACE FUNCTION instr(whole bytea, part bytea) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        ],
        "reader": [
            "INSERT INTO log_topics VALUES ('x')",
            "UPDATE log_head SET position = 0",
            "DELETE FROM set_aside",
            "SELECT take_calls('w1', 1)",
            "SELECT secret FROM agent_calls",
            "SELECT * FROM agent_calls",
            "SELECT answer_call('w1', 'agent', 'run-a', 1, '')",
        ],
    }
    for role, statements in refused.items():
        with psycopg.connect(address_of(roles[role]).conninfo, autocommit=True) as connection:
            connection.execute(f"SET search_path TO {schema}".encode())
            for statement in statements:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())


def test_a_view_that_follows_the_log_lies_where_a_role_may_keep_or_read_it(
    postgres: Server, postgres_url: str, roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "_PATIENCE_S", 0.1)

    def opened_by(log: PostgresLog) -> tuple[bool, int]:
        """Return whether the view lies in the database, and how far it has come."""
        with closing(kept(UsageView(), log)) as view:
            return not isinstance(view, ViewFile), Tail(log, view).catch_up()

    with PostgresLog(roles["owner"]) as log:
        schema = schema_of(postgres_url)
        give_rights(postgres, schema, {role: f"{schema}_{role}" for role in roles})
        log.append_now([to("s", 0, said("a"))])
        with PostgresLog(roles["writer"], read_only=True) as writer:
            assert opened_by(writer) == (False, 1)  # it makes no table
        assert opened_by(log) == (True, 1)
    with PostgresLog(roles["writer"]) as log, PostgresLog(roles["reader"], read_only=True) as reader:
        assert opened_by(reader) == (True, 1)
        log.append_now([to("s", 1, said("b"))])
        assert opened_by(reader) == (False, 2)  # nobody keeps it
        assert opened_by(log) == opened_by(reader) == (True, 2)
        log.append_now([to("s", 2, said("c"))])
        # It is not waited for where it stands still, and not at all where nobody writes.
        monkeypatch.setattr(inside, "_PATIENCE_S", 3_600)
        assert opened_by(reader) == (False, 3)
    monkeypatch.setattr(inside, "_STILL_S", 3_600)
    with PostgresLog(roles["reader"], read_only=True) as reader:
        assert opened_by(reader) == (False, 3)


@pytest.mark.usefixtures("programs")
def test_what_the_page_shows_can_be_done(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "howto" / "postgresql.md").read_text(encoding="utf-8")
    blocks = [part.removeprefix("python\n") for part in page.split("```") if part.startswith("python\n")]
    assert len(blocks) == 2
    for block in blocks:
        shown = re.search(r"postgresql://\w+@db\.internal/bots\?schema=audit", block)
        assert shown is not None
        exec(block.replace(shown[0], postgres_url), {})  # noqa: S102 - the page's own code is what is tested
    assert "LogHead(log_id=" in capsys.readouterr().out
    assert (tmp_path / "audit.dump").exists()


def test_settings_of_tls_reach_the_server(postgres: Server, postgres_url: str) -> None:
    """The server of the tests speaks no TLS, as all do on a socket of the machine."""
    schema = schema_of(postgres_url)
    with network(postgres.directory) as between:
        PostgresLog(between.url(schema, sslmode="prefer")).close()
        for mode in ("require", "verify-full"):
            with pytest.raises(StoreUnavailable, match="SSL"):
                PostgresLog(between.url(schema, sslmode=mode))


SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="%&+?/#@:=\\'\"[]"), min_size=8
)


@given(secret=SECRETS, case=st.tuples(st.sampled_from(["user", "query", "sslpassword"]), st.integers(0, 5)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@pytest.mark.usefixtures("programs")
def test_no_error_holds_a_password(
    postgres: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, secret: str, case: tuple[str, int]
) -> None:
    host = postgres.directory
    given_as = {
        "user": ("", f":{secret}"),
        "query": (f"&password={secret}", ""),
        "sslpassword": (f"&sslpassword={secret}", ""),
    }
    how, what = case
    query, user = given_as[how]
    url = [
        f"postgresql://somebody{user}@/postgres?host={host}{query}",
        f"postgresql://postgres{user}@/nowhere?host={host}{query}",
        f"postgresql://postgres{user}@127.0.0.1:1/postgres?connect_timeout=1{query}",
        f"postgresql://postgres{user}@/postgres?host={host}&no_such_setting=1{query}",
        f"postgresql://postgres{user}@/postgres?host={host}&schema=No%20Name{query}",
        f"postgresql://postgres{user}@/postgres?host={host}&sslmode=verify-full&sslrootcert=/none{query}&port=1",
    ][what]
    caplog.clear()
    source = tmp_path / "log.db"
    if not source.exists():
        source_log(source)

    def backed_up() -> None:
        with PostgresLog(url, read_only=True) as log:
            back_up(log, tmp_path / "none" / "log.dump")

    for attempt in (
        lambda: PostgresLog(url),
        backed_up,
        lambda: migrate(url, "x.db"),
        lambda: migrate(str(source), url),
    ):
        with pytest.raises((IntersessionError, MigrationFailed)) as refused:
            attempt()
        error: BaseException | None = refused.value
        while error is not None:
            assert secret not in f"{error!r} {error}"
            error = error.__cause__ or error.__context__
    assert secret not in caplog.text


def test_an_error_is_told_without_our_statements_round_it(postgres_url: str) -> None:
    """A server whose disk is full said with which statement of which function."""
    address = address_of(postgres_url)
    with psycopg.connect(address.conninfo) as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute("DO $$ BEGIN RAISE EXCEPTION 'no space' USING HINT = 'Free some.'; END $$")

    assert "CONTEXT" in str(refused.value)
    assert address.said(refused.value) == "no space HINT: Free some."
