"""Before: what plain SQL does beside the hashes is found by `verify`, and a writer refuses to build upon it."""

import sqlite3
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from intersession_events.basics.errors import AlteredLog, CorruptEvent, UnknownWord
from intersession_events.facts import LoopEnded, decode
from intersession_events.log.envelope import seal
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.tables import LOG_TABLES, place_problems, schema_problems
from intersession_events.log.verifying.verification import head, verify_log
from intersession_events.stores.database import Row as EventRow
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import draft, said, to
from support.rows import edited
from support.transacting import transact

KEY = b"kept elsewhere"

KINDS = {
    "a row at position 0": (
        "INSERT INTO stored_events SELECT 0, 's9', 1, topic, state FROM stored_events WHERE rowid=1",
        "position_below_one",
        "position 0",
    ),
    "a row moved below 1": (
        "INSERT INTO stored_events SELECT -7, originator_id, 99, topic, state FROM stored_events WHERE rowid=1",
        "position_below_one",
        "position -7",
    ),
    "the lowest row there can be": (
        "INSERT INTO stored_events SELECT -9223372036854775808, 's9', 1, topic, state FROM stored_events WHERE rowid=1",
        "position_below_one",
        "position -9223372036854775808",
    ),
    "a trigger that swallows inserts": (
        "CREATE TRIGGER gone AFTER INSERT ON stored_events BEGIN DELETE FROM stored_events WHERE rowid=NEW.rowid; END",
        "table_altered",
        "trigger 'gone'",
    ),
    "a trigger on a small table": (
        "CREATE TRIGGER stop BEFORE UPDATE ON log_identity BEGIN SELECT RAISE(IGNORE); END",
        "table_altered",
        "trigger 'stop'",
    ),
    "an index that refuses": (
        "CREATE UNIQUE INDEX one ON stored_events (originator_id, topic, originator_version)",
        "table_altered",
        "index 'one'",
    ),
    "a column more": (
        "ALTER TABLE stored_events ADD COLUMN note TEXT",
        "table_altered",
        "stored_events is not",
    ),
    "a small table changed": (
        "ALTER TABLE set_aside ADD COLUMN more",
        "table_altered",
        "set_aside is not as it was made",
    ),
    "a topic nobody wrote": ("INSERT INTO log_topics VALUES ('dreamt.1')", "table_altered", "dreamt.1"),
    "the sequence set back": ("UPDATE sqlite_sequence SET seq=1", "table_altered", "sqlite_sequence"),
    "the sequence taken away": ("DELETE FROM sqlite_sequence", "table_altered", "sqlite_sequence"),
    "a sequence of text": ("UPDATE sqlite_sequence SET seq='many'", "table_altered", "sqlite_sequence"),
    "two sequences": (
        "INSERT INTO sqlite_sequence VALUES ('stored_events', 5)",
        "table_altered",
        "sqlite_sequence",
    ),
    "an epoch without an end": (
        "UPDATE log_identity SET epoch=9223372036854775807",
        "table_altered",
        "log_identity",
    ),
    "a time that is text": ("UPDATE log_identity SET created_ms='then'", "table_altered", "log_identity"),
}

SEEN_BY_VERIFY_ALONE = {
    "the epoch set back": ("UPDATE log_identity SET epoch=0", "table_altered", "epoch 0"),
    "a topic taken away": ("DELETE FROM log_topics", "table_altered", "message_recorded.1"),
    "a payload erased": (
        "UPDATE stored_events SET state=CAST(json_set(state, '$.data', NULL, '$.salt', '') AS BLOB) WHERE rowid=2",
        "erased",
        "no event authorises",
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, said("a"), said("b"), said("c"))])
    return tmp_path / "log.db"


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints=ON")
    connection.execute(statement)
    connection.close()


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", [*KINDS, *SEEN_BY_VERIFY_ALONE])
def test_what_lies_beside_the_hashes_is_verified_even_with_a_signed_final_head(path: Path, kind: str) -> None:
    statement, code, word = {**KINDS, **SEEN_BY_VERIFY_ALONE}[kind]
    with SqliteLog(path, read_only=True) as log:
        genuine = head(log, key=KEY)
        assert verify_log(log, head=genuine, key=KEY, final=True).ok
    change(path, statement)

    with SqliteLog(path, read_only=True) as log:
        report = verify_log(log, head=genuine, key=KEY, final=True)

    told = [f"position {one.position} {one.problem}" for one in report.findings if one.code == code]
    assert any(word in one for one in told), report.findings


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_refuses_tables_that_were_altered_and_writes_nothing(path: Path, kind: str) -> None:
    change(path, KINDS[kind][0])
    before = path.read_bytes()

    with pytest.raises(AlteredLog, match="altered from outside"):
        SqliteLog(path)

    assert path.read_bytes() == before


