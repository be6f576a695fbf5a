"""The log in an SQLite file: one writer, one sync for all that wait, readers on connections of their own."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from intersession_events.log import InlineView, OnCommitted, OnLoaded, Sql
from intersession_events.recorded import Committed, OnOutcome, Recorded, StreamAppend
from intersession_events.stores.ambient import machine_entropy, random_log_id, wall_clock_ms

T = TypeVar("T")


class SqliteLog:
    """A `Log` in one SQLite file, or in memory (`:memory:`)."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        inline: Sequence[InlineView] = (),
        read_only: bool = False,
        clock: Callable[[], int] = wall_clock_ms,
        entropy: Callable[[int], bytes] = machine_entropy,
        new_log_id: Callable[[], str] = random_log_id,
        threads: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def log_id(self) -> str:
        raise NotImplementedError

    @property
    def epoch(self) -> int:
        raise NotImplementedError

    def append(self, batch: Sequence[StreamAppend], on_outcome: OnOutcome) -> None:
        raise NotImplementedError

    def append_now(self, batch: Sequence[StreamAppend], *, timeout: float = 30.0) -> Committed:
        raise NotImplementedError

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        raise NotImplementedError

    def load(self, stream: str, on_loaded: OnLoaded) -> None:
        raise NotImplementedError

    def all(self, *, after: int = 0, to: int | None = None, limit: int | None = None) -> Iterator[Recorded]:
        raise NotImplementedError

    def head(self) -> int:
        raise NotImplementedError

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        raise NotImplementedError

    def transact(self, work: Callable[[Sql], T], *, timeout: float = 30.0) -> T:
        raise NotImplementedError

    def on_committed(self, listener: OnCommitted) -> Callable[[], None]:
        raise NotImplementedError

    def wait_for(self, position: int, *, timeout: float) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
