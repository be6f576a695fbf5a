"""The log on SQLite: appending, conflicts, reading, following, refusing."""

import gc
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession_events.basics.errors import (
    AppendConflict,
    LogTooNew,
    NoSuchStore,
    NotALog,
    NotStorable,
    StoreBusy,
    StoreLocked,
    StoreUnavailable,
)
from intersession_events.facts import RunAborted, RunCompleted, SessionArchived, Usage
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import Committed, Conflict, Outcome, Recorded, StreamPart, Unavailable
from intersession_events.stores.opened import open_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.writer_lock import holder_of
from support.any_log import AnyLog, Place
from support.log_drafts import anywhere, draft, said, to
from support.transacting import transact

A, B, C = (said(name) for name in "abc")


def ids(events: Sequence[Recorded]) -> list[str]:
    return [event.id for event in events]


def test_events_come_back_as_they_were_appended(log: AnyLog) -> None:
    committed = log.append_now([to("session:x", 0, A, B), to("exchange:y", 0, C)])

    assert [(r.position, r.stream, r.version) for r in committed.recorded] == [
        (1, "session:x", 1),
        (2, "session:x", 2),
        (3, "exchange:y", 1),
    ]
    assert tuple(log.all()) == committed.recorded
    assert tuple(log.stream("session:x")) == committed.recorded[:2]
    assert [(r.event, r.time, r.correlation, r.epoch) for r in log.all()] == [
        (d.event, d.time, d.correlation, log.epoch) for d in (A, B, C)
    ]
    assert committed.position == log.head() == 3


def test_an_empty_log_has_nothing_and_an_unknown_stream_neither(log: AnyLog) -> None:
    assert (log.head(), list(log.all()), log.stream("session:nobody")) == (0, [], [])


def test_an_append_at_the_wrong_version_conflicts_and_records_nothing(log: AnyLog) -> None:
    log.append_now([to("s", 0, A)])

    with pytest.raises(AppendConflict) as conflict:
        log.append_now([to("other", 0, B), to("s", 0, C)])

    assert (conflict.value.stream, conflict.value.expected, conflict.value.actual) == ("s", 0, 1)
    assert log.head() == 1
    assert log.stream("other") == []


def test_the_same_events_again_are_what_was_recorded(log: AnyLog) -> None:
    first = log.append_now([to("s", 0, A), anywhere("log", B), to("x", 0, C)])
    log.append_now([to("s", 1, said("d"))])

    again = log.append_now([to("s", 0, A), anywhere("log", B), to("x", 0, C)])

    assert again == Committed(recorded=first.recorded, again=True)
    assert log.head() == 4


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([to("s", 0, A, said("other"))], id="another-second-event"),
        pytest.param([to("s", 0, A, B, C)], id="one-event-more"),
        pytest.param([to("s", 0, A, B), to("t", 0, C)], id="one-stream-more"),
        pytest.param([to("s", 0, A, B), anywhere("log", C)], id="one-unordered-event-more"),
        pytest.param([anywhere("log", C), to("s", 0)], id="nothing-to-compare"),
    ],
)
def test_a_partly_recorded_append_is_a_conflict(log: AnyLog, batch: Any) -> None:
    log.append_now([to("s", 0, A, B)])

    with pytest.raises(AppendConflict):
        log.append_now(batch)

    assert log.head() == 2


def test_any_version_always_fits(log: AnyLog) -> None:
    for name in "abcd":
        log.append_now([anywhere("log", said(name))])

    assert [event.version for event in log.stream("log")] == [1, 2, 3, 4]


def test_one_batch_checks_versions_against_itself(by_hand: AnyLog) -> None:
    told: list[Outcome] = []
    for batch in (
        [to("s", 0, A)],
        [to("s", 0, B)],
        [to("s", 1, C)],
        [to("s", 0, A)],
        [to("s", 2, B), to("s", 3, C)],
    ):
        by_hand.append(batch, told.append)
    assert told == []

    assert by_hand.step()

    assert ids(by_hand.stream("s")) == ["id-a", "id-c", "id-b", "id-c"]
    assert told[1] == Conflict(stream="s", expected=0, actual=1)
    assert isinstance(told[3], Committed)
    assert [type(outcome).__name__ for outcome in told] == [
        "Committed",
        "Conflict",
        "Committed",
        "Committed",
        "Committed",
    ]
    assert told[3].again
    assert told[3].recorded[0].position == 1