def test_a_row_below_position_1_is_not_read_as_one_of_its_stream(path: Path) -> None:
    change(path, "UPDATE stored_events SET rowid=-1 WHERE rowid=2")

    with SqliteLog(path, read_only=True) as log, pytest.raises(CorruptEvent, match="position -1"):
        log.stream("s")


def test_a_new_log_has_the_tables_that_are_expected_and_may_have_more_of_a_host(path: Path) -> None:
    with SqliteLog(path) as log:
        assert LOG_TABLES.keys() <= {name for (name,) in log.query("SELECT name FROM sqlite_master")}
        transact(log, lambda sql: sql.execute("CREATE TABLE mine (a)"))

        assert list(schema_problems(log.query)) == []
        assert verify_log(log).ok


def test_a_new_log_takes_no_row_below_position_1(path: Path) -> None:
    """Before: `verify` passed rows that no append can have written, and edits of views, snapshots and triggers."""
    connection = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE stored_events SET rowid=0 WHERE rowid=1")
    connection.close()


@pytest.mark.clause("V1")
def test_a_log_that_says_a_format_that_no_log_has_is_found(path: Path) -> None:
    change(path, "UPDATE log_identity SET format=0")

    with pytest.raises(AlteredLog, match="says format 0: no log has that, the first format is 1"):
        SqliteLog(path)
    with SqliteLog(path, read_only=True) as log:
        assert verify_log(log).counts == {"table_altered": 1}


def test_a_word_of_a_later_version_is_said_to_be_one() -> None:
    """Before: it read as corrupt."""
    with pytest.raises(UnknownWord, match="a later version"):
        decode("loop_ended.1", b'{"reason":"bored","turns":1}')
    with pytest.raises(CorruptEvent):
        decode("loop_ended.1", b'{"reason":7,"turns":1}')


class Written(SqliteLog):
    """A log to which somebody writes an event of a new kind, once the last row has been read."""

    def rows(self, *, limit: int = 1000, **between: int | None) -> list[EventRow]:
        page = super().rows(limit=limit, **between)
        if not page:
            event = LoopEnded(reason="turn_limit", turns=1)
            self.append_now([to("exchange:e", 0, draft(event, "new"))])
        return page


def test_a_kind_of_event_that_is_new_while_a_log_is_verified_is_no_finding(path: Path) -> None:
    with Written(path) as log:
        assert verify_log(log).findings == ()
        assert log.streams("exchange:") == ["exchange:e"]


@pytest.mark.clause("V1")
def test_what_is_appended_while_the_tables_are_looked_at_is_no_finding(path: Path) -> None:
    with SqliteLog(path) as log:
        numbers = count()

        def query(statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
            number = next(numbers)
            log.append_now(
                [to(f"s{number}", 0, draft(LoopEnded(reason="turn_limit", turns=1), f"n{number}"))]
            )
            return log.query(statement, parameters)

        assert [*schema_problems(query), *place_problems(query)] == []


@pytest.mark.clause("V1")
@pytest.mark.parametrize(
    ("payload", "code"),
    [(b'{"turns":1}', "undecodable"), (b'{"reason":"bored","turns":1}', "unknown_word")],
    ids=["no such shape", "a word of a later version"],
)
def test_verify_decodes_each_payload_and_one_that_cannot_be_read_does_not_stop_opening(
    path: Path, payload: bytes, code: str
) -> None:
    """Before: `verify` never decoded."""
    topic, stream = "loop_ended.1", "exchange:e"
    with edited(path) as rows:
        ((log_id, epoch),) = rows.execute("SELECT log_id, epoch FROM log_identity")
        state, _ = seal(
            draft(LoopEnded(reason="turn_limit", turns=1), "forged"),
            topic,
            payload,
            log_id=log_id,
            stream=stream,
            version=1,
            epoch=epoch,
            prev="0" * 64,
            salt=bytes(16),
        )
        rows.execute("INSERT INTO stored_events VALUES (4, ?, 1, ?, ?)", (stream, topic, state))
        rows.execute("INSERT INTO log_topics VALUES (?)", (topic,))

    with SqliteLog(path) as log:
        report = verify_log(log)
        with pytest.raises((CorruptEvent, UnknownWord)):
            log.stream(stream)

    assert report.counts == {code: 1}
    assert [finding.position for finding in report.findings] == [4]
