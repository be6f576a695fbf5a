"""The log as its users see it: what is appended and read, the envelope of a stored event, and the proof that nothing was changed."""

from intersession_events.log.envelope import FIRST, SALT_BYTES, opened, payload_of, seal, unseal
from intersession_events.log.log import InFlight, InlineView, Log, OnCommitted, OnLoaded, Row, Sql, SqlValue
from intersession_events.log.recorded import (
    ANY_VERSION,
    Committed,
    Conflict,
    Draft,
    OnOutcome,
    Outcome,
    Recorded,
    SetAside,
    StreamAppend,
    Unavailable,
)
from intersession_events.log.tables import FORMAT, FORMATS, place_problems, schema_problems
from intersession_events.log.verification import Finding, LogHead, VerifyReport, head, verify_log

__all__ = [
    "ANY_VERSION",
    "FIRST",
    "FORMAT",
    "FORMATS",
    "SALT_BYTES",
    "Committed",
    "Conflict",
    "Draft",
    "Finding",
    "InFlight",
    "InlineView",
    "Log",
    "LogHead",
    "OnCommitted",
    "OnLoaded",
    "OnOutcome",
    "Outcome",
    "Recorded",
    "Row",
    "SetAside",
    "Sql",
    "SqlValue",
    "StreamAppend",
    "Unavailable",
    "VerifyReport",
    "head",
    "opened",
    "payload_of",
    "place_problems",
    "schema_problems",
    "seal",
    "unseal",
    "verify_log",
]