def test_a_stream_can_be_read_from_either_end(log: AnyLog) -> None:
    log.append_now([to("s", 0, *(said(f"{n}") for n in range(1, 8)))])

    def versions(**how: Any) -> list[int]:
        return [event.version for event in log.stream("s", **how)]

    assert versions(after=5) == [6, 7]
    assert versions(after=2, to=4) == [3, 4]
    assert versions(limit=2) == [1, 2]
    assert versions(backwards=True, limit=3) == [7, 6, 5]
    assert versions(backwards=True, to=4, limit=2) == [4, 3]
    assert versions(backwards=True, after=5) == [7, 6]
    assert versions(after=7) == []


def test_streams_are_found_by_how_their_names_begin(log: AnyLog) -> None:
    names = ["access:operator", "access:agent:main:main", "access", "accesses", "session:x", "access:é"]
    for name in names:
        log.append_now([to(name, 0, A, B)])

    assert log.streams("access:") == ["access:agent:main:main", "access:operator", "access:é"]
    assert log.streams("access") == ["access", *log.streams("access:"), "accesses"]
    assert log.streams("") == sorted(names)
    assert log.streams("z") == []


def test_many_events_streams_and_parts_are_read_at_once_as_they_are_one_by_one(log: AnyLog) -> None:
    for number in range(200):
        log.append_now([anywhere(f"session:{number % 7}", *(said(f"{number}-{each}") for each in range(3)))])
    streams = log.streams("session:")
    every = list(log.all())
    parts = [
        StreamPart(stream, after, to)
        for stream in streams
        for after, to in ((0, 1), (3, 9), (8, 12), (40, 80), (80, 80), (90, 500))
    ]

    assert list(log.at(range(0, 1_000, 2))) == [event for event in every if event.position % 2 == 0]
    assert list(log.at([600, 1, 1, 9_999])) == [every[0], every[-1]]
    assert list(log.at([])) == []
    assert log.whole([*streams, "session:nobody"]) == [*(log.stream(name) for name in streams), []]
    assert log.whole([]) == []
    assert log.parts(parts) == [log.stream(part.stream, after=part.after, to=part.to) for part in parts]
    assert log.parts([]) == []


def test_the_whole_log_can_be_read_from_anywhere(log: AnyLog) -> None:
    count = 2_500  # more than two pages
    for start in range(0, count, 500):
        log.append_now([anywhere(f"s{n % 7}", said(f"{n}")) for n in range(start, start + 500)])

    assert [event.position for event in log.all()] == list(range(1, count + 1))
    assert [event.position for event in log.all(after=2_490)] == list(range(2_491, count + 1))
    assert [event.position for event in log.all(after=10, to=12)] == [11, 12]
    assert [event.position for event in log.all(after=999, limit=3)] == [1000, 1001, 1002]
    assert list(log.all(limit=0)) == []


def test_a_stream_is_loaded_off_the_callers_thread(log: AnyLog) -> None:
    log.append_now([to("s", 0, A, B)])
    loaded: list[Any] = []
    done = threading.Event()

    def on_loaded(events: Sequence[Recorded] | Exception) -> None:
        loaded.extend([events, threading.current_thread()])
        done.set()

    log.load("s", on_loaded)

    assert done.wait(20)
    assert ids(loaded[0]) == ["id-a", "id-b"]
    assert loaded[1] is not threading.current_thread()


def test_acks_come_once_each_in_order_and_after_the_events_can_be_read(log: AnyLog) -> None:
    count = 300
    seen: list[tuple[int, bool]] = []
    done = threading.Event()

    def on_outcome(outcome: Outcome) -> None:
        assert isinstance(outcome, Committed)
        seen.append(
            (outcome.position, log.head() >= outcome.position and bool(log.stream(f"s{outcome.position}")))
        )
        if len(seen) == count:
            done.set()

    for number in range(1, count + 1):
        log.append([to(f"s{number}", 0, said(f"{number}"))], on_outcome)

    assert done.wait(20)
    assert seen == [(number, True) for number in range(1, count + 1)]


