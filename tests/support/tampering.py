# ruff: noqa: S608 - statements are put together here, and each kind is a line
"""What somebody can do to a log with `sqlite3`, and by what each is found: for the test that does it, and the page that says it.

The log is that of a system which stopped in order, so a checkpoint is its last event. Statements are written for it.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from intersession_events.basics.ids import event_id
from intersession_events.proofs.signatures import PrivateKey
from intersession_events.stores.sqlite.log import SqliteLog
from support.checkpointed import checkpoint, key_of
from support.row_states import said, stated, with_states

By = Literal["opening", "verify", "head", "unproven", "repaired"]
"""Found when a writer opens it, and by `verify`; by `verify` alone; with a head or a published checkpoint that was kept
elsewhere; named in words as not proven; made good by whoever opens the log to write, and found by `verify` before."""


class Kind(NamedTuple):
    """One way to tamper. `finds` is the code of the finding, or what the words begin with that name it as not proven."""

    what: str
    by: By
    finds: str
    do: str | Callable[[sqlite3.Connection], None]
    signed: bool = True
    """Whether the signatures of checkpoints find it, where what was kept elsewhere does."""
    named: str = "That no attacker who can hash rewrote"
    """What the words begin with that name it before it is tried, where only what was kept elsewhere finds it."""


SAID = "(SELECT MIN(rowid) FROM stored_events WHERE topic IN ('run_queued.1', 'message_recorded.1'))"
LAST = "(SELECT MAX(rowid) FROM stored_events)"
END = "UPDATE sqlite_sequence SET seq=(SELECT MAX(rowid) FROM stored_events) WHERE name='stored_events'"
NO_CHECKS = "PRAGMA ignore_check_constraints=ON"


def _set(field: str, value: str) -> str:
    return f"UPDATE stored_events SET state=stated(json_set(said(state), '$.{field}', {value})) WHERE rowid={SAID}"


def _places(first: int, last: int) -> str:
    """Put other bytes into places of a short state, by number from 1."""
    size = last - first + 1
    return (
        f"UPDATE stored_events SET state=CAST(substr(state, 1, {first - 1}) || zeroblob({size - 1}) || X'07' || "
        f"substr(state, {last + 1}) AS BLOB) WHERE rowid={SAID}"
    )


def schema(statement: str) -> str:
    """Return a statement that changes the schema as it is written down."""
    return f"PRAGMA writable_schema=ON; {statement}; PRAGMA writable_schema=RESET"


def _exchanged(one: str, other: str) -> str:
    """Have the schema say of two tables or indexes that each lies where the other does."""
    both = f"('{one}', '{other}')"
    return schema(
        f"UPDATE sqlite_master SET rootpage=(SELECT SUM(rootpage) FROM sqlite_master WHERE name IN {both})-rootpage "
        f"WHERE name IN {both}"
    )


def _swap(rows: sqlite3.Connection, one: int, other: int) -> None:
    for before, after in ((one, 1_000_000), (other, one), (1_000_000, other)):
        rows.execute("UPDATE stored_events SET rowid=? WHERE rowid=?", (after, before))


def _neighbours(rows: sqlite3.Connection) -> None:
    """Swap two events in a row that are of different streams."""
    ((one,),) = rows.execute(
        "SELECT MIN(a.rowid) FROM stored_events a JOIN stored_events b ON b.rowid=a.rowid+1 "
        "WHERE a.originator_id<>b.originator_id AND a.rowid>2"
    ).fetchall()
    _swap(rows, one, one + 1)


def close_gaps(rows: sqlite3.Connection) -> None:
    """Give the rows that are left positions without gaps, and say so in the sequence."""
    for new, (old,) in enumerate(
        rows.execute("SELECT rowid FROM stored_events ORDER BY rowid").fetchall(), 1
    ):
        rows.execute("UPDATE stored_events SET rowid=? WHERE rowid=?", (new, old))
    rows.execute(END)


def _unseen(rows: sqlite3.Connection) -> None:
    """Change a row of a view, with the trigger that would tell of it away for that long."""
    ((made,),) = rows.execute("SELECT sql FROM sqlite_master WHERE name='touched_flows_update'").fetchall()
    rows.execute("DROP TRIGGER touched_flows_update")
    rows.execute("UPDATE flows SET is_open=1-is_open")
    rows.execute(made)


def _unmarked(rows: sqlite3.Connection) -> None:
    for (name,) in rows.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
        rows.execute(f"DROP TRIGGER {name}")


def _stream_gone(rows: sqlite3.Connection) -> None:
    rows.execute("DELETE FROM stored_events WHERE originator_id LIKE 'exchange:%'")
    close_gaps(rows)


def _end_of_stream_gone(rows: sqlite3.Connection) -> None:
    rows.execute(
        "DELETE FROM stored_events WHERE rowid=(SELECT MAX(rowid) FROM stored_events WHERE originator_id LIKE 'session:%')"
    )
    close_gaps(rows)


def _one_gone(rows: sqlite3.Connection) -> None:
    rows.execute(f"DELETE FROM stored_events WHERE rowid={SAID}")
    close_gaps(rows)


def _tail_gone(rows: sqlite3.Connection) -> None:
    """Cut off the end, checkpoint and all, with the sequence mended."""
    rows.execute(f"DELETE FROM stored_events WHERE rowid>{LAST}-3")
    rows.execute("DELETE FROM log_topics WHERE topic NOT IN (SELECT topic FROM stored_events)")
    rows.execute(END)


def _log_of_another(rows: sqlite3.Connection) -> None:
    rows.execute("UPDATE log_identity SET log_id='11111111-1111-4111-8111-111111111111'")


_OWN: Final = ("session:", "exchange:", "spawn:", "delivery:")
"""Streams whose events have ids that follow from their place."""


def hashed_again(rows: sqlite3.Connection, *, without: str = "checkpoint", ids: bool = True) -> None:
    """Compute each digest, hash and, unless `ids` are left, derived id anew, as somebody can who knows how.

    The checkpoints are taken away.
    """
    rows.execute("DELETE FROM stored_events WHERE topic LIKE ?", (f"{without}%",))
    close_gaps(rows)
    ((log_id,),) = rows.execute("SELECT log_id FROM log_identity").fetchall()
    ends: dict[str, tuple[int, str]] = {}
    renamed: dict[str, str] = {}
    imported: set[str] = set()
    table = rows.execute(
        "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events ORDER BY rowid"
    ).fetchall()
    for position, stream, version, topic, state in table:
        told = said(state)
        row = json.loads(told)
        last, prev = ends.get(stream, (0, "0" * 64))
        data = told.partition(b'"data":')[2].rpartition(
            b',"decision":' if "decision" in row else b',"digest":'
        )[0]
        if b'"openedBy":"import"' in data or b'"inferred":true' in data:
            imported.add(stream)
        own = row["id"]
        if ids and stream.startswith(_OWN) and stream not in imported and row["salt"]:
            own = renamed[row["id"]] = event_id(log_id, stream, last + 1, topic)
        causation = renamed.get(row["causation"], row["causation"])
        told = told.replace(f'"id":"{row["id"]}"'.encode(), f'"id":"{own}"'.encode())
        told = told.replace(
            f'"causation":"{row["causation"]}"'.encode(), f'"causation":"{causation}"'.encode()
        )
        digest = hashlib.sha256(bytes.fromhex(row["salt"]) + data).hexdigest()
        hashed = {
            "causation": causation,
            "correlation": row["correlation"],
            "epoch": row["epoch"],
            "eventId": own,
            "logId": log_id,
            "payloadDigest": digest,
            "prev": prev,
            "stream": stream,
            "timeMs": row["time"],
            "topic": topic,
            "version": last + 1,
        } | ({"decision": row["decision"]} if "decision" in row else {})
        text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        new = hashlib.sha256(text.encode()).hexdigest()
        for name, value in (("digest", digest), ("hash", new), ("prev", prev)):
            told = told.replace(f'"{name}":"{row[name]}"'.encode(), f'"{name}":"{value}"'.encode())
        rows.execute(
            "UPDATE stored_events SET state=?, originator_version=? WHERE rowid=?",
            (stated(told), -(last + 1) if version != last + 1 else version, position),
        )
        ends[stream] = (last + 1, new)
    rows.execute("UPDATE stored_events SET originator_version=-originator_version WHERE originator_version<0")
    rows.execute("DELETE FROM log_topics WHERE topic NOT IN (SELECT topic FROM stored_events)")


def _salts_swapped(rows: sqlite3.Connection) -> None:
    salts = rows.execute(
        "SELECT rowid, json_extract(said(state), '$.salt') FROM stored_events WHERE rowid IN (4, 5) ORDER BY rowid"
    ).fetchall()
    for (position, _), (_, salt) in zip(salts, reversed(salts), strict=True):
        rows.execute(
            "UPDATE stored_events SET state=stated(json_set(said(state), '$.salt', ?)) WHERE rowid=?",
            (salt, position),
        )


def _checkpoint_again(rows: sqlite3.Connection, *, key: PrivateKey | None = None) -> None:
    _other_words(rows)
    ((_, _, path),) = rows.execute("PRAGMA database_list").fetchall()
    with SqliteLog(path) as log:
        checkpoint(log, key)


def _other_words(rows: sqlite3.Connection) -> None:
    rows.execute(
        f"UPDATE stored_events SET state=stated(replace(said(state), 'hello', 'adieu')) WHERE rowid={SAID}"
    )
    hashed_again(rows)


def _one_more(rows: sqlite3.Connection) -> None:
    rows.execute(
        f"INSERT INTO stored_events SELECT {LAST}+1, 'session:agent:main:forged', 1, topic, "
        "stated(json_set(said(state), '$.id', 'forged', '$.epoch', (SELECT epoch - 1 FROM log_identity))) "
        f"FROM stored_events WHERE rowid={SAID}"
    )
    hashed_again(rows)


def _one_less(rows: sqlite3.Connection, *, ids: bool = True) -> None:
    rows.execute(f"DELETE FROM stored_events WHERE rowid={SAID}")
    hashed_again(rows, ids=ids)


MENDED = f"UPDATE inline_views SET position={LAST}"
"""Takes away the mark that a view was touched."""

NO_SNAPSHOTS_YET = (
    "CREATE TABLE stored_snapshots (originator_id TEXT, originator_version INTEGER, topic TEXT, state BLOB, "
    "PRIMARY KEY (originator_id, originator_version)) WITHOUT ROWID"
)


def _marks(trigger: str, table: str, view: str) -> str:
    """Have whoever writes into a table mark a view."""
    return (
        f"CREATE TRIGGER touched_{trigger} AFTER INSERT ON {table} WHEN (SELECT position FROM inline_views WHERE "
        f"name='{view}')>=0 BEGIN UPDATE inline_views SET position=-1 WHERE name='{view}'; END"
    )


def _beside(rows: sqlite3.Connection) -> None:
    """Write into a view that follows the log in a file of its own."""
    ((_, _, path),) = rows.execute("PRAGMA database_list").fetchall()
    folder = Path(f"{path}.views")
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / "usage.db")) as other:
        other.execute("CREATE TABLE IF NOT EXISTS usage_forged (tokens INTEGER)")


EVENTS: tuple[Kind, ...] = (
    Kind(
        "other words in a payload",
        "verify",
        "changed",
        f"UPDATE stored_events SET state=stated(replace(said(state), 'hello', 'adieu')) WHERE rowid={SAID}",
    ),
    Kind("another time", "verify", "changed", _set("time", "1")),
    Kind("another cause", "verify", "changed", _set("causation", "'x'")),
    Kind("another chain of causes", "verify", "changed", _set("correlation", "'x'")),
    Kind("another decision record", "verify", "changed", _set("decision", "'{}'")),
    Kind("another event id", "verify", "changed", _set("id", "'x'")),
    Kind("another epoch of an event", "verify", "changed", _set("epoch", "0")),
    Kind("another hash", "verify", "changed", _set("hash", "'00'")),
    Kind("another hash before it", "verify", "changed", _set("prev", "'00'")),
    Kind("another digest", "verify", "changed", _set("digest", "'00'")),
    Kind("another salt", "verify", "changed", _set("salt", "'00'")),
    Kind(
        "a salt in capitals",
        "verify",
        "changed",
        f"UPDATE stored_events SET state=stated(json_set(said(state), '$.salt', upper(json_extract(said(state), '$.salt')))) WHERE rowid={SAID}",
    ),
    Kind("a salt taken away", "verify", "erased", _set("salt", "''")),
    Kind(
        "a payload erased with its salt",
        "verify",
        "erased",
        f"UPDATE stored_events SET state=stated(json_set(said(state), '$.data', NULL, '$.salt', '')) WHERE rowid={SAID}",
    ),
    Kind("a field more in an envelope", "verify", "unreadable", _set("note", "'x'")),
    Kind(
        "spaces in an envelope",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET state=CAST(replace(said(state), ',\"digest\"', ', \"digest\"') AS BLOB) WHERE rowid={SAID}",
    ),
    Kind(
        "an envelope as text",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET state=said(state) || ' ' WHERE rowid={SAID}",
    ),
    Kind(
        "an envelope cut short",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET state=CAST(substr(state, 1, 90) AS BLOB) WHERE rowid={SAID}",
    ),
    *(
        Kind(f"other bytes in the place of {what}", "verify", finds, _places(first, last))
        for what, first, last, finds in (
            ("the form", 1, 1, "unreadable"),
            ("the hash", 2, 33, "changed"),
            ("the hash before it", 34, 65, "changed"),
            ("the salt", 66, 81, "changed"),
            ("the event id", 82, 97, "changed"),
            ("the cause", 98, 113, "changed"),
            ("the chain of causes", 114, 129, "changed"),
            ("the epoch", 130, 133, "changed"),
            ("the time", 134, 146, "unreadable"),
            ("the length of the decision record", 147, 150, "unreadable"),
            ("the first byte of the payload", 151, 151, "changed"),
        )
    ),
    Kind(
        "a byte more at the end of a state",
        "verify",
        "changed",
        f"UPDATE stored_events SET state=CAST(state || X'20' AS BLOB) WHERE rowid={SAID}",
    ),
    Kind(
        "another digit in the time of a state",
        "verify",
        "changed",
        f"UPDATE stored_events SET state=CAST(substr(state, 1, 133) || X'32' || substr(state, 135) AS BLOB) WHERE rowid={SAID}",
    ),
    Kind(
        "an envelope without its payload",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET state=substr(state, 1, 150) WHERE rowid={SAID}",
    ),
    Kind(
        "a short state written as JSON",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET state=CAST(said(state) AS BLOB) WHERE rowid={SAID}",
    ),
    Kind(
        "an empty envelope", "verify", "unreadable", f"UPDATE stored_events SET state=X'' WHERE rowid={SAID}"
    ),
    Kind(
        "the bytes of a state said to be text",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET state=CAST(state AS TEXT) WHERE rowid={SAID}",
    ),
    Kind(
        "the bytes of all states said to be text",
        "verify",
        "unreadable",
        "UPDATE stored_events SET state=CAST(state AS TEXT)",
    ),
    Kind(
        "another topic",
        "verify",
        "changed",
        f"UPDATE stored_events SET topic='run_failed.1' WHERE rowid={SAID}",
    ),
    Kind(
        "a topic that there is not",
        "verify",
        "unknown_topic",
        f"UPDATE stored_events SET topic='dreamt.1' WHERE rowid={SAID}",
    ),
    Kind(
        "an event in another stream",
        "verify",
        "changed",
        f"UPDATE stored_events SET originator_id='session:agent:main:x', originator_version=1 WHERE rowid={SAID}",
    ),
    Kind(
        "a stream renamed",
        "verify",
        "changed",
        "UPDATE stored_events SET originator_id='session:agent:x:main' WHERE originator_id='session:agent:ops:main'",
    ),
    Kind(
        "another version",
        "verify",
        "changed",
        f"UPDATE stored_events SET originator_version=900 WHERE rowid={SAID}",
    ),
    Kind(
        "a version below 1",
        "verify",
        "changed",
        f"UPDATE stored_events SET originator_version=-1 WHERE rowid={SAID}",
    ),
    Kind(
        "a version that is text",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET originator_version='one' WHERE rowid={SAID}",
    ),
    Kind(
        "a stream that is bytes",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET originator_id=X'00ff' WHERE rowid={SAID}",
    ),
    Kind("two events of a stream swapped", "verify", "out_of_order", lambda rows: _swap(rows, 4, 6)),
    Kind(
        "the states of two events swapped",
        "verify",
        "changed",
        "UPDATE stored_events SET state=(SELECT b.state FROM stored_events b WHERE b.rowid=11-stored_events.rowid) WHERE rowid IN (5, 6)",
    ),
    Kind("an event taken away", "verify", "missing", f"DELETE FROM stored_events WHERE rowid={SAID}"),
    Kind("an event taken away, the rest renumbered", "verify", "missing", _one_gone),
    Kind(
        "an event put in twice",
        "verify",
        "changed",
        f"INSERT INTO stored_events SELECT {LAST}+1, originator_id, 900, topic, state FROM stored_events WHERE rowid={SAID}",
    ),
    Kind(
        "an event copied into a stream of its own",
        "verify",
        "changed",
        f"INSERT INTO stored_events SELECT {LAST}+1, 'session:agent:main:y', 1, topic, state FROM stored_events WHERE rowid={SAID}",
    ),
    Kind(
        "an event moved to a far position",
        "opening",
        "position_missing",
        f"UPDATE stored_events SET rowid=9000 WHERE rowid={SAID}",
    ),
    Kind("all events taken away", "verify", "tail_cut", "DELETE FROM stored_events"),
    Kind("the end cut off", "verify", "tail_cut", f"DELETE FROM stored_events WHERE rowid>{LAST}-3"),
    Kind(
        "the end cut off, with the sequence mended",
        "head",
        "tail_cut",
        _tail_gone,
        signed=False,
        named="That the log was not set back",
    ),
    Kind("two events of different streams swapped", "verify", "checkpoint_mismatch", _neighbours),
    Kind("a whole stream taken away, the rest renumbered", "verify", "checkpoint_mismatch", _stream_gone),
    Kind(
        "the last event of a stream taken away, the rest renumbered",
        "verify",
        "checkpoint_mismatch",
        _end_of_stream_gone,
    ),
    Kind(
        "a row at position 0",
        "opening",
        "position_below_one",
        f"{NO_CHECKS}; INSERT INTO stored_events SELECT 0, 's9', 1, topic, state FROM stored_events WHERE rowid={SAID}",
    ),
    Kind(
        "a row moved below 1",
        "opening",
        "position_below_one",
        f"{NO_CHECKS}; UPDATE stored_events SET rowid=-7 WHERE rowid={SAID}",
    ),
    Kind(
        "the lowest row there can be",
        "opening",
        "position_below_one",
        f"{NO_CHECKS}; INSERT INTO stored_events SELECT -9223372036854775808, 's9', 1, topic, state FROM stored_events WHERE rowid={SAID}",
    ),
    Kind(
        "an event taken away, each hash computed again", "verify", "id_differs", partial(_one_less, ids=False)
    ),
    Kind("other words, each hash computed again", "head", "tail_cut", _other_words),
    Kind("an event forged, each hash and id computed again", "head", "tail_cut", _one_more),
    Kind("an event taken away, each hash and id computed again", "head", "tail_cut", _one_less),
    Kind(
        "other words, each hash computed again, and a checkpoint taken of that without the key",
        "head",
        "head_mismatch",
        _checkpoint_again,
    ),
    Kind(
        "other words, each hash computed again, and a checkpoint taken of that with the old key",
        "head",
        "head_mismatch",
        partial(_checkpoint_again, key=key_of(7)),
        signed=False,
        named="That the log was not set back",
    ),
    Kind(
        "a state of nothing, as long as one",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET state=zeroblob(400) WHERE rowid={SAID}",
    ),
    Kind(
        "an event copied to where erasures are",
        "verify",
        "changed",
        f"INSERT INTO stored_events SELECT {LAST}+1, 'erased:session:agent:main:main', 1, topic, state "
        f"FROM stored_events WHERE rowid={SAID}",
    ),
    Kind(
        "words written over as if erased",
        "verify",
        "erased",
        "UPDATE stored_events SET state=stated(replace(json_set(said(state), '$.salt', ''), 'hello', '[erased]')) "
        f"WHERE rowid={SAID}",
    ),
    Kind(
        "a field named twice in an envelope",
        "verify",
        "unreadable",
        """UPDATE stored_events SET state=CAST(replace(said(state), '{"causation"', '{"epoch":1,"causation"') """
        f"AS BLOB) WHERE rowid={SAID}",
    ),
    Kind(
        "a number written in another way",
        "verify",
        "unreadable",
        """UPDATE stored_events SET state=CAST(replace(said(state), '"epoch":1', '"epoch":1.0') AS BLOB) """
        f"WHERE rowid={SAID}",
    ),
    Kind(
        "a stream renamed to letters that look alike",
        "verify",
        "changed",
        "UPDATE stored_events SET originator_id='session:agent:main:m\u0430in' "
        "WHERE originator_id='session:agent:main:main'",
    ),
    Kind(
        "a stream whose name is no text",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET originator_id=CAST(X'ff3a' AS TEXT) WHERE rowid={SAID}",
    ),
    Kind(
        "a topic that is no text",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET topic=CAST(X'ff3a' AS TEXT) WHERE rowid={SAID}",
    ),
    Kind(
        "a topic as bytes",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET topic=CAST(topic AS BLOB) WHERE rowid={SAID}",
    ),
    Kind(
        "a version between two",
        "verify",
        "unreadable",
        f"UPDATE stored_events SET originator_version=2.5 WHERE rowid={SAID}",
    ),
    Kind(
        "a version far ahead",
        "verify",
        "missing",
        f"UPDATE stored_events SET originator_version=4611686018427387904 WHERE rowid={SAID}",
    ),
    Kind("the salts of two events swapped", "verify", "changed", _salts_swapped),
    Kind(
        "all times moved by an hour",
        "verify",
        "changed",
        "UPDATE stored_events SET state=stated(json_set(said(state), '$.time', json_extract(said(state), '$.time') + 3600000))",
    ),
    Kind(
        "words put into another's mouth",
        "verify",
        "changed",
        """UPDATE stored_events SET state=stated(replace(said(state), '"role":"user"', '"role":"assistant"')) """
        f"WHERE rowid={SAID}",
    ),
    Kind(
        "a checkpoint made one of fewer events",
        "verify",
        "changed",
        "UPDATE stored_events SET state=stated(json_set(said(state), '$.data.count', 3)) WHERE topic LIKE 'checkpoint%'",
    ),
    Kind(
        "a checkpoint passed off as a message",
        "verify",
        "changed",
        "UPDATE stored_events SET topic='message_recorded.1' WHERE topic LIKE 'checkpoint%'",
    ),
    Kind(
        "the last event moved to the largest position",
        "opening",
        "table_altered",
        f"UPDATE stored_events SET rowid=9223372036854775807 WHERE rowid={LAST}",
    ),
    Kind(
        "a NUL at the end of a stream's name",
        "verify",
        "changed",
        f"UPDATE stored_events SET originator_id=originator_id || char(0) WHERE rowid={SAID}",
    ),
    Kind(
        "a space at the end of the names of streams",
        "verify",
        "changed",
        "UPDATE stored_events SET originator_id=originator_id || ' ' WHERE originator_id LIKE 'session:%'",
    ),
    Kind(
        "the last checkpoint put in again behind itself",
        "verify",
        "id_repeated",
        f"INSERT INTO stored_events SELECT {LAST}+1, originator_id, originator_version+1, topic, state "
        f"FROM stored_events WHERE rowid={LAST}",
    ),
    Kind(
        "the signatures of checkpoints taken away",
        "verify",
        "changed",
        "UPDATE stored_events SET state=stated(json_remove(said(state), '$.data.signature')) WHERE topic LIKE 'checkpoint%'",
    ),
    Kind(
        "a topic in capitals",
        "verify",
        "changed",
        f"UPDATE stored_events SET topic=upper(topic) WHERE rowid={SAID}",
    ),
    Kind(
        "a topic of a version to come",
        "verify",
        "unknown_topic",
        f"UPDATE stored_events SET topic=replace(topic, '.1', '.2') WHERE rowid={SAID}",
    ),
)
"""What is done to the rows of events."""

REFUSED_BY_COPIES: frozenset[str] = frozenset(
    {
        "an event taken away, the rest renumbered",
        "an event put in twice",
        "an event copied into a stream of its own",
        "all events taken away",
        "the end cut off",
        "the end cut off, with the sequence mended",
        "a whole stream taken away, the rest renumbered",
        "the last event of a stream taken away, the rest renumbered",
        "other words, each hash computed again",
        "an event taken away, each hash computed again",
        "an event forged, each hash and id computed again",
        "an event taken away, each hash and id computed again",
        "other words, each hash computed again, and a checkpoint taken of that without the key",
        "other words, each hash computed again, and a checkpoint taken of that with the old key",
        "an event copied to where erasures are",
        "a checkpoint passed off as a message",
        "the last event moved to the largest position",
        "the last checkpoint put in again behind itself",
    }
)
"""What is done to the events of a log that a copy of it refuses, when it is continued; of all else in `EVENTS` it takes nothing."""

TABLES: tuple[Kind, ...] = (
    Kind("another log id", "verify", "changed", _log_of_another),
    Kind("a higher epoch", "unproven", "When the log was made", "UPDATE log_identity SET epoch=epoch+5"),
    Kind(
        "another birthday of the log",
        "unproven",
        "When the log was made",
        "UPDATE log_identity SET created_ms=1",
    ),
    Kind("the epoch set back", "verify", "table_altered", "UPDATE log_identity SET epoch=0"),
    Kind(
        "an epoch without an end",
        "opening",
        "table_altered",
        "UPDATE log_identity SET epoch=9223372036854775807",
    ),
    Kind("a birthday that is text", "opening", "table_altered", "UPDATE log_identity SET created_ms='then'"),
    Kind("a format that is text", "opening", "table_altered", "UPDATE log_identity SET format='one'"),
    Kind("a format that no log has", "opening", "table_altered", "UPDATE log_identity SET format=0"),
    Kind("the format of a later version", "opening", "", "UPDATE log_identity SET format=99"),
    Kind("a topic nobody wrote", "opening", "table_altered", "INSERT INTO log_topics VALUES ('dreamt.1')"),
    Kind(
        "a topic taken away",
        "verify",
        "table_altered",
        "DELETE FROM log_topics WHERE topic='message_recorded.1'",
    ),
    Kind("the sequence set back", "opening", "table_altered", "UPDATE sqlite_sequence SET seq=1"),
    Kind(
        "the sequence set ahead",
        "verify",
        "tail_cut",
        "UPDATE sqlite_sequence SET seq=seq+7 WHERE name='stored_events'",
    ),
    Kind("the sequence taken away", "opening", "table_altered", "DELETE FROM sqlite_sequence"),
    Kind("a sequence of text", "opening", "table_altered", "UPDATE sqlite_sequence SET seq='many'"),
    Kind(
        "two sequences", "opening", "table_altered", "INSERT INTO sqlite_sequence VALUES ('stored_events', 5)"
    ),
    Kind(
        "a trigger that swallows events",
        "opening",
        "table_altered",
        "CREATE TRIGGER gone AFTER INSERT ON stored_events BEGIN DELETE FROM stored_events WHERE rowid=NEW.rowid; END",
    ),
    Kind(
        "a trigger on a small table",
        "opening",
        "table_altered",
        "CREATE TRIGGER stop BEFORE UPDATE ON log_identity BEGIN SELECT RAISE(IGNORE); END",
    ),
    Kind(
        "a trigger on a view",
        "opening",
        "table_altered",
        "CREATE TRIGGER turn AFTER UPDATE ON flows BEGIN UPDATE flows SET is_open=0; END",
    ),
    Kind(
        "an index that refuses",
        "opening",
        "table_altered",
        "CREATE UNIQUE INDEX one ON stored_events (originator_id, topic, originator_version)",
    ),
    Kind("a column more", "opening", "table_altered", "ALTER TABLE stored_events ADD COLUMN note TEXT"),
    Kind(
        "a column renamed", "opening", "table_altered", "ALTER TABLE log_topics RENAME COLUMN topic TO word"
    ),
    Kind("a small table dropped", "repaired", "table_altered", "DROP TABLE set_aside"),
    Kind(
        "a small table made of a query",
        "opening",
        "table_altered",
        "ALTER TABLE set_aside RENAME TO away; CREATE VIEW set_aside AS SELECT * FROM away",
    ),
    Kind(
        "a constraint taken out of the schema",
        "opening",
        "table_altered",
        schema(
            "UPDATE sqlite_master SET sql=replace(sql, ' CHECK (rowid > 0)', '') WHERE name='stored_events'"
        ),
    ),
    Kind(
        "another order of text in the schema",
        "opening",
        "table_altered",
        schema(
            "UPDATE sqlite_master SET sql=replace(sql, 'originator_id TEXT', 'originator_id TEXT COLLATE NOCASE') WHERE name='stored_events'"
        ),
    ),
    Kind(
        "the index of the events made that of another table",
        "verify",
        "table_altered",
        schema(
            "UPDATE sqlite_master SET rootpage=(SELECT SUM(rootpage) FROM sqlite_master WHERE name IN "
            "('sqlite_autoindex_stored_events_1', 'sqlite_autoindex_session_list_1'))-rootpage "
            "WHERE name IN ('sqlite_autoindex_stored_events_1', 'sqlite_autoindex_session_list_1')"
        ),
    ),
    Kind("all topics taken away", "verify", "table_altered", "DELETE FROM log_topics"),
    Kind(
        "a topic among them that is no text",
        "opening",
        "table_altered",
        "INSERT INTO log_topics VALUES (CAST(X'ff00' AS TEXT))",
    ),
    Kind(
        "the events made a query",
        "opening",
        "",
        "ALTER TABLE stored_events RENAME TO away; CREATE VIEW stored_events AS SELECT * FROM away",
    ),
    Kind(
        "a log id as bytes",
        "opening",
        "table_altered",
        "UPDATE log_identity SET log_id=CAST(log_id AS BLOB)",
    ),
    Kind(
        "two tables exchanged in the schema",
        "verify",
        "table_altered",
        _exchanged("flows", "run_keys"),
    ),
    Kind(
        "two indexes exchanged in the schema",
        "verify",
        "table_altered",
        _exchanged("run_outcomes_root", "sqlite_autoindex_run_outcomes_1"),
    ),
    Kind(
        "a table, settings and statistics that nothing of ours reads",
        "unproven",
        "What else is in the file",
        "CREATE TABLE mine (x); PRAGMA user_version=7; ANALYZE; UPDATE sqlite_stat1 SET stat='1 1'; "
        "INSERT INTO sqlite_sequence VALUES ('mine', 5)",
    ),
    Kind("the mark of the file taken away", "opening", "", "PRAGMA application_id=0"),
    Kind("two identities", "opening", "", "INSERT INTO log_identity SELECT * FROM log_identity"),
    Kind("no identity", "opening", "", "DELETE FROM log_identity"),
    Kind("a log id in capitals", "verify", "changed", "UPDATE log_identity SET log_id=upper(log_id)"),
    Kind("an epoch between two", "opening", "table_altered", "UPDATE log_identity SET epoch=epoch+0.5"),
    Kind("a sequence between two", "opening", "table_altered", "UPDATE sqlite_sequence SET seq=seq+0.5"),
    Kind(
        "a topic among them in capitals",
        "opening",
        "table_altered",
        "INSERT INTO log_topics SELECT upper(topic) FROM log_topics LIMIT 1",
    ),
    Kind(
        "the schema made one that lets states be missing",
        "opening",
        "table_altered",
        schema(
            "UPDATE sqlite_master SET sql=replace(sql, 'state BLOB NOT NULL', 'state BLOB') WHERE name='stored_events'"
        ),
    ),
    Kind(
        "a query of a host's own, with a trigger that takes events away",
        "opening",
        "table_altered",
        "CREATE VIEW mine AS SELECT 1 AS x; "
        "CREATE TRIGGER gone INSTEAD OF INSERT ON mine BEGIN DELETE FROM stored_events; END",
    ),
    Kind(
        "all rows laid into pages of another size, and the identity another row",
        "unproven",
        "What else is in the file",
        "UPDATE log_identity SET rowid=77; PRAGMA journal_mode=DELETE; PRAGMA page_size=8192; PRAGMA auto_vacuum=2; VACUUM",
    ),
    Kind("a view beside the file", "unproven", "What is kept beside the file", _beside),
)
"""What is done to the tables beside them."""

VIEWS: tuple[Kind, ...] = (
    Kind("a row of a view changed", "repaired", "view_differs", "UPDATE flows SET is_open=1-is_open"),
    Kind("a row of a view taken away", "repaired", "view_differs", "DELETE FROM flows"),
    Kind(
        "a row of a view changed, after the triggers that tell of it were dropped",
        "repaired",
        "view_differs",
        "DROP TRIGGER touched_flows_update; UPDATE flows SET is_open=1-is_open",
    ),
    Kind(
        "a row of a view changed, and the mark of that taken away",
        "verify",
        "view_differs",
        f"UPDATE flows SET is_open=1-is_open; UPDATE inline_views SET position={LAST}",
    ),
    Kind("a row of a view changed, the triggers dropped and made again", "verify", "view_differs", _unseen),
    Kind(
        "an entry put into the index of names",
        "verify",
        "view_differs",
        "INSERT INTO session_search (rowid, grams) VALUES (9, 'abc')",
    ),
    Kind(
        "a row of a view added",
        "repaired",
        "view_differs",
        "INSERT INTO run_keys SELECT 'x', caller, run_id, position, digest FROM run_keys LIMIT 1",
    ),
    Kind(
        "a view said to be behind",
        "repaired",
        "view_differs",
        "UPDATE inline_views SET position=3 WHERE name='run_outcomes'",
    ),
    Kind(
        "a view said to be ahead",
        "repaired",
        "view_differs",
        "UPDATE inline_views SET position=9000 WHERE name='run_outcomes'",
    ),
    Kind(
        "a view not named any more",
        "repaired",
        "view_differs",
        "DELETE FROM inline_views WHERE name='run_outcomes'",
    ),
    Kind("the table of a view dropped", "repaired", "view_differs", "DROP TABLE flow_runs"),
    Kind(
        "the table of a view made a query",
        "repaired",
        "view_differs",
        "ALTER TABLE flow_runs RENAME TO away; CREATE VIEW flow_runs AS SELECT * FROM away",
    ),
    Kind("an index of a view dropped", "repaired", "view_differs", "DROP INDEX run_outcomes_root"),
    Kind(
        "an index on a view added",
        "repaired",
        "view_differs",
        "CREATE INDEX mine ON run_outcomes (run_id, accepted)",
    ),
    Kind("a column of a view added", "repaired", "view_differs", "ALTER TABLE run_keys ADD COLUMN note"),
    Kind(
        "an event set aside that is not there",
        "repaired",
        "view_differs",
        "INSERT INTO set_aside VALUES ('run_outcomes', 5, 's', 1, 't', 'r')",
    ),
    Kind(
        "another shape of a view",
        "repaired",
        "",
        "UPDATE inline_views SET shape=77 WHERE name='run_outcomes'",
    ),
    Kind("the index of names emptied", "verify", "view_differs", "DELETE FROM session_search_data"),
    Kind(
        "a trigger that tells of a touch made to do nothing",
        "opening",
        "table_altered",
        "DROP TRIGGER touched_flows_update; "
        "CREATE TRIGGER touched_flows_update AFTER UPDATE ON flows WHEN 0 BEGIN SELECT 1; END",
    ),
    Kind(
        "a position of a view that is text",
        "repaired",
        "view_differs",
        "UPDATE inline_views SET position='x' WHERE name='run_outcomes'",
    ),
    Kind(
        "a snapshot put in",
        "verify",
        "view_differs",
        "CREATE TABLE stored_snapshots (originator_id TEXT, originator_version INTEGER, topic TEXT, state BLOB, PRIMARY KEY (originator_id, originator_version)) WITHOUT ROWID; INSERT INTO stored_snapshots VALUES ('session:agent:main:main', 3, 'session.1', X'7b7d')",
    ),
    Kind(
        "the snapshots made a query",
        "verify",
        "view_differs",
        "CREATE VIEW stored_snapshots AS SELECT 'session:agent:main:main' AS originator_id, 3 AS originator_version, "
        "'session.1' AS topic, X'7b7d' AS state",
    ),
    Kind("the snapshots made another table", "verify", "view_differs", "CREATE TABLE stored_snapshots (x)"),
    *(
        Kind(
            f"a snapshot with {what} that is no text",
            "verify",
            "view_differs",
            f"{NO_SNAPSHOTS_YET}; INSERT INTO stored_snapshots VALUES ({stream}, 3, {topic}, X'7b7d')",
        )
        for what, stream, topic in (
            ("a stream", "CAST(X'ff' AS TEXT)", "'session_state.3'"),
            ("a topic", "'session:agent:main:main'", "CAST(X'ff' AS TEXT)"),
        )
    ),
    Kind(
        "all triggers that tell of a touch dropped",
        "repaired",
        "view_differs",
        _unmarked,
    ),
    Kind(
        "something set aside for a view nobody has",
        "unproven",
        "What the view",
        "INSERT INTO set_aside VALUES (CAST(X'ff' AS TEXT), 5, 's', 1, 't', 'r')",
    ),
    Kind("a view nobody has", "unproven", "What the view", "INSERT INTO inline_views VALUES ('mine', 1, 1)"),
    Kind(
        "a trigger like those of views, on the snapshots",
        "repaired",
        "view_differs",
        f"{NO_SNAPSHOTS_YET}; {_marks('stored_snapshots_insert', 'stored_snapshots', 'open_flows')}",
    ),
    Kind(
        "a trigger of one view on the table of another",
        "repaired",
        "view_differs",
        _marks("flows_insert_too", "flows", "session_list"),
    ),
    Kind(
        "where the index of names has its pages",
        "verify",
        "view_differs",
        "UPDATE session_search_idx SET pgno=pgno+2",
    ),
    Kind(
        "how the index of names ranks what it finds",
        "verify",
        "view_differs",
        "INSERT INTO session_search (session_search, rank) VALUES ('rank', 'bm25(3)')",
    ),
    Kind(
        "the index of names made one of a version that there is not",
        "verify",
        "view_differs",
        "UPDATE session_search_config SET v=999 WHERE k='version'",
    ),
    Kind("a shape between two", "repaired", "", "UPDATE inline_views SET shape=4.5 WHERE name='open_flows'"),
    Kind(
        "the name of a view as bytes",
        "repaired",
        "view_differs",
        "UPDATE inline_views SET name=CAST(name AS BLOB) WHERE name='open_flows'",
    ),
    Kind(
        "an index of a view made one of nothing",
        "repaired",
        "view_differs",
        "DROP INDEX flows_open; CREATE INDEX flows_open ON flows (kind) WHERE is_open = 7",
    ),
    Kind(
        "a column of a view that is computed",
        "repaired",
        "view_differs",
        "ALTER TABLE clock ADD COLUMN later GENERATED ALWAYS AS (position + 1) VIRTUAL",
    ),
    *(
        Kind(f"{what}, and the mark of that taken away", "verify", "view_differs", f"{do}; {MENDED}")
        for what, do in (
            ("rows of the list as text", "UPDATE session_list SET state=CAST(state AS TEXT)"),
            ("a name that a session never had", "UPDATE session_list SET names=CAST('boss' AS BLOB)"),
            ("how many sessions there are", "UPDATE session_counts SET number=number+1"),
            ("places in the list", "UPDATE session_places SET falling=falling-1"),
            ("places of the past", "DELETE FROM session_past"),
            ("versions of rows", "UPDATE session_list SET recent=state"),
            ("when the log reached which time", "UPDATE clock SET time_ms=time_ms-1000"),
            ("an event set aside", "INSERT INTO set_aside VALUES ('session_list', 2, 's', 1, 't', 'r')"),
        )
    ),
)
"""What is done to views."""

IMPORTED: tuple[Kind, ...] = (
    Kind(
        "a byte of what was imported",
        "verify",
        "changed",
        "UPDATE stored_events SET state=CAST(substr(state, 1, length(state) - 9) || X'20' || "
        "substr(state, length(state) - 8) AS BLOB) WHERE topic LIKE '%imported%'",
    ),
    Kind(
        "when a message was said elsewhere",
        "verify",
        "changed",
        f"UPDATE stored_events SET state=stated(json_set(said(state), '$.data.message.timestamp', 5)) WHERE rowid={SAID}",
    ),
    Kind(
        "what an exchange was found by",
        "verify",
        "changed",
        "UPDATE stored_events SET state=stated(replace(said(state), 'evidence', 'evidense'))",
    ),
    Kind(
        "the report taken away",
        "verify",
        "checkpoint_mismatch",
        "DELETE FROM stored_events WHERE topic LIKE 'import_reported%'",
    ),
    *(
        Kind(f"{what}, and the mark of that taken away", "verify", "view_differs", f"{do}; {MENDED}")
        for what, do in (
            (
                "where the messages of a session id begin",
                "UPDATE session_generations SET from_version=from_version+1",
            ),
            ("who spawned a session", "UPDATE session_list SET parent=1"),
            ("which sessions were ahead of the log's time", "INSERT INTO session_ahead VALUES (2, 5)"),
            ("where a message lies", "INSERT INTO session_messages VALUES (1, 1, 1)"),
        )
    ),
)
"""What is done to a log into which a state directory was imported."""

KINDS: tuple[Kind, ...] = (*EVENTS, *TABLES, *VIEWS)


def tamper(path: Path, kind: Kind) -> None:
    """Do it."""
    rows = with_states(sqlite3.connect(path, isolation_level=None))
    try:
        if isinstance(kind.do, str):
            rows.executescript(kind.do)
        else:
            rows.execute(NO_CHECKS)
            kind.do(rows)
    finally:
        rows.close()
