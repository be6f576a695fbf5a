"""A log is moved to another store and back: the same rows, whatever it holds, and whoever is killed meanwhile."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from intersession_events.basics.crash_points import arm
from intersession_events.basics.errors import (
    LogError,
    MigrationFailed,
    NoSuchStore,
    NotALog,
    StoreLocked,
    StoreUnavailable,
)
from intersession_events.copies import migrating
from intersession_events.copies.migrating import migrate
from intersession_events.facts import Erased, MessageRecorded
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import Draft
from intersession_events.log.verifying.verification import head as head_of
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import AnyLog, changed_behind
from support.forked import CUT, A, B, fork_of, say, source_log
from support.log_drafts import anywhere, said, to
from support.postgres.server import Server


class Stopped(BaseException):
    """A process that ends at a point, as far as it can be told from one that was killed."""


def stopped_at(name: str, passing: int = 1) -> Any:  # a way to stop that
    left = [passing]

    def hook(passed: str) -> None:
        if passed == name:
            left[0] -= 1
            if left[0] == 0:
                raise Stopped

    return arm(hook)


def opened(url: str, **options: Any) -> AnyLog:
    return PostgresLog(url, **options) if url.startswith("postgresql:") else SqliteLog(url, **options)


def rows_of(url: str) -> list[Any]:
    with opened(url, read_only=True) as log:
        return [
            log.log_id,
            log.positions_given(),
            log.query("SELECT format, created_ms FROM log_identity"),
            sorted(log.query("SELECT topic FROM log_topics")),
            list(log.rows(limit=100_000)),
            head_of(log),
        ]


def erase_first(source: str) -> int:
    """Erase what was said first in a log to `A`; return where that stands."""
    with SqliteLog(source) as log:
        first = log.stream(A)[0]
        erased = Erased(stream=A, rows=((1, left_of(first) or ""),), by="operator")
        log.append_now([anywhere(erased_stream(A), Draft(event=erased, id="erasure", time=9))])
    return first.position


@pytest.fixture
def source(tmp_path: Path) -> str:
    return str(source_log(tmp_path / "log.db"))


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a log can be moved to: the everyday run has files alone, which take the same way."""
    return str(tmp_path / "moved.db") if request.param == "file" else request.getfixturevalue("postgres_url")


@pytest.mark.postgres
def test_a_log_goes_to_postgresql_and_back_as_it_was(source: str, tmp_path: Path, postgres_url: str) -> None:
    back = str(tmp_path / "back.db")
    before = rows_of(source)

    there = migrate(source, postgres_url)
    assert rows_of(postgres_url) == before
    again = migrate(postgres_url, back)

    assert rows_of(back) == before
    assert there.head == again.head == before[-1]
    assert (there.events, there.resumed_at) == (len(before[-2]), 0)
    with SqliteLog(back, read_only=True) as log:
        report = verify_log(log)
        assert (report.counts, report.checkpoints.taken) == ({}, 2)


@pytest.mark.postgres
def test_a_log_goes_from_one_schema_to_another_if_it_is_as_it_was_written(
    source: str, postgres_url: str
) -> None:
    """Each row hashes, and none is missing from what is compared: that is told by chains, positions and checkpoints alone."""
    whole, changed, refused = (
        postgres_url.replace("&schema=", f"&schema={name}_") for name in ("whole", "changed", "refused")
    )
    migrate(source, postgres_url)
    migrate(postgres_url, whole)
    assert rows_of(whole) == rows_of(source)
    with PostgresLog(whole, read_only=True) as log:
        assert verify_log(log).checkpoints.taken == 2

    migrate(postgres_url, changed)
    with psycopg.connect(address_of(changed).conninfo, autocommit=True) as connection:
        connection.execute(
            f"DELETE FROM {address_of(changed).schema}.stored_events WHERE notification_id = 3".encode()  # noqa: S608 - its own
        )
    with pytest.raises(MigrationFailed, match="is not as it was written"):
        migrate(changed, refused)
    with pytest.raises(LogError):
        opened(refused, read_only=True)


