"""The cursor of `sessions_list`: where a page ended, in which list, and for which filters (LIST-7)."""

import base64
import binascii
import hashlib
from typing import Any, Final

import msgspec

from intersession_actors.errors import ToolRefused
from intersession_actors.tools.arguments import invalid
from intersession_events.fact import ready

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
    """Return a cursor as the opaque text a caller gives back."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()


def read_cursor(text: str, filters: str, head: int) -> Cursor:
    """Return the cursor that a caller gave back.

    Raises:
        ToolRefused: it is none, or was made for other filters.
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


def digest_of_filters(*filters: Any) -> str:
    """Return what binds a cursor to its filters."""
    return hashlib.sha256(msgspec.json.encode(filters)).hexdigest()[:16]


def _unreadable() -> ToolRefused:
    return invalid("cursor", "it is no cursor of this list, give a nextCursor as it came or leave it out")
