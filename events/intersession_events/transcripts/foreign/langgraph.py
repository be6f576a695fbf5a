"""Reads the checkpoints of LangGraph, of SQLite and of PostgreSQL: threads are sessions, subgraphs their sub-agents (IN-2)."""

import uuid
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import msgspec

from intersession_events.basics.errors import ImportFailed
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object, present
from intersession_events.transcripts.foreign.langchain_messages import kind_of, raw_of
from intersession_events.transcripts.foreign.langgraph_rows import Checkpoint, Key, Rows, Skip
from intersession_events.transcripts.foreign.lines import (
    MOST_BYTES,
    Found,
    encoded,
    entry_of,
    file_of,
    line_of,
    thread_key,
)
from intersession_events.transcripts.foreign.source import Row, opened_source
from intersession_events.transcripts.foreign.values import LangMessage
from intersession_events.transcripts.openclaw.reading.foreign_json import a_text, at
from intersession_events.transcripts.openclaw.reading.state import OpenClawState, RunRecord
from intersession_events.transcripts.openclaw.report import Note, Skipped

SYSTEM: Final = "langgraph"
_SAID: Final = {"__interrupt__": "interrupt", "__resume__": "resume", "__error__": "error"}
"""Channels of the graph's own that say something, and the kinds of lines that they become."""
_INTERRUPT: Final = "langgraph.types.Interrupt"
_PLUMBING: Final = ("__", "branch:", "start:", "join:")
_NO_TASK: Final = "00000000-0000-0000-0000-000000000000"


class _Namespace(msgspec.Struct, kw_only=True):
    """A transcript: that of a thread, or of a subgraph in it. `owners` names the checkpoint of each line."""

    key: SessionKey
    path: str
    lines: list[bytes] = msgspec.field(default_factory=list[bytes])
    owners: list[str] = msgspec.field(default_factory=list[str])
    ids: dict[Key, str] = msgspec.field(default_factory=dict[Key, str])
    taken: set[str] = msgspec.field(default_factory=set[str])
    checkpoints: dict[str, Checkpoint] = msgspec.field(default_factory=dict[str, Checkpoint])
    first: str | None = None
    task: str | None = None


def read_langgraph(where: str, agent: str = SYSTEM) -> OpenClawState:
    """Read the database at a path or a `postgresql://` URL. Its threads become sessions of `agent`.

    Raises:
        ImportFailed: it can't be read, or has no checkpoints.
        MissingExtra: a server needs the extra `postgres`.
    """
    with opened_source(where, "LangGraph") as source:
        rows, found = Rows(source), Found()
        for thread, of_thread in rows.threads():
            _Thread(rows, found, source.name, agent, thread).read(of_thread)
        if not found.files and not found.skipped:
            raise ImportFailed(f"{source.name} has no checkpoints in it")
        return found.state(source.name)


