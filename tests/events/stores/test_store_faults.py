"""What the log says, and keeps, when a commit fails, a disk is full, or a row was changed."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics.errors import (
    CorruptEvent,
    LogError,
    StoreFull,
    StoreUnavailable,
    UnknownTopic,
)
from intersession_events.log.envelope import seal
from intersession_events.log.recorded import Committed, Conflict, Outcome, Unavailable
from intersession_events.log.storable import payload_of
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.portable.appends import Append
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.encrypted import master_key, source
from support.faulty_store import FAULT, FAULTY, cut_off, sync_failed
from support.log_drafts import anywhere, said, to
from support.soaking import until
from support.transacting import transact

A, B, C = (said(name) for name in "abc")


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(tmp_path / "log.db", environment=FAULTY) as log:
        yield log
    FAULT.before = FAULT.after = None


@pytest.mark.clause("O5")
def test_a_commit_whose_answer_was_lost_is_read_back(faulty: SqliteLog) -> None:
    FAULT.after = cut_off()

    committed = faulty.append_now([to("s", 0, A), anywhere("log", B)])

    assert not committed.again
    assert tuple(faulty.all()) == committed.recorded
    assert faulty.append_now([to("s", 1, C)]).position == 3


@pytest.mark.clause("O5", "CRYPT-1")
def test_and_so_is_one_that_is_encrypted(faulty: SqliteLog, tmp_path: Path) -> None:
    faulty.close()
    wanted = Encryption(source(master_key(tmp_path)))
    with SqliteLog(tmp_path / "log.db", environment=FAULTY, encryption=wanted) as log:
        FAULT.after = cut_off()
        committed = log.append_now([to("s", 0, A), anywhere("log", B)])
        assert tuple(log.all()) == committed.recorded
        assert log.append_now([to("s", 1, C)]).position == 3


@pytest.mark.clause("D4")
@pytest.mark.parametrize("number", [0, 1])
def test_an_opening_whose_commit_fails_is_a_typed_error_and_opening_again_goes_on(
    tmp_path: Path, number: int
) -> None:
    """The first commit makes the file a log, the next one its views."""
    path = tmp_path / "log.db"
    FAULT.after, FAULT.skips = cut_off(), number

    with pytest.raises(StoreUnavailable):
        SqliteLog(path, inline=inline_views(), environment=FAULTY)

    assert FAULT.after is None
    with SqliteLog(path, inline=inline_views()) as log:
        assert log.append_now([to("s", 0, A)]).position == 1
        assert verify_log(log).ok


@pytest.mark.clause("O5")
def test_each_of_a_batch_hears_the_truth_when_the_answer_was_lost(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", environment=FAULTY, threads=False) as log:
        told: list[Outcome] = []
        log.append([to("s", 0, A)], told.append)
        log.append([to("s", 1, B), to("t", 0, C)], told.append)
        FAULT.after = cut_off()

        assert log.step()

        assert [type(outcome) for outcome in told] == [Committed, Committed]
        assert [event.id for event in log.all()] == ["id-a", "id-b", "id-c"]
        assert log.head() == 3


@pytest.mark.clause("O5")
def test_what_was_refused_does_not_keep_others_of_its_batch_from_being_read_back(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", environment=FAULTY, threads=False) as log:
        log.append([to("s", 0, A)], lambda _: None)
        assert log.step()
        told: list[Outcome] = []
        log.append([to("s", 0, B)], told.append)
        log.append([to("t", 0, C)], told.append)
        FAULT.after = cut_off()

        assert log.step()

        assert [type(outcome) for outcome in told] == [Unavailable, Committed]
        assert log.head() == 2


@pytest.mark.clause("O5", "J2")
def test_listeners_hear_of_what_is_in_the_log_though_nobody_could_say_so(
    faulty: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    faulty.on_committed(lambda recorded: heard.extend(item.id for item in recorded))

    def unreadable(*_: Any) -> bool:
        raise cut_off()

    with monkeypatch.context() as patched:
        patched.setattr(Append, "is_stored", unreadable)
        FAULT.after = cut_off()
        with pytest.raises(StoreUnavailable):
            faulty.append_now([to("s", 0, A)])
    assert heard == []

    assert faulty.append_now([to("s", 0, A)]).again
    assert (heard, faulty.head()) == (["id-a"], 1)
    faulty.append_now([to("s", 1, B)])
    until(lambda: heard == ["id-a", "id-b"])  # listeners hear of it after whoever waited for the commit


@pytest.mark.clause("O5")
def test_a_commit_that_did_not_happen_is_refused_and_can_be_tried_again(faulty: SqliteLog) -> None:
    FAULT.before = cut_off()

    with pytest.raises(StoreUnavailable):
        faulty.append_now([to("s", 0, A)])

    assert (faulty.head(), list(faulty.all())) == (0, [])
    assert not faulty.append_now([to("s", 0, A)]).again
    assert faulty.append_now([to("s", 0, A)]).again


def test_a_conflict_seen_in_a_commit_that_failed_is_no_conflict(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", environment=FAULTY, threads=False) as log:
        told: list[Outcome] = []
        log.append([to("s", 0, A)], told.append)
        log.append([to("s", 0, B)], told.append)
        FAULT.before = cut_off()

        log.step()
        assert [type(outcome) for outcome in told] == [Unavailable, Unavailable]

        log.append([to("s", 0, B)], told.append)
        log.append([to("s", 0, A)], told.append)
        log.step()
        assert [type(outcome) for outcome in told[2:]] == [Committed, Conflict]


def test_one_that_can_not_be_written_fails_alone_in_its_batch(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", threads=False) as log:
        told: list[Outcome] = []
        bad_id = msgspec.structs.replace(B, id="\ud800")
        for batch in ([to("s", 0, A)], [to("t", 0, A), to("u", 0, bad_id)], [to("s", 1, B)]):
            log.append(batch, told.append)

        log.step()

        assert [type(outcome) for outcome in told] == [Committed, Unavailable, Committed]
        assert [event.position for event in log.stream("s")] == [1, 2]
        assert log.stream("t") == []


@pytest.mark.clause("D4")
def test_after_a_failed_sync_nothing_is_written_until_the_log_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with SqliteLog(path, environment=FAULTY) as log:
        log.append_now([to("s", 0, A)])
        FAULT.before = sync_failed()

        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                log.append_now([to("s", 1, B)])

        assert [event.id for event in log.stream("s")] == ["id-a"]
    with SqliteLog(path) as log:
        assert log.append_now([to("s", 1, B)]).position == 2


@pytest.mark.clause("D5")
def test_a_full_disk_refuses_what_does_not_fit_and_works_again_with_space(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, A)])
        pages = log.query("PRAGMA page_count")[0][0]
        transact(log, lambda sql: sql.execute(f"PRAGMA max_page_count={pages + 5}"))
        accepted = 1

        def append_for_ever() -> None:
            nonlocal accepted
            while True:
                log.append_now([to("s", accepted, said(f"{accepted}", "x" * 3000))])
                accepted += 1

        with pytest.raises(StoreFull):
            append_for_ever()

        assert len(log.stream("s")) == accepted
        transact(log, lambda sql: sql.execute(f"PRAGMA max_page_count={pages + 500}"))
        assert log.append_now([to("s", accepted, said("more", "x" * 30_000))]).position == accepted + 1


def change(path: Path, statement: str, *parameters: Any) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    assert connection.execute(statement, parameters).rowcount == 1
    connection.close()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, A, B, C), to("healthy", 0, A)])
    return tmp_path / "log.db"


@pytest.mark.clause("D7")
@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("UPDATE stored_events SET state=replace(state, 'hello', 'hallo') WHERE rowid=2", CorruptEvent),
        (
            "UPDATE stored_events SET state=CAST(replace(state, 'hello', 'hallo') AS BLOB) WHERE rowid=2",
            CorruptEvent,
        ),
        (
            "UPDATE stored_events SET state=CAST(replace(state, '1000', '1001') AS BLOB) WHERE rowid=2",
            CorruptEvent,
        ),
        ("UPDATE stored_events SET state=CAST('{}' AS BLOB) WHERE rowid=2", CorruptEvent),
        ("UPDATE stored_events SET state=x'ff' WHERE rowid=2", CorruptEvent),
        ("UPDATE stored_events SET topic='run_queued.1' WHERE rowid=2", CorruptEvent),
        ("UPDATE stored_events SET originator_version='2x' WHERE rowid=2", CorruptEvent),
        ("UPDATE stored_events SET originator_version=7 WHERE rowid=3", CorruptEvent),
        ("UPDATE stored_events SET originator_id='s', originator_version=4 WHERE rowid=4", CorruptEvent),
        ("DELETE FROM stored_events WHERE rowid=2", CorruptEvent),
        ("DELETE FROM stored_events WHERE rowid=1", CorruptEvent),
        ("UPDATE stored_events SET topic='os:system' WHERE rowid=2", UnknownTopic),
        ("UPDATE stored_events SET topic='os:system' WHERE rowid=2", CorruptEvent),
    ],
)
def test_a_stream_that_was_changed_is_not_read(written: Path, statement: str, error: type[LogError]) -> None:
    change(written, statement)

    with SqliteLog(written) as log:
        with pytest.raises(error) as refused:
            log.stream("s")
        assert refused.value.position is not None
        loaded: list[object] = []
        log.load("s", loaded.append)
        if "originator_id" not in statement:
            assert [event.id for event in log.stream("healthy")] == ["id-a"]
        log.append_now([to("new", 0, A)])
    assert isinstance(loaded[0], error)


def test_a_gap_before_what_is_read_is_noticed(written: Path) -> None:
    change(written, "DELETE FROM stored_events WHERE rowid=2")

    with SqliteLog(written, read_only=True) as log:
        with pytest.raises(CorruptEvent, match="version 2 is missing"):
            log.stream("s", after=1)
        with pytest.raises(CorruptEvent, match="version 2 is missing"):
            log.stream("s", after=1, backwards=True)
        assert [event.version for event in log.stream("s", backwards=True, limit=1)] == [3]


def test_a_row_that_hashes_but_follows_another_one_is_noticed(written: Path) -> None:
    with SqliteLog(written, read_only=True) as log:
        topic, payload = payload_of(B)
        state, _ = seal(
            B,
            topic,
            payload,
            log_id=log.log_id,
            stream="s",
            version=2,
            epoch=1,
            prev="f" * 64,
            salt=b"s" * 16,
        )
    change(written, "UPDATE stored_events SET state=? WHERE rowid=2", state)

    with SqliteLog(written, read_only=True) as log:
        with pytest.raises(CorruptEvent, match="does not follow"):
            log.stream("s")
        assert verify_log(log).counts["chain_broken"] == 2


def test_nothing_is_appended_to_a_stream_whose_end_is_damaged(written: Path) -> None:
    change(written, "UPDATE stored_events SET state=x'00' WHERE rowid=3")

    with SqliteLog(written) as log:
        with pytest.raises(CorruptEvent):
            log.append_now([to("s", 3, said("d"))])
        assert log.append_now([to("healthy", 1, B)]).position == 5


def test_a_reader_can_go_on_after_a_damaged_row(written: Path) -> None:
    change(written, "UPDATE stored_events SET state=x'00' WHERE rowid=2")

    with SqliteLog(written, read_only=True) as log:
        with pytest.raises(CorruptEvent) as damaged:
            list(log.all())

        assert damaged.value.position == 2
        assert [event.position for event in log.all(after=2)] == [3, 4]


@pytest.mark.clause("D7")
@given(st.data())
def test_any_flipped_bits_of_a_row_are_noticed(data: st.DataObject) -> None:
    with SqliteLog(":memory:") as log:
        log.append_now([to("s", 0, A, B, C)])
        column = data.draw(st.sampled_from(["state", "topic", "originator_version"]))
        row = data.draw(st.integers(1, 3))
        before = log.query(f"SELECT {column} FROM stored_events WHERE rowid=?", (row,))[0][0]  # noqa: S608 - a column
        after = data.draw(_flipped(before))
        statement = f"UPDATE OR REPLACE stored_events SET {column}=? WHERE rowid=?"  # noqa: S608 - a column

        transact(log, lambda sql: sql.execute(statement, (after, row)))

        with pytest.raises((CorruptEvent, UnknownTopic)):
            log.stream("s")


def _flipped(value: Any) -> st.SearchStrategy[Any]:
    def flip(bits: set[int], raw: bytes) -> bytes:
        number = int.from_bytes(raw, "big")
        for bit in bits:
            number ^= 1 << bit
        return number.to_bytes(len(raw), "big")

    to_raw: Callable[[Any], bytes]
    back: Callable[[bytes], Any]
    if isinstance(value, bytes):
        to_raw, back = bytes, bytes
    elif isinstance(value, str):
        to_raw, back = str.encode, lambda raw: raw.decode("latin-1")
    else:
        to_raw, back = lambda number: number.to_bytes(4, "big"), lambda raw: int.from_bytes(raw, "big")
    raw = to_raw(value)
    return st.sets(st.integers(0, len(raw) * 8 - 1), min_size=1, max_size=8).map(
        lambda bits: back(flip(bits, raw))
    )


def test_the_log_can_be_read_with_sqlite_and_jq_alone(written: Path) -> None:
    connection = sqlite3.connect(written)
    rows = connection.execute(
        "SELECT rowid, originator_id, originator_version, topic, json_extract(state, '$.data.message.content') "
        "FROM stored_events ORDER BY rowid"
    ).fetchall()
    state = connection.execute("SELECT state FROM stored_events").fetchone()[0]
    connection.close()

    assert rows[0] == (1, "s", 1, "message_recorded.1", "hello")
    assert list(msgspec.json.decode(state)) == [
        "causation",
        "correlation",
        "data",
        "digest",
        "epoch",
        "hash",
        "id",
        "prev",
        "salt",
        "time",
    ]