def test_a_moved_log_goes_on_where_it_ended(source: str, target: str) -> None:
    with SqliteLog(source, read_only=True) as log:
        last, epoch = log.head(), log.query("SELECT epoch FROM log_identity")[0][0]
    migrate(source, target)

    with opened(target) as log:
        assert log.epoch > epoch + 1
        assert log.append_now([anywhere(A, said("more"))]).position == last + 1
        assert [event.position for event in log.all()] == list(range(1, last + 2))


def test_a_fork_is_moved_with_the_gaps_in_its_positions(source: str, target: str) -> None:
    fork = str(fork_of(Path(source)))
    with SqliteLog(fork) as log:
        say(log, A, "in the fork")
    positions = [row[0] for row in rows_of(fork)[-2]]
    assert positions != list(range(1, len(positions) + 1))

    migrate(fork, target)

    assert rows_of(target) == rows_of(fork)
    with opened(target) as log:
        assert log.forked is not None
        assert log.append_now([anywhere(B, said("on"))]).position == positions[-1] + 1
        assert len(log.stream(B)) > 1


def test_what_was_erased_stays_erased(source: str, target: str) -> None:
    erase_first(source)
    migrate(source, target)

    assert rows_of(target) == rows_of(source)
    with opened(target, read_only=True) as log:
        first = log.stream(A)[0].event
        assert isinstance(first, MessageRecorded)
        assert first.message.content != "one"


def test_a_log_without_an_event_can_be_moved(tmp_path: Path, target: str) -> None:
    source = str(tmp_path / "empty.db")
    SqliteLog(source).close()

    assert migrate(source, target).events == 0
    with opened(target) as log:
        assert log.append_now([to("s", 0, said("first"))]).position == 1


@pytest.mark.clause("M1", "M2", "M3")
@pytest.mark.parametrize("point", ["M1:1", "M1:3", "M2:1", "M3:1"])
def test_whoever_was_killed_while_moving_goes_on(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(migrating, "PAGE", 7)
    name, _, passing = point.partition(":")
    disarm = stopped_at(name, int(passing))
    with pytest.raises(Stopped):
        migrate(source, target)
    disarm()

    if name != "M3":
        with pytest.raises((NoSuchStore, NotALog)):
            opened(target, read_only=True)
    done = migrate(source, target)
    assert done.resumed_at == (7 * int(passing) if name == "M1" else done.head.position)
    assert rows_of(target) == rows_of(source)
    assert migrate(source, target) == done._replace(resumed_at=done.head.position)


def test_what_changed_in_the_source_between_two_attempts_is_moved_anew(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "PAGE", 7)
    disarm = stopped_at("M1", 3)
    with pytest.raises(Stopped):
        migrate(source, target)
    disarm()
    position = erase_first(source)

    assert migrate(source, target).resumed_at == position - 1
    assert rows_of(target) == rows_of(source)


def test_a_source_that_somebody_writes_to_is_refused(source: str, target: str) -> None:
    with SqliteLog(source), pytest.raises(StoreLocked):
        migrate(source, target)
    with pytest.raises(LogError):
        opened(target, read_only=True)


@pytest.mark.postgres
def test_a_source_on_postgresql_that_somebody_writes_to_is_refused(
    source: str, tmp_path: Path, postgres_url: str
) -> None:
    migrate(source, postgres_url)
    with PostgresLog(postgres_url), pytest.raises(StoreLocked):
        migrate(postgres_url, str(tmp_path / "back.db"))


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path, target: str) -> None:
    with pytest.raises(NoSuchStore):
        migrate(str(tmp_path / "none.db"), target)
    with pytest.raises(LogError):
        opened(target, read_only=True)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("none")]


def test_a_target_that_holds_something_else_is_refused(tmp_path: Path, source: str) -> None:
    other = str(tmp_path / "other.db")
    SqliteLog(other).close()
    (tmp_path / "mine.db").write_text("mine", encoding="utf-8")
    for place in (other, str(tmp_path / "mine.db"), str(tmp_path / "no" / "where.db")):
        with pytest.raises(MigrationFailed):
            migrate(source, place)
    assert (tmp_path / "mine.db").read_text(encoding="utf-8") == "mine"
    with pytest.raises(NoSuchStore):
        migrate(source, ":memory:")


