"""Reads the rows of LangGraph's tables, and decodes the checkpoints in them (IN-2)."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.plain_json import JsonObject, is_object
from intersession_events.transcripts.foreign.source import Row, Source
from intersession_events.transcripts.foreign.values import Decoder, LangMessage, Undecodable
from intersession_events.transcripts.openclaw.reading.foreign_json import a_time

_EXPECTED: Final = (
    "expected checkpoints as langgraph-checkpoint-sqlite or langgraph-checkpoint-postgres keeps them"
)
_COLUMNS: Final = "thread_id checkpoint_ns checkpoint_id parent_checkpoint_id checkpoint metadata"
_WRITES: Final = "thread_id checkpoint_ns checkpoint_id task_id idx channel type"
_OF_SQLITE: Final = """
    SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata, type FROM checkpoints
    ORDER BY thread_id, checkpoint_id, checkpoint_ns
"""
_OF_POSTGRES: Final = """
    SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint::text, metadata::text, 'json', (
        SELECT array_agg(ARRAY[convert_to(b.channel, 'UTF8'), convert_to(b.type, 'UTF8'), b.blob])
        FROM jsonb_each_text(c.checkpoint -> 'channel_versions') v
        JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
            AND b.channel = v.key AND b.version = v.value
    ) FROM checkpoints c ORDER BY thread_id COLLATE "C", checkpoint_id COLLATE "C", checkpoint_ns COLLATE "C"
"""

Key = tuple[str | None, bytes]
"""A message's id, and its content."""

Skip = Callable[[int, str], None]
"""Hears which checkpoint of a thread, or part of it, could not be read, and why."""


class Write(NamedTuple):
    """What a task wrote on a checkpoint, as it is stored."""

    task: str
    number: int
    channel: str
    kind: object
    content: object


class Checkpoint(msgspec.Struct, kw_only=True):
    """A state of a thread, or of a subgraph in it. `number` counts them; `messages` are those of all channels, by content."""

    number: int
    namespace: str
    name: str
    parent: str | None
    time: int
    metadata: JsonObject
    values: JsonObject
    versions: JsonObject
    messages: dict[Key, tuple[str, LangMessage]] = msgspec.field(
        default_factory=dict[Key, tuple[str, LangMessage]]
    )


class Rows:
    """The rows of a database, a thread at a time.

    Raises:
        ImportFailed: it has no tables of LangGraph.
    """

    def __init__(self, source: Source) -> None:
        table, value = ("checkpoint_writes", "blob") if source.is_server else ("writes", "value")
        source.needs(_EXPECTED, checkpoints=_COLUMNS, **{table: f"{_WRITES} {value}"})
        self._source = source
        self._decoder = Decoder()
        self._writes: dict[tuple[str, str, str], list[Write]] = defaultdict(list)
        self._tasks: set[tuple[str, str]] = set()
        sql = f"SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, {value} FROM {table}"  # noqa: S608 - names of its own schema
        for thread, namespace, checkpoint, task, index, channel, kind, content in source.rows(sql):
            self._tasks.add((str(thread), str(task)))
            if not str(channel).startswith("branch:"):
                number = index if isinstance(index, int) else 0
                write = Write(str(task), number, str(channel), kind, content)
                self._writes[str(thread), str(namespace), str(checkpoint)].append(write)

    def threads(self) -> Iterator[tuple[str, Iterator[Row]]]:
        """Yield each thread with its rows, in the order of their ids, which is that of time."""
        rows = self._source.rows(_OF_POSTGRES if self._source.is_server else _OF_SQLITE)
        for thread, found in groupby(rows, key=lambda row: str(row[0])):
            self._decoder = Decoder()  # remembers the messages of one thread
            yield thread, found

    def checkpoint(self, row: Row, number: int, skip: Skip) -> Checkpoint | None:
        """Decode a row; None where it can't be."""
        _, namespace, name, parent, body, about, kind, *blobs = row
        try:
            value = self._decoder.value(kind, body)
        except Undecodable as reason:
            skip(number, str(reason))
            return None
        if not is_object(value):
            skip(number, "a checkpoint that is no object")
            return None
        metadata = self.decoded("metadata", "null" if about is None else "json", about, number, skip)
        read = _objects(value.get("channel_values"))
        for channel, form, content in (blobs and blobs[0]) or ():
            read.update(self.decoded(bytes(channel).decode(), bytes(form).decode(), content, number, skip))
        return Checkpoint(
            number=number,
            namespace=str(namespace),
            name=str(name),
            parent=None if parent is None else str(parent),
            time=a_time(value.get("ts")) or 0,
            metadata=_objects(metadata.get("metadata")),
            values=read,
            versions=_objects(value.get("channel_versions")),
        )

    def decoded(self, name: str, kind: object, content: object, number: int, skip: Skip) -> JsonObject:
        """Return a value by its name; nothing where there is none, or it can't be read."""
        if kind == "empty":
            return {}
        try:
            return {name: self._decoder.value(kind, content)}
        except Undecodable as reason:
            skip(number, f"{name}: {reason}")
            return {}

    def writes(self, thread: str, checkpoint: Checkpoint) -> list[Write]:
        """Return what tasks have written on a checkpoint."""
        found = self._writes.get((thread, checkpoint.namespace, checkpoint.name), [])
        return sorted(found, key=lambda write: (write.task, write.number))

    def wrote(self, thread: str, task: str) -> bool:
        """Whether a task has written anything: it came to an end, or to an interrupt."""
        return (thread, task) in self._tasks


def _objects(value: object) -> JsonObject:
    return value if is_object(value) else {}