@pytest.mark.clause("O1")
def test_many_threads_append_and_each_gets_its_own_outcome(log: AnyLog) -> None:
    threads, rounds = 8, 25
    wins: list[str] = []
    losses: list[int] = []

    def write(number: int) -> None:
        for version in range(rounds):
            try:
                wins.extend(
                    ids(log.append_now([to("contested", version, said(f"{number}-{version}"))]).recorded)
                )
            except AppendConflict as conflict:
                losses.append(conflict.actual)
            assert not log.append_now([to(f"own-{number}", version, said(f"own-{number}-{version}"))]).again

    workers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)

    assert sorted(ids(log.stream("contested"))) == sorted(wins)
    assert len(wins) == rounds
    assert len(losses) == rounds * (threads - 1)
    assert log.head() == rounds * (threads + 1)


def test_a_raising_callback_harms_nobody_else(log: AnyLog, caplog: pytest.LogCaptureFixture) -> None:
    def explode(_: Outcome) -> None:
        raise SystemExit(3)

    stop = log.on_committed(lambda _: 1 / 0)  # type: ignore[arg-type]
    log.append([to("s", 0, A)], explode)

    assert log.append_now([to("s", 1, B)]).position == 2
    stop()
    assert "must not" in caplog.text


def test_waiting_for_a_position_ends_with_the_commit(log: AnyLog) -> None:
    reached: list[bool] = []
    waiter = threading.Thread(target=lambda: reached.append(log.wait_for(2, timeout=20)))
    waiter.start()

    log.append_now([to("s", 0, A)])
    log.append_now([to("s", 1, B)])
    waiter.join(20)

    assert reached == [True]
    assert log.wait_for(1, timeout=0)
    assert not log.wait_for(3, timeout=0)


def test_listeners_hear_every_batch_in_order_until_they_stop(log: AnyLog) -> None:
    heard: list[int] = []
    told = threading.Event()

    def listener(recorded: Sequence[Recorded]) -> None:
        heard.extend(event.position for event in recorded)
        if heard[-1] >= 4:
            told.set()

    stop = log.on_committed(listener)
    log.append_now([to("s", 0, A, B)])
    log.append_now([to("s", 0, A, B)])  # recorded before: nothing new to hear of
    log.append_now([to("t", 0, A), to("u", 0, B)])
    assert told.wait(20)
    stop()
    log.append_now([to("s", 2, C)])

    assert heard == [1, 2, 3, 4]


def test_who_is_to_hear_first_hears_of_a_commit_before_who_waits_for_it(log: AnyLog) -> None:
    told: list[str] = []
    heard = threading.Event()

    def last(_: Sequence[Recorded]) -> None:
        told.append("last")
        heard.set()

    log.on_committed(last)
    log.on_committed(lambda _: told.append("first"), first=True)
    log.append([to("s", 0, A)], lambda _: told.append("caller"))
    assert heard.wait(20)

    assert told == ["first", "caller", "last"]


def test_a_listener_hears_of_the_kinds_that_it_asked_for_alone(log: AnyLog) -> None:
    heard: list[list[int]] = []
    told = threading.Event()
    log.on_committed(
        lambda batch: heard.append([event.position for event in batch]), SessionArchived | RunAborted
    )
    log.on_committed(lambda batch: told.set() if batch[-1].position == 4 else None)
    gone = msgspec.structs.replace(B, event=SessionArchived(session_id="s1", reason="deleted"))
    log.append_now([to("s", 0, A, B)])
    log.append_now([to("t", 0, A, gone)])
    assert told.wait(20)

    assert heard == [[4]]


