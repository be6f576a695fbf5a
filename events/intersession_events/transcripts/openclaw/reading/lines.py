"""Reads the lines of a transcript, versions 1 to 4: messages, other entries, and reasons for what is neither."""

import msgspec

from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.facts import Message
from intersession_events.transcripts.openclaw.reading.foreign_json import (
    Unreadable,
    a_text,
    a_time,
    at,
    read_object,
)
from intersession_events.transcripts.openclaw.reading.message import to_message
from intersession_events.transcripts.openclaw.reading.state import SourceFile
from intersession_events.transcripts.openclaw.report import Note, Skipped

UNREADABLE = "unreadable"
DUPLICATE = "duplicate"
_VERSIONS = (1, 2, 3, 4)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line that will be in the log, verbatim in `source`.

    `kind` is its type; `message:<role>` for a message outside of a conversation, `abandoned:<role>` for one of a branch
    that was given up, `custom:<customType>` for
    custom entries. `entry_id` is None in version 1. `time` in ms never falls within a file, so that the order of
    the file and the order of time are one; `identity` tells the line from all others of its transcript, for ever.
    """

    file: str
    number: int
    identity: str
    kind: str
    source: str
    time: int
    entry_id: str | None = None
    parent_id: str | None = None
    message: Message | None = None

    @property
    def place(self) -> tuple[str, int]:
        """File and line number: what tells the line from all others of the state."""
        return self.file, self.number

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


def evidence_of(line: Line | None) -> JsonObject | None:
    """Return how evidence names a line."""
    return None if line is None else {"file": line.file, "line": line.number, "entry": line.entry_id}


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript file, read. `start` is its first time."""

    file: SourceFile
    start: int
    lines: tuple[Line, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Note, ...] = ()


def read_transcript(file: SourceFile, not_before: int | None = None) -> Transcript:
    """Read all lines of a file; a bad line is a reason in `skipped`, never an exception.

    `not_before` is the time of the last line of the part before it, if it is a later part of one transcript.
    """
    return _Reader(file, not_before).read()


class _Reader:
    def __init__(self, file: SourceFile, not_before: int | None) -> None:
        self._file = file
        self._lines: list[Line] = []
        self._skipped: list[Skipped] = []
        self._seen: dict[str, bytes] = {}
        self._clock = not_before
        self._backwards = 0
        self._version: JsonValue = None

    def read(self) -> Transcript:
        for number, source in self._file.lines:
            self._line(number, source)
        notes: list[Note] = []
        if self._backwards:
            what = f"{self._backwards} lines have an earlier time than the line before them, and were given its time"
            notes.append(Note(subject=self._file.path, what=what))
        if self._version is not None and self._version not in _VERSIONS:
            what = f"says it is of version {self._version!r}; read as version {_VERSIONS[-1]}"
            notes.append(Note(subject=self._file.path, what=what))
        return Transcript(
            file=self._file,
            start=self._lines[0].time if self._lines else self._last_resort(),
            lines=tuple(self._lines),
            skipped=tuple(self._skipped),
            notes=tuple(notes),
        )

    def _line(self, number: int, source: bytes) -> None:
        try:
            values, raws = read_object(source)
            entry_id = a_text(values.get("id"))
            kind = a_text(values.get("type")) or "untyped"
            time = self._time(values)
            if kind == "session":
                self._version = values.get("version", 1) if self._version is None else self._version
                entry_id = None  # a session's id, not an entry's
            message: Message | None = None
            if kind == "message" and "message" in raws:
                aside = number in self._file.aside
                message = None if aside else self._message(bytes(raws["message"]), entry_id, number, time)
                if message is None:
                    kind = f"{'abandoned' if aside else 'message'}:{a_text(at(values, 'message', 'role')) or 'unknown'}"
            elif kind == "custom":
                kind = f"custom:{a_text(values.get('customType')) or 'unknown'}"
        except (Unreadable, RecursionError) as reason:
            self._skip(number, source, str(reason) if isinstance(reason, Unreadable) else "nested too deep")
            return
        if entry_id is not None and entry_id in self._seen:
            again = "the same line again" if self._seen[entry_id] == source else "another line"
            self._skip(
                number, source, f"duplicate id {entry_id!r}: {again}", keep=self._seen[entry_id] != source
            )
            return
        if entry_id is not None:
            self._seen[entry_id] = source
        self._lines.append(
            Line(
                file=self._file.path,
                number=number,
                identity=entry_id if entry_id is not None else f"#{number}",
                kind=kind,
                source=source.decode(),
                time=self._forward(time),
                entry_id=entry_id,
                parent_id=a_text(values.get("parentId")),
                message=message,
            )
        )

    def _message(self, source: bytes, entry_id: str | None, number: int, time: int) -> Message | None:
        # Version 1 has no ids: place and transcript make one that is the same whenever the file is read.
        own = entry_id if entry_id is not None else f"{self._file.stem}.{number}"
        return to_message(source, entry_id=own, time=time)

    def _skip(self, number: int, source: bytes, reason: str, *, keep: bool = True) -> None:
        kept = keep and _storable(source)
        path = self._file.path
        self._skipped.append(Skipped(file=path, line=number, last_line=number, reason=reason, kept=kept))
        if not kept:
            return
        self._lines.append(
            Line(
                file=path,
                number=number,
                identity=f"#{number}",
                kind=DUPLICATE if reason.startswith("duplicate") else UNREADABLE,
                source=source.decode(),
                time=self._clock if self._clock is not None else self._last_resort(),
            )
        )

    def _time(self, values: JsonObject) -> int:
        for value in (values.get("timestamp"), at(values, "message", "timestamp")):
            time = a_time(value)
            if time is not None:
                return time
        return self._clock if self._clock is not None else self._last_resort()

    def _forward(self, time: int) -> int:
        if self._clock is not None and time < self._clock:
            self._backwards += 1
            return self._clock
        self._clock = time
        return time

    def _last_resort(self) -> int:
        return self._file.closed_ms if self._file.closed_ms is not None else self._file.modified_ms


def _storable(source: bytes) -> bool:
    """Whether the bytes are text that a store takes: the NUL of a torn page is in no text column."""
    try:
        return "\0" not in source.decode()
    except UnicodeDecodeError:
        return False
