"""Reads sessions of the OpenAI Agents SDK: `SQLiteSession`, `AdvancedSQLiteSession`, `SQLAlchemySession` (IN-3)."""

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from intersession_events.basics.errors import ImportFailed
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object, present
from intersession_events.transcripts.foreign.lines import (
    MOST_BYTES,
    Found,
    encoded,
    entry_of,
    file_of,
    line_of,
    picture_of,
    thread_key,
)
from intersession_events.transcripts.foreign.source import Source, opened_source
from intersession_events.transcripts.openclaw.reading.foreign_json import (
    Unreadable,
    a_count,
    a_list,
    a_text,
    a_time,
    at,
    read_object,
)
from intersession_events.transcripts.openclaw.reading.state import OpenClawState
from intersession_events.transcripts.openclaw.report import Note, Skipped

SYSTEM: Final = "openai-agents"
_EXPECTED: Final = "expected sessions as SQLiteSession, AdvancedSQLiteSession or SQLAlchemySession keeps them"
_MESSAGES: Final = frozenset(["id", "session_id", "message_data", "created_at"])
_SESSIONS: Final = frozenset(["session_id", "created_at", "updated_at"])
_ROLES: Final = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_MAIN: Final = "main"


class _Item(msgspec.Struct, kw_only=True):
    """A row of a session. `branches` are those that it is in, with its turn there."""

    number: int
    time: int
    data: bytes
    branches: dict[str, int | None]

    @property
    def name(self) -> str:
        """Its id as a line: without anything of its words (ERASE-4). A number can be given again once its row was taken back."""
        return f"{self.number}-{self.time}"


_Used = Mapping[tuple[str, int], JsonObject]
"""What each turn of a session has used, by its branch and its number there."""


def read_openai_agents(where: str, agent: str = SYSTEM) -> OpenClawState:
    """Read the database at a path or a `postgresql://` URL. Its sessions become those of `agent`.

    Raises:
        ImportFailed: it can't be read, or has no sessions.
        MissingExtra: a server needs the extra `postgres`.
    """
    with opened_source(where, "its program") as source:
        return _Reader(source, agent).read()


class _Reader:
    def __init__(self, source: Source, agent: str) -> None:
        self._source = source
        self._agent = agent
        self._found = Found()

    def read(self) -> OpenClawState:
        tables = self._source.tables
        # The names of the tables may be chosen; their columns say which they are.
        messages = sorted(name for name, columns in tables.items() if columns == _MESSAGES)
        sessions = sorted(name for name, columns in tables.items() if columns == _SESSIONS)
        if not messages or len(messages) != len(sessions):
            raise ImportFailed(f"{self._source.name} has no tables of sessions; {_EXPECTED}")
        if len(messages) > 1:
            told = ", ".join(messages)
            raise ImportFailed(
                f"{self._source.name} has several tables of messages ({told}): import a copy with one"
            )
        began = {
            str(session): (created, updated)
            for session, created, updated in self._rows("session_id, created_at, updated_at", sessions[0])
        }
        branches = self._branches()
        used = self._used()
        items: dict[str, list[_Item]] = {session: [] for session in began}
        for number, session, data, created in self._rows(
            "id, session_id, message_data, created_at", messages[0], order="id"
        ):
            item = _Item(
                number=number if isinstance(number, int) else 0,
                time=_time(created),
                data=data if isinstance(data, bytes) else str(data).encode("utf-8", "backslashreplace"),
                branches=branches.get(number, {}),
            )
            items.setdefault(str(session), []).append(item)
        for session, found in items.items():
            created, updated = began.get(session, (None, None))
            self._session(session, found, used.get(session, {}), _time(created), _time(updated))
        if not items:
            raise ImportFailed(f"{self._source.name} has no sessions in it; {_EXPECTED}")
        return self._found.state(self._source.name)

    def _rows(self, columns: str, table: str, *, order: str = "1") -> Iterator[tuple[JsonValue, ...]]:
        quoted = table.replace('"', '""')
        yield from self._source.rows(f'SELECT {columns} FROM "{quoted}" ORDER BY {order}')  # noqa: S608 - a name of its own schema

    def _branches(self) -> dict[JsonValue, dict[str, int | None]]:
        """Return the branches of each message, by its row; nothing for a session without branches."""
        found: dict[JsonValue, dict[str, int | None]] = defaultdict(dict)
        if "message_structure" in self._source.tables:
            columns = "message_id, branch_id, user_turn_number"
            for message, branch, turn in self._rows(columns, "message_structure", order="id"):
                found[message][str(branch)] = a_count(turn)
        return found

    def _used(self) -> dict[str, dict[tuple[str, int], JsonObject]]:
        """Return what the turns of each session have used, by branch and turn."""
        found: dict[str, dict[tuple[str, int], JsonObject]] = defaultdict(dict)
        if "turn_usage" in self._source.tables:
            columns = "session_id, branch_id, user_turn_number, input_tokens, output_tokens, total_tokens, input_tokens_details"
            for session, branch, turn, given, output, total, details in self._rows(
                columns, "turn_usage", order="id"
            ):
                usage = {
                    "input": a_count(given),
                    "output": a_count(output),
                    "totalTokens": a_count(total),
                    "cacheRead": a_count(at(_object(details), "cached_tokens")),
                }
                if (number := a_count(turn)) is not None:
                    found[str(session)][str(branch), number] = present(usage)
        return found

    def _session(self, session: str, items: list[_Item], used: _Used, created: int, updated: int) -> None:
        path = f"{self._source.name}/{session}"
        found = _Session(path, items)
        found.count(used)
        self._found.skipped += found.skipped
        self._found.notes += found.notes
        told = f"{SYSTEM}:{self._agent}:{session}:{created}"
        session_id = str(uuid.uuid5(uuid.NAMESPACE_URL, told))
        values = {
            "sessionId": session_id,
            "updatedAt": updated,
            "displayName": session,
            "session_id": session,
        }
        here = thread_key(self._agent, "session", session)
        self._found.entries.append(entry_of(SYSTEM, self._source.name, session, here, values))
        lines = [line_of(kind, item.name, item.time, **fields) for kind, item, fields in found.lines]
        self._found.files.append(
            file_of(path, self._agent, session_id, lines, aside=frozenset(found.aside), modified=updated)
        )