def test_work_on_tables_is_one_transaction_that_its_error_undoes(log: AnyLog) -> None:
    transact(log, lambda sql: sql.execute("CREATE TABLE notes (text TEXT)"))

    assert transact(
        log, lambda sql: sql.execute("INSERT INTO notes VALUES (?) RETURNING text", ("one",)).fetchone()
    ) == ("one",)
    with pytest.raises(ZeroDivisionError):
        transact(log, lambda sql: (sql.execute("INSERT INTO notes VALUES ('two')"), 1 / 0))

    assert log.query("SELECT text FROM notes WHERE text LIKE ?", ("%",)) == [("one",)]
    assert log.append_now([to("s", 0, A)]).position == 1


def test_a_query_can_not_write(log: AnyLog) -> None:
    with pytest.raises(StoreUnavailable):
        log.query("DELETE FROM stored_events")


def test_waiting_in_the_writers_own_thread_is_refused(log: AnyLog) -> None:
    refused: list[str] = []
    done = threading.Event()

    def on_outcome(_: Outcome) -> None:
        try:
            log.append_now([to("s", 1, B)])
        except StoreUnavailable as error:
            refused.append(str(error))
        done.set()

    log.append([to("s", 0, A)], on_outcome)

    assert done.wait(20)
    assert len(refused) == 1


def test_a_full_queue_is_busy_and_queues_nothing(by_hand: AnyLog) -> None:
    told: list[Outcome] = []
    for number in range(16_384):
        by_hand.append([to(f"s{number}", 0, A)], lambda _: None)

    by_hand.append([to("late", 0, A)], told.append)

    assert isinstance(told[0], Unavailable)
    assert isinstance(told[0].error, StoreBusy)
    while by_hand.step():
        pass
    assert by_hand.stream("late") == []
    assert by_hand.append_now([to("late", 0, A)]).position == 16_384 + 1


def test_an_event_that_could_not_be_read_again_is_refused(log: AnyLog) -> None:
    surrogate = said("x", "\ud800")
    huge = draft(RunCompleted(run_id="r", attempt=1, usage=Usage(input=2**53)), "huge")
    fraction = draft(RunCompleted(run_id="r", attempt=1, usage=Usage(input=1.5)), "half")  # type: ignore[arg-type]
    wrong = draft(RunCompleted(run_id="r", attempt=1, text=7), "wrong")  # type: ignore[arg-type]

    for bad in (surrogate, huge, fraction, wrong):
        with pytest.raises(NotStorable):
            log.append_now([to("t", 0, A), to("s", 0, bad)])
    with pytest.raises(NotStorable):
        log.append_now([to("\ud800", 0, A)])

    assert log.head() == 0
    assert log.append_now([to("s", 0, A)]).position == 1


def test_closing_finishes_what_was_queued_and_refuses_the_rest(place: Place) -> None:
    log = place.open()
    told: list[Outcome] = []
    for number in range(200):
        log.append([anywhere("s", said(f"{number}"))], told.append)
    loads: list[Any] = []
    for _ in range(20):
        log.load("nobody", loads.append)

    log.close()
    log.close()

    assert loads == [[]] * 20
    assert [type(outcome) for outcome in told] == [Committed] * 200
    log.append([anywhere("s", A)], told.append)
    assert isinstance(told[-1], Unavailable)
    for use in (lambda: log.append_now([anywhere("s", A)]), lambda: log.stream("s"), lambda: list(log.all())):
        with pytest.raises(StoreUnavailable):
            use()
    loaded: list[object] = []
    log.load("s", loaded.append)
    assert isinstance(loaded[0], StoreUnavailable)


def test_a_closed_log_leaves_one_file_for_its_owner_alone_and_its_lock(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, A)])
        assert list(log.all())

    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.db", "log.db.lock"]
    assert (tmp_path / "log.db").stat().st_mode & 0o077 == 0


def test_a_log_goes_on_where_it_ended_in_a_new_epoch(place: Place) -> None:
    with place.open() as log:
        log_id, epoch = log.log_id, log.epoch
        log.append_now([to("s", 0, A)])
    with place.open() as log:
        assert (log.log_id, log.epoch, log.head()) == (log_id, epoch + 1, 1)
        log.append_now([to("s", 1, B)])

        first, second = log.stream("s")
        assert (second.prev, second.epoch) == (first.hash, epoch + 1)


