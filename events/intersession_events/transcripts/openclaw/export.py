"""Writes facts as lines of a transcript in OpenClaw's format, version 3, for the files of `transcriptPath` (LIST-5)."""

from datetime import UTC, datetime

import msgspec

from intersession_events.facts import LineImported, MessageRecorded, raw_message
from intersession_events.log import Recorded
from intersession_events.plain_json import JsonObject

_ENCODER = msgspec.json.Encoder()


def header_line(session_id: str, time_ms: int) -> bytes:
    """Return the first line of a transcript."""
    return _line({"type": "session", "version": 3, "id": session_id, "timestamp": iso(time_ms), "cwd": ""})


def entry_line(recorded: Recorded, parent: str | None) -> tuple[str, bytes] | None:
    """Return the id and the line of a recorded message behind entry `parent`; None for an event that has no line.

    Imported lines keep their own fields. Every line says which position of the log it shows.
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
        case MessageRecorded(message=message):
            body = raw_message(message)
            del body["id"]
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
        case _:
            return None


def iso(time_ms: int) -> str:
    """Return a time as the original writes it: UTC, milliseconds, `Z`; the earliest or latest there is beyond those."""
    bounded = min(max(time_ms, -62_135_596_800_000), 253_402_300_799_999)
    moment = datetime.fromtimestamp(bounded // 1000, UTC).replace(microsecond=bounded % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _line(entry: JsonObject) -> bytes:
    return _ENCODER.encode(entry) + b"\n"