def test_a_target_that_has_gone_on_is_not_taken_for_the_same(source: str, target: str) -> None:
    migrate(source, target)
    with opened(target) as log:
        log.append_now([anywhere(A, said("more"))])
    with pytest.raises(MigrationFailed, match="up to position"):
        migrate(source, target)


def test_a_log_is_not_moved_to_where_it_is(source: str, target: str) -> None:
    migrate(source, target)
    for place in (source, target):
        with pytest.raises(MigrationFailed, match="is the log itself"):
            migrate(place, place)
    migrate(source, target)  # there are two


def test_another_log_whose_move_was_begun_is_left_alone(
    source: str, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "PAGE", 7)
    disarm = stopped_at("M1")
    with pytest.raises(Stopped):
        migrate(source, target)
    disarm()
    other = str(tmp_path / "other.db")
    SqliteLog(other).close()

    with pytest.raises(MigrationFailed, match="begun and not ended"):
        migrate(other, target)
    assert migrate(source, target).resumed_at == 7


@pytest.mark.postgres
def test_a_schema_that_holds_something_else_is_refused(
    postgres: Server, source: str, postgres_url: str
) -> None:
    schema = address_of(postgres_url).schema
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.stored_events (mine int)".encode())
    with pytest.raises(MigrationFailed, match="other tables"):
        migrate(source, postgres_url)


def test_a_log_that_was_changed_is_not_moved(source: str, target: str) -> None:
    changed_behind(source, "UPDATE stored_events SET topic='run_failed.1' WHERE rowid=3")
    with pytest.raises(MigrationFailed, match=r"changed \(1\)"):
        migrate(source, target)
    with pytest.raises(LogError):
        opened(target, read_only=True)


@pytest.mark.postgres
def test_what_was_changed_on_the_way_is_noticed(source: str, postgres_url: str, tmp_path: Path) -> None:
    disarm = stopped_at("M2")
    with pytest.raises(Stopped):
        migrate(source, postgres_url)
    disarm()
    schema = address_of(postgres_url).schema
    with psycopg.connect(postgres_url.partition("&schema")[0], autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema}; DROP TABLE log_filling".encode())
        connection.execute("UPDATE stored_events SET state = state || ' ' WHERE notification_id = 3")
    with pytest.raises(MigrationFailed, match="from position 3 on"):
        migrate(source, postgres_url)
    with pytest.raises(MigrationFailed, match="position 3"):
        migrate(postgres_url, str(tmp_path / "back.db"))


@pytest.mark.postgres
def test_a_name_that_postgresql_can_not_hold_is_told_by_its_position(
    tmp_path: Path, postgres_url: str
) -> None:
    source = str(tmp_path / "nul.db")
    with SqliteLog(source) as log:
        log.append_now([to("fine", 0, said("a"))])
        log.append_now([to("s\0", 0, said("b"))])
    with pytest.raises(MigrationFailed, match=r"position 2: .* NUL"):
        migrate(source, postgres_url)


@pytest.mark.postgres
def test_a_server_that_is_not_there_is_told_without_the_password(source: str) -> None:
    for ends in ((source, None), (None, source)):
        url = "postgresql://postgres:s3cr%40t@127.0.0.1:1/postgres?connect_timeout=1"
        with pytest.raises(StoreUnavailable) as refused:
            migrate(*(end or url for end in ends))
        error: BaseException | None = refused.value
        while error is not None:
            assert "s3cr" not in f"{error!r} {error}"
            error = error.__cause__ or error.__context__


def test_forks_go_along_and_one_that_can_not_be_copied_is_named(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "moved.db")
    whole = fork_of(Path(source))
    damaged = whole.with_name("bbbbbbbb-0000-4000-8000-000000000000.db")
    damaged.write_bytes(b"no log")

    taken = migrate(source, target).taken

    assert (taken.forks, list(taken.left)) == (1, [str(damaged)])
    (copied,) = Path(f"{target}.forks").iterdir()
    assert rows_of(str(copied)) == rows_of(str(whole))
    # Run once more, it copies what is missing alone.
    damaged.unlink()
    fork_of(Path(source), at=CUT - 1)
    assert migrate(source, target).taken == (1, {})
    # A fork that is moved itself leaves the others.
    assert migrate(str(whole), str(tmp_path / "alone.db")).taken == (0, {})