class _Thread:
    """One thread: its checkpoints in order of time, those of its subgraphs among them."""

    def __init__(self, rows: Rows, out: Found, name: str, agent: str, thread: str) -> None:
        self._rows = rows
        self._out = out
        self._name = name
        self._agent = agent
        self._thread = thread
        self._key = thread_key(agent, "thread", thread)
        self._transcripts: dict[str, _Namespace] = {}
        self._seen: set[Key] = set()
        self._counted: set[str] = set()
        self._resumed: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
        self._open: dict[tuple[str, str], str] = {}
        self._clock = 0

    def read(self, rows: Iterable[Row]) -> None:
        """Read the rows of the thread, and take its transcripts in."""
        for number, row in enumerate(rows, start=1):
            found = self._rows.checkpoint(row, number, partial(self._skip, str(row[1])))
            if found is not None:
                self._clock = found.time = max(found.time, self._clock)
                self._take(found)
        for namespace, transcript in self._transcripts.items():
            self._finish(namespace, transcript)

    def _skip(self, namespace: str, number: int, reason: str) -> None:
        path = self._path(namespace)
        self._out.skipped.append(Skipped(file=path, line=number, last_line=number, reason=reason))

    def _skipping(self, found: Checkpoint) -> Skip:
        return partial(self._skip, found.namespace)

    def _path(self, namespace: str) -> str:
        return "/".join(filter(None, (self._name, self._thread, namespace)))

    def _take(self, found: Checkpoint) -> None:
        transcript = self._transcripts.setdefault(
            found.namespace, _Namespace(key=self._key_of(found.namespace), path=self._path(found.namespace))
        )
        before = transcript.checkpoints.get(found.parent or "")
        self._restore(found, before)
        found.messages = dict(_messages_of(found.values))
        transcript.checkpoints[found.name] = found
        for kind, line in self._resumed.pop((found.namespace, found.parent or ""), ()):
            self._open.pop((found.namespace, found.parent or ""), None)
            self._add(
                transcript, found, line_of(kind, f"{found.name}.{kind}", found.time, value=msgspec.Raw(line))
            )
        known = before.messages if before is not None else {}
        given = (
            self._given(found, transcript)
            if found.namespace and transcript.first is None
            else frozenset[Key]()
        )
        last: str | None = None
        for key in found.messages:
            if key not in known and key not in given:
                self._message(transcript, found, key, last)
            self._seen.add(key)
            last = transcript.ids.get(key, last)
        self._state(transcript, found, before, given)
        self._written(transcript, found)

    def _restore(self, found: Checkpoint, before: Checkpoint | None) -> None:
        """Put back the channels of which a checkpoint has the changes alone, written by the tasks of the one before it."""
        counted = found.metadata.get("counters_since_delta_snapshot")
        missing = [name for name in counted if name not in found.values] if is_object(counted) else []
        if before is None or not missing:
            return
        for channel in missing:
            value = before.values.get(channel)
            # Only lists of messages are put together as LangGraph does; of others the last snapshot and the writes behind it are kept.
            written: list[JsonValue] = list(value) if is_list(value) else [] if value is None else [value]
            for write in self._rows.writes(self._thread, before):
                if write.channel == channel:
                    told = self._rows.decoded(
                        channel, write.kind, write.content, found.number, self._skipping(found)
                    )
                    more = told.get(channel)
                    written = _merged(written, more if is_list(more) else [more])
            found.values[channel] = written

    def _given(self, found: Checkpoint, transcript: _Namespace) -> frozenset[Key]:
        """Return the messages that a subgraph was given of its thread's, but for the last that a person said: its task."""
        people = [
            key for key, (_, message) in found.messages.items() if kind_of(message) in {"human", "user"}
        ]
        transcript.task = _text(found.messages[people[-1]][1]) if people else None
        return frozenset(key for key in found.messages if key in self._seen) - frozenset(people[-1:])

    def _message(self, transcript: _Namespace, found: Checkpoint, key: Key, last: str | None) -> None:
        channel, message = found.messages[key]
        own = key[0] or f"{found.name}.{len(transcript.lines) + 1}"
        entry_id = own if own not in transcript.taken else f"{own}@{found.name}"
        transcript.taken.add(entry_id)
        transcript.ids[key] = entry_id
        transcript.first = transcript.first or entry_id
        raw = raw_of(message)
        if raw is not None and raw.get("usage") is not None:
            # A subgraph's answer is in the state of its thread as well: it was paid once.
            if key[0] is not None and key[0] in self._counted:
                del raw["usage"]
            self._counted.add(key[0] or entry_id)
        kind = "message" if raw is not None else f"langgraph:{kind_of(message)}"
        kept = {"checkpoint": found.name, "channel": channel, "message": message}
        line = line_of(kind, entry_id, found.time, parentId=last, message=raw, langgraph=kept)
        if len(line) > MOST_BYTES:
            self._skip(found.namespace, found.number, f"a message longer than {MOST_BYTES} bytes")
        else:
            self._add(transcript, found, line)

    def _state(
        self, transcript: _Namespace, found: Checkpoint, before: Checkpoint | None, given: frozenset[Key]
    ) -> None:
        """Keep the checkpoint itself: where it came from, and the values that are new in it and are no messages."""
        old: JsonObject = before.versions if before is not None else {}
        changed = {
            channel: value
            for channel, value in sorted(found.values.items())
            if not channel.startswith(_PLUMBING)
            and (before is None or found.versions.get(channel) != old.get(channel))
            and not _has_messages(value)
        }
        gone = before.messages.keys() - found.messages.keys() if before is not None else ()
        line = line_of(
            "checkpoint",
            found.name,
            found.time,
            parentId=found.parent,
            metadata=found.metadata,
            values=changed,
            removed=sorted(filter(None, (transcript.ids.get(key) for key in gone))) or None,
            given=sorted(str(key[0]) for key in given) or None,
        )
        if len(line) > MOST_BYTES:
            line = line_of(
                "checkpoint", found.name, found.time, parentId=found.parent, metadata=found.metadata
            )
            self._skip(
                found.namespace, found.number, f"values of a checkpoint, longer than {MOST_BYTES} bytes"
            )
        self._add(transcript, found, line)

    def _written(self, transcript: _Namespace, found: Checkpoint) -> None:
        """Keep what was asked of a person, and what was answered; an answer stands before what came of it."""
        writes = [write for write in self._rows.writes(self._thread, found) if write.channel in _SAID]
        tasks = {(write.channel, write.task) for write in writes}
        for write in writes:
            if write.task == _NO_TASK and any(
                channel == write.channel and task != _NO_TASK for channel, task in tasks
            ):
                continue  # the answer as it came, which a task has as well
            told = self._rows.decoded(
                write.channel, write.kind, write.content, found.number, self._skipping(found)
            )
            if write.channel not in told:
                continue
            kind, value = _SAID[write.channel], encoded(_plainly(told[write.channel]))
            if kind == "resume":
                self._resumed.setdefault((found.namespace, found.name), []).append((kind, value))
                continue
            if kind == "interrupt":
                self._open[found.namespace, found.name] = value.decode()
            entry_id = f"{found.name}.{kind}.{write.task}.{write.number}"
            self._add(transcript, found, line_of(kind, entry_id, found.time, value=msgspec.Raw(value)))

    def _add(self, transcript: _Namespace, found: Checkpoint, line: bytes) -> None:
        transcript.lines.append(line)
        transcript.owners.append(found.name)

    # --- the transcript as a session

    def _key_of(self, namespace: str) -> SessionKey:
        if not namespace:
            return self._key
        own = uuid.uuid5(uuid.NAMESPACE_URL, f"langgraph:{self._thread}:{namespace}")
        return SessionKey.subagent(self._agent, str(own))

    def _finish(self, namespace: str, transcript: _Namespace) -> None:
        newest = max(transcript.checkpoints)
        followed: set[str] = set()
        at_place: str | None = newest
        while at_place is not None and at_place in transcript.checkpoints and at_place not in followed:
            followed.add(at_place)
            at_place = transcript.checkpoints[at_place].parent
        aside = frozenset(
            number for number, owner in enumerate(transcript.owners, start=1) if owner not in followed
        )
        notes: list[Note] = []
        if aside:
            what = "lines are of a branch that was given up: kept, and not part of what was said"
            notes.append(Note(subject=transcript.path, what=f"{len(aside)} {what}"))
        if (waits := self._open.get((namespace, newest))) is not None:
            notes.append(
                Note(
                    subject=transcript.path,
                    what=f"stands at an interrupt, which nobody answered: {waits[:500]}",
                )
            )
        end = transcript.checkpoints[newest].time
        # Another database may have a thread of this name: what it began with tells the two apart.
        began = transcript.first or min(transcript.checkpoints)
        told = f"langgraph:{self._agent}:{self._thread}:{namespace}:{began}"
        session_id = str(uuid.uuid5(uuid.NAMESPACE_URL, told))
        parent, _, node = namespace.rpartition("|")
        depth = namespace.count("|") + 1 if namespace else None
        spawned_by = self._key_of(parent if parent in self._transcripts else "") if namespace else None
        values = present(
            {
                "sessionId": session_id,
                "updatedAt": end,
                "displayName": node.partition(":")[0] or self._thread,
                "spawnedBy": None if spawned_by is None else str(spawned_by),
                "spawnDepth": depth,
                "thread_id": self._thread,
                "checkpoint_ns": namespace or None,
            }
        )
        file = file_of(transcript.path, self._agent, session_id, transcript.lines, aside=aside, modified=end)
        name = self._thread if not namespace else f"{self._thread}|{namespace}"
        entry = entry_of(SYSTEM, self._name, name, transcript.key, values)
        record = self._record(namespace, transcript, newest, spawned_by) if spawned_by is not None else None
        self._out.files.append(file)
        self._out.entries.append(entry)
        self._out.notes += notes
        self._out.records += [record] if record is not None else []

    def _record(
        self, namespace: str, transcript: _Namespace, newest: str, spawned_by: SessionKey
    ) -> RunRecord:
        """Return what is known of a subgraph's run: when it began, and whether its task came to an end."""
        node, _, task = namespace.rpartition("|")[2].partition(":")
        last = transcript.checkpoints[newest]
        parents = last.metadata.get("parents")
        ended = self._rows.wrote(self._thread, task) and (namespace, newest) not in self._open
        failed = any(write.channel == "__error__" for write in self._rows.writes(self._thread, last))
        values = present(
            {
                "childSessionKey": str(transcript.key),
                "requesterSessionKey": str(spawned_by),
                "label": node,
                "task": transcript.task,
                "createdAt": min(each.time for each in transcript.checkpoints.values()),
                "endedAt": last.time if ended else None,
                "outcome": {"status": "error" if failed else "ok" if ended else "unknown"},
                "parents": parents,
            }
        )
        return RunRecord(run_id=f"{self._thread}|{namespace}", values=values, source=encoded(values).decode())


