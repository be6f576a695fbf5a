"""The one writer of a log: puts events and their views into one transaction, which fails once another writer took over."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Final, TypeVar, cast

from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteCursor

from intersession_events.crash_points import crash_point
from intersession_events.errors import AppendConflict, LogError, NotStorable, StoreUnavailable
from intersession_events.facts import Event, ExchangeAccepted, TurnRequested
from intersession_events.log import (
    Committed,
    InFlight,
    InlineView,
    OnOutcome,
    Recorded,
    StreamAppend,
    Unavailable,
)
from intersession_events.stores.folding import Fold, Made, made_in, page_of
from intersession_events.stores.later import tell
from intersession_events.stores.library import Fresh, Frontier, Pending
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.appends import Append, Heads, LogClock, NotTaken, Part, Sealing
from intersession_events.stores.sqlite.blocking import Transact, Waiting
from intersession_events.stores.sqlite.event_reader import EventReader
from intersession_events.stores.sqlite.group_commit import Work
from intersession_events.stores.sqlite.inline_views import PAGE, InlineViews
from intersession_events.stores.sqlite.opening import Opened
from intersession_events.stores.sqlite.recorder import COLUMNS, Row
from intersession_events.stores.sqlite.writer_lock import Holder

T = TypeVar("T")

PUT_TIMEOUT_S = 30.0
PAGE_TIMEOUT_S = 3600.0
"""A page of a rebuild is given this long; it waits behind appends."""


class Writer:
    """Appends, transactions and inline views of one log, each transaction checked against the epoch."""

    def __init__(
        self,
        opened: Opened,
        *,
        inline: Sequence[InlineView],
        entropy: Callable[[int], bytes],
        events: EventReader,
        frontier: Frontier,
        by_hand: bool,
        on_folding: Callable[[int, int], None] | None = None,
    ) -> None:
        self._opened = opened
        self._events = events
        self._frontier = frontier
        self._mapper = opened.mapper
        self._heads = Heads(opened.mapper, opened.recorder)
        self._topics: set[str] = set()
        self._unsure = False
        """Whether a commit failed since the last, or may have: nobody was told of what it put in the log after all."""
        self._recorder = opened.recorder
        self._recorder.observer = self
        self._recorder.commits.by_hand = by_hand
        self._sealing = Sealing(
            opened.mapper,
            opened.recorder,
            opened.epoch,
            entropy,
            self._heads,
            LogClock(opened.latest_time),
            opened.app.snapshot_recorder,
        )
        self.views = InlineViews(inline)
        if inline:
            self._take_up_views(on_folding)

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: InFlight | None = None,
    ) -> InFlight:
        """Queue an append; a refusal is told at once, in the calling thread."""
        try:
            parts = [self._part(one) for one in batch]
            append = Append(self._sealing, parts, on_outcome, behind=behind)
            self._recorder.submit(append, patient=patient)
        except LogError as error:
            tell(on_outcome, Unavailable(error=error))
            return NotTaken(batch[0].stream if batch else "")
        return append

    def append_now(self, batch: Sequence[StreamAppend], timeout: float) -> Committed:
        """Append and wait."""
        self._check_may_wait()
        waiting = Waiting()
        self.append(batch, waiting)
        while self._recorder.commits.by_hand and not waiting.is_told and self.step():
            pass
        return waiting.committed(timeout)

    def transact(
        self, work: Callable[[SQLiteCursor], T], timeout: float, then: Callable[[], None] = lambda: None
    ) -> T:
        """Run work in a transaction of its own, between appends; `then` follows a success, before the next."""
        self._check_may_wait()
        transact = Transact(work, then)
        self._recorder.submit(transact)
        while self._recorder.commits.by_hand and not transact.is_done and self.step():
            pass
        return transact.result(timeout)

    def rebuild(self, names: Sequence[str], progress: Callable[[int, int], None] | None) -> None:
        """Build views anew from the log, beside the old ones and while the log goes on, and swap them.

        Raises:
            KeyError: there is no such view.
        """
        if unknown := sorted(set(names) - set(self.views.names)):
            raise KeyError(
                f"no inline view {unknown[0]!r}; there are {', '.join(self.views.names) or 'none'}"
            )
        with ExitStack() as stack:
            folds = [stack.enter_context(closing(self.views.fold(name))) for name in names]
            position = 0
            while len(rows := self._events.rows(after=position, limit=PAGE)) == PAGE:
                position = _fold(folds, rows, self._events.proven)
                if progress is not None:
                    progress(position, self._frontier.head)

            def swap(cursor: SQLiteCursor, position: int = position) -> None:
                while rows := _page(cursor, position):
                    position = _fold(folds, rows, self._events.proven)
                for fold in folds:
                    self.views.swap(cursor, fold)

            def join() -> None:
                for name in names:
                    self.views.join(name)

            self.transact(swap, PAGE_TIMEOUT_S, join)
            if progress is not None:
                progress(self._frontier.head, self._frontier.head)

    def step(self) -> bool:
        """Write one batch in the calling thread (by hand only)."""
        return self._recorder.commits.step()

    @property
    def has_work(self) -> bool:
        """Whether a batch waits to be written."""
        return self._recorder.commits.has_work

    def forget(self) -> None:
        """Take nothing more, and drop what waits."""
        self._recorder.commits.forget()

    def drain(self) -> None:
        """Finish what waits, and take nothing more."""
        self._recorder.close()

    def close(self) -> None:
        """Close, and give up the lock last."""
        self._opened.close()

    def announce(self, gateway: str | None) -> None:
        """Tell other processes where the writer's gateway is."""
        if self._opened.lock is not None:
            self._opened.lock.tell(Holder(pid=os.getpid(), epoch=self._opened.epoch, gateway=gateway))

    # What a transaction consists of beside the work itself, and what the library's event store puts:

    def put(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """Append pending events, those of a stream in a row at the version that the first of them expects."""
        self._check_may_wait()
        parts: list[Part] = []
        for event in stored_events:
            if not isinstance(event, Pending):
                raise NotStorable("a log takes what its own mapper has made")
            stream = cast("str", event.originator_id)
            if parts and parts[-1].stream == stream:
                parts[-1] = Part(stream, parts[-1].expected, [*parts[-1].events, event])
            else:
                parts.append(Part(stream, event.expected, [event]))
        waiting = Waiting()
        self._recorder.submit(Append(self._sealing, parts, waiting))
        while self._recorder.commits.by_hand and not waiting.is_told and self.step():
            pass
        try:
            waiting.committed(PUT_TIMEOUT_S)
        except AppendConflict as error:
            raise IntegrityError(str(error)) from error
        return [cast("Pending", event).recorded.position for event in stored_events]

    def begin(self, cursor: SQLiteCursor) -> None:
        """Refuse the transaction if another writer has taken over (`WriterSuperseded`), and see what was touched."""
        if identity.check_epoch(cursor, self._opened.epoch):
            self.views.look(cursor)

    def finish(self, cursor: SQLiteCursor, written: Sequence[Work], *, carefully: bool) -> None:
        """Write the views, and note which topics a reader of this log must know."""
        recorded = _recorded(written)
        if fresh := {event.topic for event in recorded} - self._topics:
            for topic in sorted(fresh):
                cursor.execute("INSERT OR IGNORE INTO log_topics VALUES (?)", (topic,))
            self._topics |= fresh
        self.views.apply(cursor, recorded, carefully=carefully)
        _pass(_STORING, recorded)

    def committed(self, written: Sequence[Work]) -> None:
        """Move on, before those who wait are told."""
        recorded = _recorded(written)
        _pass(_STORED, recorded)
        if any(isinstance(work, Append) and work.erases for work in written):
            crash_point("E2")
            self._opened.app.datastore.fold()
        if self._unsure:
            self._unsure = False
            self._tell_unheard(recorded[0].position - 1 if recorded else None)
        if recorded:
            self._frontier.advance(recorded[-1].position)

    def acknowledged(self, written: Sequence[Work]) -> None:
        """Tell the listeners."""
        if recorded := _recorded(written):
            self._frontier.tell(recorded)

    def undone(self) -> None:
        """Forget what only that transaction knew."""
        self._heads.forget()
        self._topics.clear()
        self._unsure = True

    def _tell_unheard(self, last: int | None) -> None:
        """Tell the listeners of events up to a position that are in the log though their commit was said to have failed."""
        try:
            unheard = tuple(self._events.all(after=self._frontier.head, to=last))
        except LogError:
            self._unsure = True  # it is looked for again with the next commit
            return
        if unheard:
            self._frontier.advance(unheard[-1].position)
            self._frontier.tell(unheard)

    def _part(self, one: StreamAppend) -> Part:
        try:
            one.stream.encode()
        except UnicodeEncodeError as error:
            raise NotStorable(f"the stream's name {one.stream!r} can't be encoded: {error}") from error
        stored = self._mapper.to_stored_event
        return Part(one.stream, one.expected, [stored(Fresh(one.stream, draft)) for draft in one.drafts])

    def _check_may_wait(self) -> None:
        if not self._recorder.commits.may_wait():
            raise StoreUnavailable(
                "the writer's own thread can't wait for the writer: append with a callback"
            )

    def _take_up_views(self, on_folding: Callable[[int, int], None] | None) -> None:
        """Let each view go on where it ended; one of another shape, not whole, or ahead of the log is built anew."""
        behind: dict[str, bool | None] = {}

        def look(cursor: SQLiteCursor) -> None:
            last, made = _last_position(cursor), made_in(cursor.sqlite_cursor.connection)
            behind.update((name, self._is_behind(cursor, name, last, made)) for name in self.views.names)

        def join() -> None:
            for name, is_behind in behind.items():
                if is_behind is False:
                    self.views.join(name)

        self.transact(look, PAGE_TIMEOUT_S, join)
        for name, is_behind in behind.items():
            if is_behind:
                self._catch_up(name)
        if outdated := [name for name, is_behind in behind.items() if is_behind is None]:
            self.rebuild(outdated, on_folding)

    def _is_behind(self, cursor: SQLiteCursor, name: str, last: int, made: Sequence[Made]) -> bool | None:
        """Return whether a view lacks events; None if it can't go on. In an empty log it begins."""
        position = self.views.position_of(cursor, name, last)
        if position is not None and self.views.is_whole(name, made):
            return position < last
        if last:
            return None
        self.views.begin(cursor, name)
        self.views.mark(cursor, name)
        return False

    def _catch_up(self, name: str) -> None:
        """Take page after page into a view; with the last one it joins those that get each append."""
        ended = False

        def page(cursor: SQLiteCursor) -> None:
            nonlocal ended
            ended = self._take_page(cursor, name) >= _last_position(cursor)

        def join() -> None:
            if ended:
                self.views.join(name)

        while not ended:
            self.transact(page, PAGE_TIMEOUT_S, join)

    def _take_page(self, cursor: SQLiteCursor, name: str) -> int:
        position = self.views.position_of(cursor, name, _last_position(cursor)) or 0
        rows = _page(cursor, position)
        if not rows:
            return position
        page = page_of(rows, self._events.proven)
        self.views.advance(cursor, name, page)
        return page.position


def _fold(folds: Sequence[Fold], rows: Sequence[Row], proven: Callable[[Row], Recorded]) -> int:
    """Take rows into views, and return the position of the last."""
    page = page_of(rows, proven)
    for fold in folds:
        fold.take(page)
    return page.position


def _page(cursor: SQLiteCursor, after: int) -> list[Row]:
    cursor.execute(COLUMNS + "WHERE rowid>? ORDER BY rowid LIMIT ?", (after, PAGE))
    return [tuple(row) for row in cursor.fetchall()]


def _last_position(cursor: SQLiteCursor) -> int:
    cursor.execute("SELECT COALESCE(MAX(rowid), 0) FROM stored_events")
    position: int = cursor.fetchone()[0]
    return position


def _recorded(written: Sequence[Work]) -> list[Recorded]:
    return [event for work in written if isinstance(work, Append) for event in work.recorded]


_STORING: Final[Mapping[type[Event], str]] = {ExchangeAccepted: "S1", TurnRequested: "K1"}
_STORED: Final[Mapping[type[Event], str]] = {ExchangeAccepted: "S2"}
"""Crash points before and after the commit of an event (docs/reliability.md)."""


def _pass(points: Mapping[type[Event], str], recorded: Sequence[Recorded]) -> None:
    for item in recorded:
        point = points.get(type(item.event))
        if point is not None:
            crash_point(point)
