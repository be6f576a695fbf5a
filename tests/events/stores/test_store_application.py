"""The log as an application of the eventsourcing library: mapper, event store, notifications, subscription."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventsourcing.cipher import AESCipher
from eventsourcing.persistence import IntegrityError, JSONTranscoder, Mapper, Notification, StoredEvent
from eventsourcing.utils import Environment

from intersession_events.basics.errors import CorruptEvent, NoSuchStore, NotStorable, StoreUnavailable
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.library.mapper import ChainedMapper, Fresh
from intersession_events.stores.sqlite.application import SessionLog
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import said, to
from support.rows import edited

A, B, C = (said(name) for name in "abc")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, A, B), to("t", 0, C)])
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(path) as log:
        yield log


def test_the_librarys_event_store_puts_and_gets_chained_events(log: SqliteLog) -> None:
    store = log.application.events

    recordings = store.put([Fresh("s", said("d"), 3), Fresh("s", said("e"), 4), Fresh("t", said("f"))])

    assert [recording.notification.id for recording in recordings] == [4, 5, 6]
    assert [recording.notification.originator_version for recording in recordings] == [3, 4, 2]
    assert list(store.get("s")) == log.stream("s")
    assert [event.id for event in log.stream("s")] == ["id-a", "id-b", "id-d", "id-e"]
    assert verify_log(log).ok


def test_the_event_store_is_refused_at_a_wrong_version_and_what_is_no_fact_of_ours(log: SqliteLog) -> None:
    with pytest.raises(IntegrityError, match="expected version 1, found 2"):
        log.application.events.put([Fresh("s", said("d"), 2)])
    with pytest.raises(NotStorable, match="its own mapper"):
        log.application.recorder.insert_events([StoredEvent("s", 3, "message_recorded.1", b"{}")])
    with pytest.raises(NotStorable, match="drafts"):
        log.application.mapper.to_stored_event(log.stream("s")[0])
    assert log.head() == 3


def test_notifications_are_the_rows_by_position(path: Path, log: SqliteLog) -> None:
    with SessionLog({"SQLITE_DBNAME": str(path)}) as reading:
        for app in (reading, log.application):
            found = app.notification_log.select(start=2, limit=1000)
            assert [(row.id, row.originator_id, row.originator_version) for row in found] == [
                (2, "s", 2),
                (3, "t", 1),
            ]
            assert [app.mapper.to_domain_event(row) for row in found] == list(log.all(after=1))
            assert app.recorder.max_notification_id() == 3
        assert reading.log_id == log.log_id
        with pytest.raises(StoreUnavailable, match="reading only"):
            reading.events.put([Fresh("s", said("d"))])


def test_a_changed_row_is_not_believed_by_the_librarys_way_either(path: Path) -> None:
    with edited(path) as rows:
        rows.execute("UPDATE stored_events SET originator_version=7 WHERE rowid=2")
    with SessionLog({"SQLITE_DBNAME": str(path)}) as log, pytest.raises(CorruptEvent) as found:
        list(log.events.get("s"))
    assert found.value.position == 2


def take_all(subscription: Iterator[Notification], into: list[int]) -> None:
    for row in subscription:
        into.append(row.id)  # noqa: PERF401 - seen while it goes on


@pytest.mark.parametrize("topics", [(), ("message_recorded.1",)])
def test_a_subscription_gives_what_was_and_what_comes_until_it_is_stopped(
    path: Path, log: SqliteLog, topics: tuple[str, ...]
) -> None:
    with SessionLog({"SQLITE_DBNAME": str(path)}) as reading:
        for app in (log.application, reading):
            subscription = app.recorder.subscribe(gt=1, topics=topics)
            last = log.head()
            with subscription:
                assert [next(subscription).id for _ in range(last - 1)] == list(range(2, last + 1))
                got: list[int] = []
                waiting = threading.Thread(target=take_all, args=(subscription, got))
                waiting.start()
                position = log.append_now([to("s", last - 1, said(f"d{last}"))]).position
                log.wait_for(position, timeout=20)
                while not got:
                    assert waiting.is_alive()
                subscription.stop()
                waiting.join(20)
                assert (got, waiting.is_alive()) == ([position], False)


def test_a_subscription_ends_with_its_log(path: Path) -> None:
    with SqliteLog(path) as log:
        subscription = log.application.recorder.subscribe(gt=3)
        waiting = threading.Thread(target=lambda: list(subscription))
        waiting.start()
    waiting.join(20)

    assert not waiting.is_alive()


def test_what_is_no_log_is_no_application(tmp_path: Path) -> None:
    with pytest.raises(NoSuchStore):
        SessionLog({"SQLITE_DBNAME": str(tmp_path / "nothing.db")})
    with pytest.raises(NoSuchStore, match="SQLITE_DBNAME"):
        SessionLog()
    assert list(tmp_path.iterdir()) == []


def test_the_hosts_own_settings_of_the_library_are_not_the_logs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSISTENCE_MODULE", "eventsourcing.popo")
    monkeypatch.setenv("COMPRESSOR_TOPIC", "zlib")
    monkeypatch.setenv("SQLITE_DBNAME", "elsewhere.db")
    with SqliteLog(path) as log:
        assert log.append_now([to("s", 2, said("d"))]).position == 4


def test_rows_are_not_hidden_from_whoever_hashes_them_again() -> None:
    cipher = AESCipher(Environment("", {"CIPHER_KEY": AESCipher.create_key(16)}))
    with pytest.raises(NotStorable, match="neither compressed nor encrypted"):
        ChainedMapper(JSONTranscoder(), None, cipher)
    assert issubclass(ChainedMapper, Mapper)