def _messages_of(values: JsonObject) -> Iterator[tuple[Key, tuple[str, LangMessage]]]:
    """Yield the messages of a state, each by what tells it from others."""
    seen: set[bytes] = set()
    for channel in sorted(values, key=lambda name: (name != "messages", name)):
        value = values[channel]
        if channel.startswith(_PLUMBING) or not is_list(value):
            continue
        for number, item in enumerate(value):
            message = _as_message(item, channel)
            if message is None:
                continue
            content = message.content
            name = a_text(message.get("id"))
            # Without an id, two alike are two: what tells them apart is where they stand.
            key = (name, content if name is not None else b"%d " % number + content)
            if key[1] not in seen:
                seen.add(key[1])
                yield key, (channel, message)


def _as_message(item: JsonValue, channel: str) -> LangMessage | None:
    if isinstance(item, LangMessage):
        return item
    if channel == "messages" and is_object(item) and isinstance(item.get("role"), str) and "content" in item:
        return LangMessage(item)
    return None


def _has_messages(value: JsonValue) -> bool:
    return is_list(value) and bool(value) and all(_as_message(item, "messages") is not None for item in value)


def _merged(before: list[JsonValue], more: list[JsonValue]) -> list[JsonValue]:
    """Return a list of messages with others, as LangGraph adds them: one of the same id takes its place."""
    merged = list(before)
    for item in more:
        name = a_text(at(item, "id"))
        place = next((i for i, old in enumerate(merged) if name is not None and at(old, "id") == name), None)
        if is_object(item) and kind_of(item) == "remove":
            merged = [] if name == "__remove_all__" else [old for old in merged if at(old, "id") != name]
        elif place is not None:
            merged[place] = item
        else:
            merged.append(item)
    return merged


def _text(message: LangMessage) -> str | None:
    content = (raw_of(message) or {}).get("content")
    if is_list(content):
        return "\n".join(str(at(block, "text")) for block in content if at(block, "type") == "text")
    return a_text(content)


def _plainly(said: JsonValue) -> JsonValue:
    """Return what was asked, without the names of LangGraph's own types."""
    if is_list(said):
        return [_plainly(one) for one in said]
    return at(said, "value") if at(said, "type") == _INTERRUPT else said
