"""Reads JSON and JSON5 of other programs: every refusal is an `Unreadable` with a reason in one line."""

import datetime as dt
import json
from typing import Final

import json5
import msgspec

from intersession_events.basics.plain_json import (
    MOST_LEVELS,
    JsonList,
    JsonObject,
    JsonValue,
    is_list,
    is_object,
    is_too_deep,
)
from intersession_events.facts import LARGEST

MOST_JSON5: Final = 131_072
"""Characters of JSON5 that is no plain JSON: its reader is written in Python, and these take it some seconds."""
_RAW: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Unreadable(Exception):
    """A text is not the JSON object it should be; the message is the reason for the report."""


def read_object(
    source: bytes, *, of_objects: bool = False, most: int | None = None
) -> tuple[JsonObject, dict[str, msgspec.Raw]]:
    """Return the values of a JSON object, and the source text of each.

    `of_objects` says that its values are read one by one afterwards, and that one which is too deep is not all of it. `most` is
    the largest number of bytes.

    Raises:
        Unreadable: it is no UTF-8, no JSON, no object, or deeper or larger than a reader can take.
    """
    if most is not None and len(source) > most:
        raise Unreadable(f"longer than {most} bytes")
    try:
        source.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start + 1}") from None
    try:
        values: JsonValue = msgspec.json.decode(source)
        if not is_object(values):
            raise Unreadable("JSON, but no object")
        # Most lines have fewer brackets than the allowed levels.
        many = source.count(b"{") + source.count(b"[") > MOST_LEVELS
        if many and not of_objects and is_too_deep(values):
            raise Unreadable(f"nested too deep: more than {MOST_LEVELS} levels")
        return values, _RAW.decode(source)
    except RecursionError:
        raise Unreadable("nested too deep") from None
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"no JSON: {error}") from None


def read_json5(source: bytes) -> JsonObject:
    """Return the values of a JSON5 object.

    Raises:
        Unreadable: it is no UTF-8, no JSON5 or no object, or it is JSON5 and larger than its reader can take.
    """
    try:
        text = source.decode()
        try:
            # Most files are plain JSON, which the C reader takes in no time.
            values: JsonValue = json.loads(text)
        except ValueError:
            if len(text) > MOST_JSON5:
                raise Unreadable(
                    f"no plain JSON, and for JSON5 larger than {MOST_JSON5} characters: write plain JSON"
                ) from None
            values = json5.loads(text)
    except (ValueError, RecursionError, OverflowError) as error:
        raise Unreadable(f"no JSON5: {error}") from None
    if not is_object(values):
        raise Unreadable("JSON5, but no object")
    return values


def text_of(raw: msgspec.Raw) -> str:
    """Return the source text of a value."""
    return bytes(raw).decode()


def at(value: object, *path: str) -> JsonValue:
    """Return the value at a path of names in nested objects; None if there is none."""
    for name in path:
        value = value.get(name) if is_object(value) else None
    return value


def a_list(value: object) -> JsonList:
    """Return a value if it is an array, else an empty one."""
    return value if is_list(value) else []


def a_text(value: object) -> str | None:
    """Return a value if it is a text that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def a_count(value: object) -> int | None:
    """Return a value if it is a whole number that can be stored."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= LARGEST else None


def a_time(value: object) -> int | None:
    """Return a time in milliseconds, from a number of milliseconds or an ISO text; None if it is neither."""
    if isinstance(value, float):
        return int(value) if 0 <= value <= LARGEST else None
    if not isinstance(value, str):
        return a_count(value)
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    try:
        return a_count((moment - _EPOCH) // _MILLISECOND)
    except OverflowError:
        return None


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
