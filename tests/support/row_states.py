"""States of rows as JSON, in whichever form they lie, and back: for tests that read or change what a row says."""

import sqlite3

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.row_state import Envelope, as_state, opened


def said(state: bytes) -> bytes:
    """Return a state as canonical JSON."""
    return msgspec.json.encode(opened(state, where="the row"))


def stated(told: bytes | str) -> bytes:
    """Return the state that says what some JSON says: in the short form, if that can say all of it; else the JSON."""
    spelt = told.encode() if isinstance(told, str) else told
    try:
        envelope = msgspec.json.decode(spelt, type=Envelope)
        state = as_state(envelope)
        return state if opened(state, where="the row") == envelope else spelt
    except (ValueError, CorruptEvent):
        return spelt


def with_states(rows: sqlite3.Connection) -> sqlite3.Connection:
    """Let statements of a connection say `said(state)` and `stated(json)`."""
    rows.create_function("said", 1, lambda state: said(state).decode(), deterministic=True)
    rows.create_function("stated", 1, stated, deterministic=True)
    return rows
