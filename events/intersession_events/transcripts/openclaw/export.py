"""Writes facts as lines of a transcript in OpenClaw's format, version 3.

For the files of `transcriptPath` (LIST-5), and for state directories that OpenClaw reads (EXP-1).
"""

from datetime import UTC, datetime
from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonObject, is_object
from intersession_events.facts import Event, LineImported, MessageRecorded, message_in, raw_message
from intersession_events.log.recorded import Recorded

_ENCODER = msgspec.json.Encoder()
_TOKENS: Final = ("input", "output", "cacheRead", "cacheWrite")
_MILLION: Final = 1_000_000


def header_line(session_id: str, time_ms: int) -> bytes:
    """Return the first line of a transcript."""
    return _line({"type": "session", "version": 3, "id": session_id, "timestamp": iso(time_ms), "cwd": ""})


def entry_line(recorded: Recorded, parent: str | None, *, to_go_on: bool = False) -> tuple[str, bytes] | None:
    """Return the id and the line of a recorded message behind entry `parent`; None for an event that has no line.

    Imported lines keep their own fields. Every line says which position of the log it shows. With `to_go_on` a message
    has whatever the original needs to go on behind it.
    """
    event = recorded.event
    shown = {"position": recorded.position}
    match event:
        case MessageRecorded(source=str() as source) | LineImported(source=source):
            try:
                entry: JsonObject = msgspec.json.decode(source, type=JsonObject)
            except (ValueError, RecursionError):
                return None
            if entry.get("type") == "session":
                return None
            name = str(entry.get("id") or recorded.id)
            return name, _line(entry | {"id": name, "parentId": parent, "intersession": shown})
        case _:
            message = message_in(event)
            if message is None:
                return None
            body = raw_message(message)
            del body["id"]
            if to_go_on:
                _complete(body)
            return message.id, _line(
                {
                    "type": "message",
                    "id": message.id,
                    "parentId": parent,
                    "timestamp": iso(message.timestamp),
                    "message": body,
                    "intersession": shown,
                }
            )


def _complete(body: JsonObject) -> None:
    """Give a message the fields without which the original fails: blocks, and the usage of an answer, 0 if unknown."""
    if body["role"] in {"assistant", "toolResult"} and isinstance(body["content"], str):
        body["content"] = [{"type": "text", "text": body["content"]}]
    if body["role"] == "assistant":
        usage = body.get("usage")
        known: JsonObject = usage if is_object(usage) else {}
        total = known.get("costMicros", 0) / _MILLION
        cost = {**dict.fromkeys(_TOKENS, 0), "total": total}
        body["usage"] = {**dict.fromkeys((*_TOKENS, "totalTokens"), 0), "cost": cost, **known}


def kept_line(event: Event) -> tuple[str | None, bytes] | None:
    """Return the entry id and the verbatim line of an imported message; None for one that was recorded here.

    Version 1 of the format has no ids: a message gets the one that it has in the log.
    """
    source = event.source if isinstance(event, MessageRecorded | LineImported) else None
    if source is None:
        return None
    try:
        entry = msgspec.json.decode(source)
    except (ValueError, RecursionError):
        entry = None
    if not is_object(entry) or entry.get("type") == "session":
        return None, source.encode() + b"\n"
    name = entry.get("id")
    if isinstance(event, MessageRecorded) and (not isinstance(name, str) or not name):
        return event.message.id, _line(entry | {"id": event.message.id})
    return (name if isinstance(name, str) else None), source.encode() + b"\n"


def iso(time_ms: int) -> str:
    """Return a time as the original writes it: UTC, milliseconds, `Z`; times outside of the calendar become its first or last."""
    bounded = min(max(time_ms, -62_135_596_800_000), 253_402_300_799_999)
    moment = datetime.fromtimestamp(bounded // 1000, UTC).replace(microsecond=bounded % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _line(entry: JsonObject) -> bytes:
    return _ENCODER.encode(entry) + b"\n"