def test_a_reader_sees_what_a_running_writer_commits(place: Place) -> None:
    with place.open() as log:
        log.append_now([to("s", 0, A)])
        with place.open(read_only=True) as reader:
            heard: list[str] = []
            told = threading.Event()

            def listener(events: Sequence[Recorded]) -> None:
                heard.extend(ids(events))
                told.set()

            reader.on_committed(listener)
            assert (reader.log_id, reader.epoch, reader.head()) == (log.log_id, 0, 1)

            log.append_now([to("s", 1, B)])

            assert reader.wait_for(2, timeout=20)
            assert told.wait(20)
            assert heard == ["id-b"]
            assert ids(reader.stream("s")) == ["id-a", "id-b"]
            with pytest.raises(StoreUnavailable, match="reading only"):
                reader.append_now([to("s", 2, C)])
            refused: list[Outcome] = []
            reader.append([to("s", 2, C)], refused.append)
            assert isinstance(refused[0], Unavailable)


def test_a_log_without_a_name_is_read_to_its_end(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, said("1"), said("2"))])

    events = SqliteLog(tmp_path / "log.db", read_only=True).all()
    gc.collect()  # nobody has the log any more

    assert [recorded.id for recorded in events] == ["id-1", "id-2"]


@pytest.mark.clause("D3")
def test_the_connections_of_readers_are_pinned_too(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log, SqliteLog(tmp_path / "log.db", read_only=True) as reader:
        for each in (log, reader):
            assert each.query("PRAGMA synchronous") == [(2,)]
            assert each.query("PRAGMA journal_mode") == [("wal",)]
            assert each.query("PRAGMA busy_timeout")[0][0] >= 5000
        assert transact(log, lambda sql: sql.execute("PRAGMA synchronous").fetchone()) == (2,)


def test_time_entropy_and_identity_are_handed_in() -> None:
    asked: list[int] = []

    def entropy(size: int) -> bytes:
        asked.append(size)
        return bytes(range(size))

    def states() -> list[Any]:
        with SqliteLog(":memory:", clock=lambda: 5, entropy=entropy, new_log_id=lambda: "the-log") as log:
            assert log.log_id == "the-log"
            log.append_now([to("s", 0, A, B)])
            return log.query("SELECT state FROM stored_events")

    assert states() == states()
    assert asked == [32, 32]


def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    garbage, text, foreign = tmp_path / "garbage.db", tmp_path / "text.db", tmp_path / "foreign.db"
    garbage.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    text.write_text("not a database at all")
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE stored_events (a)")
    connection.close()

    for path in (garbage, text, foreign):
        before = path.read_bytes()
        for read_only in (False, True):
            with pytest.raises(NotALog):
                SqliteLog(path, read_only=read_only)
        assert path.read_bytes() == before
        assert holder_of(str(path)) is None


def test_a_restored_dump_has_lost_its_identity_and_a_backup_has_not(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, A)])
    source = sqlite3.connect(tmp_path / "log.db")
    restored, backup = sqlite3.connect(tmp_path / "restored.db"), sqlite3.connect(tmp_path / "backup.db")
    restored.executescript("\n".join(source.iterdump()))
    source.backup(backup)
    for connection in (source, restored, backup):
        connection.close()

    with pytest.raises(NotALog, match="dump"):
        SqliteLog(tmp_path / "restored.db")
    with SqliteLog(tmp_path / "backup.db") as log:
        assert ids(log.stream("s")) == ["id-a"]


@pytest.mark.clause("E2")
@pytest.mark.parametrize("form", [2, 99])
def test_a_newer_format_is_neither_read_nor_written(form: int, place: Place) -> None:
    with place.open() as log:
        log.append_now([to("s", 0, A)])
        transact(log, lambda sql: sql.execute("UPDATE log_identity SET format=?", (form,)))

    for read_only in (False, True):
        with pytest.raises(LogTooNew, match=rf"has format {form}, .* format 1 alone: use the version"):
            place.open(read_only=read_only)


