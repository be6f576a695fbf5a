"""What somebody does to a log who can write its file and compute hashes, and has no key: an erasure that says what they want."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec

from intersession_events.facts import Erased, encode
from intersession_events.log.envelope import FIRST, seal
from intersession_events.log.recorded import Draft
from intersession_events.log.row_state import hash_in, opened


def payload_of_row(path: Path, stream: str, version: int) -> bytes:
    """Return what stands in a row."""
    with closing(sqlite3.connect(path)) as rows:
        ((state,),) = rows.execute(
            "SELECT state FROM stored_events WHERE originator_id=? AND originator_version=?",
            (stream, version),
        )
    return bytes(opened(state, where="the row").data)


def put_in_place(path: Path, stream: str, version: int, payload: bytes) -> None:
    """Let a payload stand in a row as one that is left of what was erased."""
    with closing(sqlite3.connect(path)) as rows, rows:
        ((state,),) = rows.execute(
            "SELECT state FROM stored_events WHERE originator_id=? AND originator_version=?",
            (stream, version),
        )
        envelope = msgspec.structs.replace(opened(state, where="the row"), data=msgspec.Raw(payload), salt="")
        rows.execute(
            "UPDATE stored_events SET state=? WHERE originator_id=? AND originator_version=?",
            (msgspec.json.encode(envelope), stream, version),
        )


def say_erased(path: Path, event: Erased, *, stream: str | None = None, position: int | None = None) -> int:
    """Put an event behind all others (or at a free position) that says so, with hashes that fit; return where it stands."""
    own = stream or f"erased:{event.stream}"
    with closing(sqlite3.connect(path)) as rows, rows:
        ((log_id,),) = rows.execute("SELECT log_id FROM log_identity")
        ((last, time),) = rows.execute("SELECT rowid, state FROM stored_events ORDER BY rowid DESC LIMIT 1")
        before = rows.execute(
            "SELECT originator_version, state FROM stored_events WHERE originator_id=? "
            "ORDER BY originator_version DESC LIMIT 1",
            (own,),
        ).fetchone()
        version, prev = (0, FIRST) if before is None else (before[0], hash_in(before[1], where="the row"))
        end = opened(time, where="the last row")
        at = position or last + 1
        state, _ = seal(
            Draft(event=event, id=f"00000000-0000-4000-8000-{at:012d}", time=end.time),
            "erased.1",
            encode(event),
            log_id=log_id,
            stream=own,
            version=version + 1,
            epoch=end.epoch,
            prev=prev,
            salt=bytes(16),
        )
        rows.execute(
            "INSERT INTO stored_events VALUES (?, ?, ?, 'erased.1', ?)", (at, own, version + 1, state)
        )
        rows.execute("UPDATE sqlite_sequence SET seq=max(seq, ?) WHERE name='stored_events'", (at,))
        rows.execute("INSERT INTO log_topics VALUES ('erased.1') ON CONFLICT DO NOTHING")
    return at


def forge(path: Path, stream: str, version: int, payload: bytes, *, by: str = "operator") -> int:
    """Let a payload stand in a row, and an event at the end authorise it; return where that stands."""
    put_in_place(path, stream, version, payload)
    rows = ((version, sha256(payload).hexdigest()),)
    return say_erased(path, Erased(stream=stream, rows=rows, by=by, reason="asked for"))
