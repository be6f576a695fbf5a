"""Brings what a framework kept into lines of transcripts: an entry for each session, a file of numbered lines."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, JsonValue, present
from intersession_events.transcripts.openclaw.reading.keys import kept_aside
from intersession_events.transcripts.openclaw.reading.state import Entry, OpenClawState, RunRecord, SourceFile
from intersession_events.transcripts.openclaw.report import Note, Skipped

MOST_BYTES: Final = 16 * 1024 * 1024
"""The longest line, as in a transcript file."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_PICTURE: Final = re.compile(r"data:(?P<mime>image/[a-z0-9.+-]{1,64});base64,(?P<data>.*)", re.DOTALL)


def encoded(value: JsonValue) -> bytes:
    """Return the same bytes for the same value."""
    return _ENCODER.encode(value)


def line_of(kind: str, entry_id: str, time: int, **fields: JsonValue) -> bytes:
    """Return a line of a transcript; what has no value is left out. `time` is in milliseconds."""
    return encoded({"type": kind, "id": entry_id, "timestamp": time, **present(fields)})


def thread_key(agent: str, prefix: str, name: str) -> SessionKey:
    """Return the key of a thread or session that is not named by a key: `agent:<agent>:<prefix>-<name>`."""
    return kept_aside(agent, prefix, name)


def entry_of(system: str, file: str, name: str, here: SessionKey, values: JsonObject) -> tuple[str, Entry]:
    """Return a session's entry, by its agent; `name` is what the framework calls it by."""
    source = encoded(values).decode()
    entry = Entry(file=file, key=name, values=values, source=source, here=here, system=system)
    return here.agent_id, entry


def file_of(
    path: str, agent: str, stem: str, lines: Sequence[bytes], *, aside: frozenset[int], modified: int
) -> SourceFile:
    """Return a transcript. `aside` has the numbers, from 1, of the lines of branches that were given up."""
    return SourceFile(
        path=path,
        agent=agent,
        stem=stem,
        modified_ms=modified,
        aside=aside,
        lines=tuple(enumerate(lines, start=1)),
    )


class Found(msgspec.Struct):
    """What was found in a database, as it is read."""

    entries: list[tuple[str, Entry]] = msgspec.field(default_factory=list[tuple[str, Entry]])
    files: list[SourceFile] = msgspec.field(default_factory=list[SourceFile])
    records: list[RunRecord] = msgspec.field(default_factory=list[RunRecord])
    skipped: list[Skipped] = msgspec.field(default_factory=list[Skipped])
    notes: list[Note] = msgspec.field(default_factory=list[Note])

    def state(self, source: str) -> OpenClawState:
        """Return it as the state of a source."""
        return OpenClawState(
            source=source,
            entries=tuple(self.entries),
            files=tuple(self.files),
            records=tuple(self.records),
            skipped=tuple(self.skipped),
            notes=tuple(self.notes),
        )


def picture_of(url: object) -> JsonObject | None:
    """Return the block of a picture whose content is in its `data:` URL; None for any other address."""
    found = _PICTURE.fullmatch(url) if isinstance(url, str) else None
    return None if found is None else {"type": "image", "data": found["data"], "mimeType": found["mime"]}