@pytest.mark.clause("E2")
def test_a_log_with_topics_of_a_newer_version_is_read_but_not_written(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with SqliteLog(path) as log:
        log.append_now([to("s", 0, A)])
        transact(log, lambda sql: sql.execute("INSERT INTO log_topics VALUES ('dreamt.1')"))
        transact(
            log, lambda sql: sql.execute("INSERT INTO stored_events VALUES (2, 'd', 1, 'dreamt.1', x'00')")
        )

    with pytest.raises(LogTooNew, match=r"dreamt\.1"):
        SqliteLog(path)
    with SqliteLog(path, read_only=True) as reader:
        assert ids(reader.stream("s")) == ["id-a"]


def test_what_is_not_there_can_not_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.db", ":memory:"):
        with pytest.raises(NoSuchStore):
            SqliteLog(path, read_only=True)
    with pytest.raises(StoreUnavailable):
        SqliteLog(tmp_path / "no" / "such" / "directory.db")
    with pytest.raises(StoreUnavailable):
        SqliteLog(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_log(tmp_path: Path) -> None:
    (tmp_path / "log.db").touch()

    with SqliteLog(tmp_path / "log.db") as log:
        assert log.append_now([to("s", 0, A)]).position == 1


@pytest.mark.parametrize("name", ["with space.db", "100%?mode=memory.db", "a#b&c.db", "ü:memory:.db"])
def test_a_path_is_taken_as_it_is_written(tmp_path: Path, name: str) -> None:
    with SqliteLog(tmp_path / name) as log:
        log.append_now([to("s", 0, A)])
        assert ids(log.stream("s")) == ["id-a"]

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, f"{name}.lock"])


def test_two_names_of_a_file_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "alias.db").symlink_to(tmp_path / "log.db")

    with SqliteLog(tmp_path / "log.db"), pytest.raises(StoreLocked, match=f"pid {os.getpid()}"):
        SqliteLog(tmp_path / "alias.db")


def test_it_keeps_the_protocol_of_a_log() -> None:
    def use(log: HostLog) -> int:
        return log.append_now([to("s", 0, A)]).position

    with SqliteLog(":memory:") as log:
        assert use(log) == 1


def test_the_gateways_address_can_be_found_by_others(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.announce_gateway("127.0.0.1:18789")
        holder = holder_of(str(tmp_path / "log.db"))
        assert holder is not None
        assert (holder.pid, holder.epoch, holder.gateway) == (os.getpid(), log.epoch, "127.0.0.1:18789")

        log.announce_gateway(None)
        assert holder_of(str(tmp_path / "log.db")) != holder


def test_a_log_is_opened_by_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INTERSESSION_STORE", raising=False)

    with open_log("sqlite:///relative.db"), open_log(f"sqlite:///{tmp_path}/absolute.db"), open_log():
        pass
    monkeypatch.setenv("INTERSESSION_STORE", "sqlite:///told.db")
    with open_log(), open_log(":memory:") as memory, open_log("sqlite:///:memory:") as other:
        assert memory.log_id != other.log_id

    assert {path.name for path in tmp_path.glob("*.db")} == {
        "relative.db",
        "absolute.db",
        "intersession.db",
        "told.db",
    }


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@localhost/x?schema=No-Name",
        "postgres:///x?password=s3cret&wake=never",
        "mysql://me:s3cret@x",
        "sqlite://x.db",
        "sqlite:///",
    ],
)
def test_a_store_that_is_not_here_is_said_to_be_not_here(url: str) -> None:
    with pytest.raises(NoSuchStore, match=r"sqlite|schema|wake") as refused:
        open_log(url)
    assert "s3cret" not in f"{refused.value} {refused.value.url}"


def test_an_append_that_nobody_waits_for_is_durable_though_nothing_follows_it(place: Place) -> None:
    with place.open() as log:
        log.append([to("s", 0, said("a"))], lambda _: None, patient=True)

        assert log.wait_for(1, timeout=20)


def test_what_was_put_off_is_written_before_the_log_closes(place: Place) -> None:
    with place.open() as log:
        log.append_now([to("s", 0, said("a"))])
        log.append([to("s", 1, said("b"))], lambda _: None, patient=True)
    with place.open(read_only=True) as log:
        assert [recorded.version for recorded in log.stream("s")] == [1, 2]