class _Session:
    """The items of a session as lines, each with its kind, what it says, and its row."""

    def __init__(self, path: str, items: list[_Item]) -> None:
        self._path = path
        self.lines: list[tuple[str, _Item, JsonObject]] = []
        self.aside: set[int] = set()
        self.skipped: list[Skipped] = []
        self.notes: list[Note] = []
        self._answers: dict[tuple[str, int], JsonObject] = {}
        self._called: dict[str, str | None] = {}
        self._last: str | None = None
        # Which branch a program goes on with is in no table: the last that was written to.
        self._current = next(
            (next(reversed(item.branches)) for item in reversed(items) if item.branches), _MAIN
        )
        for item in items:
            try:
                values, _ = read_object(item.data, most=MOST_BYTES)
            except Unreadable as reason:
                number = item.number
                self.skipped.append(Skipped(file=path, line=number, last_line=number, reason=str(reason)))
            else:
                self._take(item, values)
        if self.aside:
            what = f"lines are of other branches than {self._current}: kept, and not part of what was said"
            self.notes.append(Note(subject=path, what=f"{len(self.aside)} {what}"))

    def _take(self, item: _Item, values: JsonObject) -> None:
        kind, raw = ("encrypted", None) if "__enc__" in values else _raw(values)
        if kind == "function_call":
            self._called[str(values.get("call_id"))] = a_text(values.get("name"))
        elif kind == "function_call_output" and raw is not None:
            raw["toolName"] = self._called.get(str(values.get("call_id")))
        line = (
            "message" if raw is not None else kind,
            item,
            {"parentId": self._last, "message": raw, "item": values},
        )
        self.lines.append(line)
        if item.branches and self._current not in item.branches:
            self.aside.add(len(self.lines))
        elif raw is not None:
            self._last = item.name
        if raw is not None and raw["role"] == "assistant":
            self._answers.update(
                {(branch, turn): raw for branch, turn in item.branches.items() if turn is not None}
            )

    def count(self, used: _Used) -> None:
        """Give the last answer of each turn what the turn has used: the SDK counts turns."""
        for place, usage in used.items():
            if (answer := self._answers.get(place)) is not None:
                answer["usage"] = usage
            else:
                told = encoded(usage).decode()
                what = f"turn {place[1]} of branch {place[0]} has used {told}, and has no answer here"
                self.notes.append(Note(subject=self._path, what=what))


def _raw(item: JsonObject) -> tuple[str, JsonObject | None]:
    """Return the kind of an item of the Responses API, and its raw form (HIST-3); None where it is no message."""
    kind = a_text(item.get("type")) or "message"
    match kind:
        case "message" if item.get("role") in _ROLES:
            content = item.get("content")
            return kind, {
                "role": _ROLES[str(item["role"])],
                "content": content
                if isinstance(content, str)
                else [_block(part) for part in a_list(content)],
            }
        case "function_call":
            arguments = _object(item.get("arguments"))
            call = {
                "type": "toolCall",
                "id": a_text(item.get("call_id")) or "",
                "name": a_text(item.get("name")) or "unknown",
                "arguments": arguments,
            }
            return kind, {"role": "assistant", "content": [call]}
        case "function_call_output":
            output = item.get("output")
            content = [_block(part) for part in output] if is_list(output) else output
            return kind, {
                "role": "toolResult",
                "toolCallId": a_text(item.get("call_id")),
                "content": content if isinstance(content, str | list) else encoded(content).decode(),
            }
        case "reasoning":
            said = [str(at(part, "text") or "") for part in a_list(item.get("summary"))]
            said += [str(at(part, "text") or "") for part in a_list(item.get("content"))]
            return kind, {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": text} for text in said],
            }
        case _:
            return kind, None


def _block(part: JsonValue) -> JsonObject:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": address} if (picture := picture_of(address)) is not None:
            return picture
        case _:
            return part if is_object(part) else {"type": "text", "text": str(part)}


def _object(value: JsonValue) -> JsonObject:
    if is_object(value):
        return value
    try:
        return read_object(value.encode())[0] if isinstance(value, str) else {}
    except (Unreadable, UnicodeEncodeError):
        return {}


def _time(value: JsonValue) -> int:
    """Return a time of a row, in milliseconds: of a text without a zone, or as a server gives it. Both are of UTC."""
    if isinstance(value, dt.datetime):
        value = value.isoformat()
    return a_time(value) or 0
