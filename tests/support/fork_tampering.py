# ruff: noqa: S608 - statements are put together here, and each kind is a line
"""What somebody can do with `sqlite3` to a fork, and by what each is found: for the test that does it, and the page that says it.

The fork is that of `forked.py`, behind whose cut a message was said.
"""

import sqlite3
from hashlib import sha256

import msgspec

from intersession_events.log.row_state import as_state, opened
from intersession_events.proofs.hashed import Hashed
from support.forked import A, B
from support.tampering import Kind

_FORKED = "topic='forked_from.1'"
_CUT = f"(SELECT MIN(rowid) FROM stored_events WHERE {_FORKED})"
_LAST_OF_A = f"(SELECT MAX(rowid) FROM stored_events WHERE originator_id='{A}' AND rowid < {_CUT})"


def _said_of_fork(field: str, value: str) -> str:
    told = f"stated(json_set(said(state), '$.data.{field}', {value}))"
    return f"UPDATE stored_events SET state={told} WHERE {_FORKED}"


def _later(rows: sqlite3.Connection) -> None:
    """Let the event behind the one that says how the fork began change places with it."""
    ((at,),) = rows.execute(f"SELECT rowid FROM stored_events WHERE {_FORKED}").fetchall()
    for before, after in ((at, 1_000), (at + 1, at), (1_000, at + 1)):
        rows.execute("UPDATE stored_events SET rowid=? WHERE rowid=?", (after, before))


def _hashed_again(rows: sqlite3.Connection, position: int, log_id: str, was: bytes, now: bytes) -> None:
    """Change an event's payload, and compute its digest and hash anew, as somebody can who knows how."""
    stream, version, topic, state = rows.execute(
        "SELECT originator_id, originator_version, topic, state FROM stored_events WHERE rowid=?", (position,)
    ).fetchone()
    old = opened(state, where="the row")
    data = bytes(old.data).replace(was, now)
    digest = sha256(bytes.fromhex(old.salt) + data).hexdigest()
    hashed = Hashed(
        causation=old.causation,
        correlation=old.correlation,
        decision=old.decision,
        epoch=old.epoch,
        event_id=old.id,
        log_id=log_id,
        payload_digest=digest,
        prev=old.prev,
        stream=stream,
        time_ms=old.time,
        topic=topic,
        version=version,
    ).hash
    new = msgspec.structs.replace(old, data=msgspec.Raw(data), digest=digest, hash=hashed)
    rows.execute("UPDATE stored_events SET state=? WHERE rowid=?", (as_state(new), position))


def _rewritten(rows: sqlite3.Connection) -> None:
    """Change words of the prefix, and the head that names them; what stands behind in stream `log` was not written yet."""
    at, before = rows.execute(f"SELECT rowid, state FROM stored_events WHERE rowid={_LAST_OF_A}").fetchone()
    place, forked = rows.execute(f"SELECT rowid, state FROM stored_events WHERE {_FORKED}").fetchone()
    ((fork_id,),) = rows.execute("SELECT log_id FROM log_identity").fetchall()
    source_id = msgspec.json.decode(opened(forked, where="the row").data)["logId"]
    _hashed_again(rows, at, source_id, b"three", b"THREE")
    ((after,),) = rows.execute("SELECT state FROM stored_events WHERE rowid=?", (at,)).fetchall()
    was, now = (opened(state, where="the row").hash.encode() for state in (before, after))
    _hashed_again(rows, place, fork_id, was, now)


FORKS: tuple[Kind, ...] = (
    Kind(
        "words of the prefix",
        "verify",
        "changed",
        f"UPDATE stored_events SET state=stated(replace(said(state), 'three', 'THREE')) WHERE rowid={_LAST_OF_A}",
    ),
    Kind(
        "an event of the prefix moved to another position",
        "verify",
        "prefix_mismatch",
        f"UPDATE stored_events SET rowid=8 WHERE rowid={_LAST_OF_A}",
    ),
    Kind(
        "an event of the prefix taken away",
        "verify",
        "missing",
        f"DELETE FROM stored_events WHERE originator_id='{A}' AND originator_version=2",
    ),
    Kind(
        "the last event of a stream of the prefix taken away",
        "verify",
        "prefix_mismatch",
        f"DELETE FROM stored_events WHERE originator_id='{B}' AND originator_version="
        f"(SELECT MAX(originator_version) FROM stored_events WHERE originator_id='{B}')",
    ),
    Kind(
        "a stream of the prefix taken away",
        "verify",
        "prefix_mismatch",
        f"DELETE FROM stored_events WHERE originator_id='{B}'",
    ),
    Kind(
        "a configuration of the prefix taken away",
        "verify",
        "prefix_mismatch",
        "DELETE FROM stored_events WHERE rowid=(SELECT MIN(rowid) FROM stored_events WHERE topic='config_loaded.1')",
    ),
    Kind(
        "an event put into the prefix",
        "verify",
        "prefix_mismatch",
        f"INSERT INTO stored_events SELECT 7, 's9', 1, topic, state FROM stored_events WHERE rowid={_LAST_OF_A}",
    ),
    Kind("a head that the fork names", "verify", "changed", _said_of_fork("heads[0][1]", "2")),
    Kind(
        "the log that the fork names",
        "verify",
        "changed",
        _said_of_fork("logId", "'00000000-0000-4000-8000-000000000000'"),
    ),
    Kind("the place that the fork names", "verify", "changed", _said_of_fork("position", "5")),
    Kind("which edits the fork says it has", "verify", "changed", _said_of_fork("by", "'nobody'")),
    Kind("a proof that the fork has", "verify", "changed", _said_of_fork("proofs[0].index", "2")),
    Kind(
        "how the fork began taken away",
        "verify",
        "changed",
        f"DELETE FROM stored_events WHERE {_FORKED}",
    ),
    Kind("how the fork began put behind another event", "verify", "prefix_mismatch", _later),
    Kind(
        "the id of the fork",
        "verify",
        "changed",
        "UPDATE log_identity SET log_id='11111111-1111-4111-8111-111111111111'",
    ),
    Kind(
        "words of the prefix and its head, each hash computed again", "verify", "prefix_mismatch", _rewritten
    ),
)
"""What is done to a fork."""
