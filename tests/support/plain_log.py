"""A log for tests of views: one SQLite database in memory, no threads, no hashes, views applied as events come."""

import sqlite3
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from intersession_events.facts import Event, ForkedFrom, encode, topic_of
from intersession_events.log.lineage import Lineage
from intersession_events.log.log import Gathers, Moment, OnLoaded
from intersession_events.log.recorded import Gathered, Reads, Recorded, SetAside
from intersession_events.log.states import States
from intersession_events.log.views import InlineView, take_in
from intersession_events.stores.files.store import FileStore, Memory
from intersession_events.stores.folding.fold import PlainSql

T = TypeVar("T")


class PlainLog(Gathers):
    """Takes events one at a time with `put` and answers the reading half of the log protocol."""

    log_id = "00000000-0000-4000-8000-000000000001"
    epoch = 1
    path = place = ":memory:"
    is_encrypted = False
    lineage = Lineage(log_id)
    log_ids = (log_id,)
    forked: ForkedFrom | None = None

    def __init__(self, views: Sequence[InlineView] = ()) -> None:
        self.files = FileStore(Memory())
        self.events: list[Recorded] = []
        self.unreadable: dict[int, Exception] = {}
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self.connection.close)
        self._views = views
        self._listeners: list[Callable[[Sequence[Recorded]], None]] = []
        for view in views:
            view.create(PlainSql(self.connection))

    def put(
        self,
        stream: str,
        *events: Event,
        time: int = 0,
        correlation: str | None = None,
        causation: str | None = None,
    ) -> Recorded:
        taken: list[Recorded] = []
        for event in events:
            version = 1 + sum(1 for recorded in self.events if recorded.stream == stream)
            recorded = Recorded(
                position=len(self.events) + 1,
                stream=stream,
                version=version,
                topic=topic_of(event),
                event=event,
                id=f"e{len(self.events) + 1}",
                time=time,
                causation=causation,
                correlation=correlation,
                epoch=1,
                prev="",
                digest="",
                hash="",
            )
            self.events.append(recorded)
            taken.append(recorded)
            for view in self._views:
                take_in(view, PlainSql(self.connection), [recorded])
        for listener in self._listeners:
            listener(taken)
        return taken[-1]

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        found = [
            recorded
            for recorded in self.events
            if recorded.stream == stream
            and after < recorded.version
            and (to is None or recorded.version <= to)
        ]
        return (found[::-1] if backwards else found)[:limit]

    def gather(self, wanted: Reads, /) -> Gathered:
        return Gathered(
            rows=self.each(wanted.questions),
            events=[one for at in wanted.positions for one in self.all(after=at - 1, to=at)],
            parts=[self.stream(part.stream, after=part.after, to=part.to) for part in wanted.parts],
            streams=[self.stream(stream) for stream in wanted.streams],
            ends=[
                self.stream(of, after=after, to=to, backwards=backwards, limit=limit)
                for of, after, to, backwards, limit in wanted.ends
            ],
        )

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        for recorded in self.events[after:to][:limit]:
            if recorded.position in self.unreadable:
                raise self.unreadable[recorded.position]
            if not topics or recorded.topic in topics:
                yield recorded

    def rows(self, *, after: int | None = 0, limit: int = 1000) -> Sequence[Any]:
        """Return rows as they lie in a log, with an envelope that says nothing."""
        return [
            (one.position, one.stream, one.version, one.topic, b"\3" + bytes(145) + encode(one.event))
            for one in self.events[after or 0 :][:limit]
        ]

    def with_id(self, beginning: str, *, limit: int) -> Sequence[Recorded]:
        return [recorded for recorded in self.events if recorded.id.startswith(beginning)][:limit]

    def streams(self, prefix: str) -> Sequence[str]:
        return sorted({recorded.stream for recorded in self.events if recorded.stream.startswith(prefix)})

    @property
    def states(self) -> States:
        raise NotImplementedError("no view folds a state")

    def head(self) -> int:
        return len(self.events)

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self.connection.execute(statement, parameters).fetchall()

    def each(self, questions: Iterable[tuple[str, Sequence[Any]]]) -> list[list[Any]]:
        return [self.query(*question) for question in questions]

    @property
    def is_remote(self) -> bool:
        return False

    @contextmanager
    def moment(self) -> Generator[Moment]:
        yield Moment(self.query, self.head())

    def on_committed(
        self, listener: Callable[[Sequence[Recorded]], None], of: object = None, *, first: bool = False
    ) -> Callable[[], None]:
        del of, first
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def wait_for(self, position: int, *, timeout: float) -> bool:
        raise NotImplementedError

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table, sorted: what must be equal where views are equal."""
        made = self.query("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")
        indexes = [name for name, sql in made if sql.startswith("CREATE VIRTUAL TABLE")]
        tables = [name for name, _ in made if not name.startswith(tuple(indexes) or "\0")]
        return {
            **{name: sorted(self.query(f"SELECT * FROM {name}"), key=repr) for name in tables},  # noqa: S608
            **{name: self._entries(name) for name in indexes},
        }

    def _entries(self, index: str) -> list[tuple[Any, ...]]:
        """Return what stands in an index of text: how it is laid out depends on how it was filled."""
        self.connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.held USING fts5vocab(main, {index}, instance)"
        )
        return self.query("SELECT term, doc FROM temp.held")

    def set_aside(self, views: Collection[str] = ()) -> Sequence[SetAside]:  # noqa: ARG002 - there are none
        return []

    def load(self, stream: str, on_loaded: OnLoaded, *, after: int = 0) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.connection.close()
