"""Pages of `sessions_list`: cuts an answer to its size, messages first, then rows, and writes the next cursor (LIST-4)."""

import base64
import binascii
import hashlib
from typing import Final, NamedTuple

import msgspec

from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ready

MAX_BYTES: Final = 256 * 1024
_ENVELOPE: Final = 2048
"""Room for what stands round the rows: counts, flags, the cursor."""
_FLAGS: Final = len(b'"messages":[],"messagesDropped":20,')


class Fit(NamedTuple):
    """How many rows fit, and whether anything was dropped."""

    rows: int
    cut: bool


def fit(entries: list[JsonObject]) -> Fit:
    """Drop messages, oldest first, and count the rows that fit; a row that lost messages says how many.

    Each row gets an equal share of the room for messages, and what it leaves goes to those behind it. One row is
    always kept, else there would be no way on.
    """
    left = MAX_BYTES - _ENVELOPE
    if not any("messages" in entry for entry in entries) and len(msgspec.json.encode(entries)) <= left:
        return Fit(len(entries), cut=False)
    count = 0
    for entry in entries:
        left -= _size({name: value for name, value in entry.items() if name != "messages"})
        left -= _FLAGS if "messages" in entry else 0
        if left < 0 and count:
            break
        count += 1
    cut = count < len(entries)
    left = max(0, left) if not cut else 0
    for at, entry in enumerate(entries[:count]):
        if "messages" not in entry:
            continue
        kept, used = _newest(entry["messages"], left // (count - at))
        left -= used
        dropped = len(entry["messages"]) - len(kept)
        if dropped:
            entry["messages"] = kept
            entry["messagesDropped"] = entry.get("messagesDropped", 0) + dropped
            cut = True
    return Fit(count, cut)


def _newest(messages: list[JsonObject], room: int) -> tuple[list[JsonObject], int]:
    used = 0
    for at in range(len(messages) - 1, -1, -1):
        size = _size(messages[at])
        if used + size > room:
            return messages[at + 1 :], used
        used += size
    return messages, used


def _size(value: JsonObject) -> int:
    """Return the bytes of a value as compact UTF-8 JSON, with the comma behind it."""
    return len(msgspec.json.encode(value)) + 1


_LAST_MS: Final = 2**53


@ready
class Cursor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end of a page. `position` is the list's, `reference_ms` the time that `activeMinutes` counts back from."""

    position: int
    reference_ms: int
    updated_at: int
    key: str
    filters: str


def write_cursor(cursor: Cursor) -> str:
    """Return a cursor as the opaque text that a caller passes back."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()


def read_cursor(text: str, filters: str, head: int) -> Cursor:
    """Parse the cursor that a caller passed back.

    Raises:
        ToolRefused: it is invalid, or was made for other filters.
    """
    try:
        cursor = msgspec.json.decode(base64.b64decode(text, altchars=b"-_", validate=True), type=Cursor)
    except (binascii.Error, ValueError, RecursionError):
        raise _unreadable() from None
    times = (cursor.reference_ms, cursor.updated_at)
    if not 0 <= cursor.position <= head or not all(0 <= time < _LAST_MS for time in times):
        raise _unreadable()
    if cursor.filters != filters:
        raise invalid("cursor", "it was made for other filters, give the same ones or leave the cursor out")
    return cursor


def digest_of_filters(*filters: object) -> str:
    """Return the digest that binds a cursor to its filters."""
    return hashlib.sha256(msgspec.json.encode(filters)).hexdigest()[:16]


def _unreadable() -> ToolRefused:
    return invalid("cursor", "it is no cursor of this list, give a nextCursor as it came or leave it out")
