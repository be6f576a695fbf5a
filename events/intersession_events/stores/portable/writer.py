"""The one writer of a log: writes events and their views in one transaction, which fails once another writer took over."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from eventsourcing.persistence import IntegrityError, StoredEvent

from intersession_events.basics.crash_points import crash_point, is_armed
from intersession_events.basics.errors import AppendConflict, LogError, NotStorable, StoreUnavailable
from intersession_events.facts import (
    ExchangeAccepted,
    ExchangeHeld,
    ExchangeReleased,
    HoldRequested,
    HoldWithdrawn,
    TurnRequested,
    kinds_of,
)
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import Committed, OnOutcome, Recorded, StreamAppend, Unavailable
from intersession_events.log.views import Coming
from intersession_events.stores.database import Cursor
from intersession_events.stores.later import tell
from intersession_events.stores.library.frontier import Frontier
from intersession_events.stores.library.mapper import Pending
from intersession_events.stores.portable.appends import Append, Heads, NotTaken, Part, Sealing
from intersession_events.stores.portable.application import LogApplication
from intersession_events.stores.portable.committing import BatchObserver, Committing
from intersession_events.stores.portable.group_commit import Transact, Waiting, Work
from intersession_events.stores.portable.inline_views import Answers, InlineViews
from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.recent import End, KnownIds, LogClock, Recent

T = TypeVar("T")

PUT_TIMEOUT_S: Final = 30.0
PAGE_TIMEOUT_S: Final = 3600.0
"""A page of a rebuild is given this long; it waits behind appends."""


@dataclass(frozen=True, kw_only=True)
class Opened(ABC):
    """The resources of a writer that has opened a log, in its database."""

    epoch: int
    head: int
    recent: Recent
    """The last events."""
    app: LogApplication

    @property
    def recorder(self) -> Committing:
        """What writes."""
        return cast("Committing", self.app.recorder)

    @abstractmethod
    def check(self, cursor: Cursor, whole: str) -> bool:
        """Return, as a transaction begins, whether another program may have written into a view that is not in `whole`."""

    @abstractmethod
    def erased(self) -> None:
        """Remove erased texts from wherever the database keeps replaced rows, as far as that goes with each commit."""

    @abstractmethod
    def let_go(self, *, anew: bool = False) -> Sequence[str]:
        """Have the database let go of all replaced and deleted rows, and return in words what it could not. May take seconds.

        `anew` has it write all of them anew, however large they are: while nobody else is at work.
        """

    @abstractmethod
    def announce(self, gateway: str | None, advertised: str | None) -> None:
        """Publish the address of the writer's gateway to other processes; `advertised` is the one for other machines."""

    @abstractmethod
    def close(self) -> None:
        """Finish the waiting work, and give up the log last."""


class Writer(BatchObserver):
    """Appends, transactions and inline views of one log; each transaction is checked against the epoch."""

    def __init__(
        self,
        opened: Opened,
        *,
        views: InlineViews,
        entropy: Callable[[int], bytes],
        events: EventReader,
        frontier: Frontier,
        by_hand: bool,
        clock: LogClock,
    ) -> None:
        self.recorder = opened.recorder
        self.opened = opened
        self.commits = opened.recorder.commits
        self._events = events
        self._frontier = frontier
        self._heads = Heads(opened.app.chained, opened.recorder)
        self._known = KnownIds(opened.recent.ids)
        self._end = opened.recent.end
        self._topics: set[str] = set()
        self._unsure = False
        """Whether a commit failed since the last, or may have: nobody was told of what it put in the log after all."""
        self._under_way = False
        """Whether events are committed, or may have been, that the frontier does not have yet: others can read them before."""
        self.recorder.observer = self
        self.commits.by_hand = by_hand
        self._sealing = Sealing(
            opened.app.chained,
            opened.recorder,
            opened.epoch,
            entropy,
            self._heads,
            self._known,
            clock,
            opened.app.snapshot_recorder,
        )
        self._views = views
        self._answers: Answers = {}
        """What views asked ahead in the transaction that goes on."""
        self._finished: Sequence[Recorded] | None = None
        """What the transaction put in the log that was finished last, if it was not undone."""

    def head(self) -> int:
        """Return the position of the last event that any reader can have read.

        While a commit is on its way the database alone knows. If that is away, nobody reads what it has: then it is what was heard last.
        """
        if not self._under_way:
            return self._frontier.head
        try:
            return max(self._events.head(), self._frontier.head)
        except StoreUnavailable:
            return self._frontier.head

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
            append = Append(self._sealing, self._parts(batch), on_outcome, behind=behind)
            self.recorder.submit(append, patient=patient)
        except LogError as error:
            tell(on_outcome, Unavailable(error=error))
            return NotTaken(batch[0].stream if batch else "")
        return append

    def append_now(self, batch: Sequence[StreamAppend], timeout: float) -> Committed:
        """Append and wait."""
        self._check_may_wait()
        waiting = Waiting()
        self.append(batch, waiting)
        while self.commits.by_hand and not waiting.is_told and self.commits.step():
            pass
        return waiting.committed(timeout)

    def transact(
        self,
        work: Callable[[Cursor], T],
        timeout: float,
        then: Callable[[], None] = lambda: None,
        *,
        alone: bool = True,
        patient: bool = False,
    ) -> T:
        """Run work in a transaction of its own, between appends; `then` follows a success, before the next transaction.

        Work that need not be `alone` shares the transaction, and the sync, of what waits with it; `patient` work waits for some.
        """
        self._check_may_wait()
        transact = Transact(work, then, self.recorder.failures, alone=alone)
        self.recorder.submit(transact, patient=patient)
        while self.commits.by_hand and not transact.is_done and self.commits.step():
            pass
        return transact.result(timeout)

    # What a transaction consists of beside the work itself, and what the library's event store puts:

    def put(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """Append pending events; consecutive events of a stream follow the version that the first of them expects.

        Raises:
            NotStorable: an event comes from another mapper than the log's own.
            IntegrityError: a stream was not at that version; the library's word for an `AppendConflict`.
            StoreUnavailable: the store could not take it in time.
        """
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
        self.recorder.submit(Append(self._sealing, parts, waiting))
        while self.commits.by_hand and not waiting.is_told and self.commits.step():
            pass
        try:
            waiting.committed(PUT_TIMEOUT_S)
        except AppendConflict as error:
            raise IntegrityError(str(error)) from error
        return [cast("Pending", event).recorded.position for event in stored_events]

    def begin(self) -> None:
        """Drop what was read ahead for the previous transaction."""
        self._known.begin()
        self._sealing.clock.begin()
        self._answers = {}

    def foresee(self, cursor: Cursor, batch: Sequence[Work]) -> None:
        """Read in one round trip what the appends of a batch need, and the events of the log that were not yet told.

        Refuses the transaction if what was acknowledged is not there (`LogRewound`), and sees what was touched.
        """
        # Loops, not comprehensions: of a batch of one append each would be a call of its own.
        streams: set[str] = set()
        coming: list[Coming] = []
        for work in batch:
            for part in work.parts if isinstance(work, Append) else ():
                streams.add(part.stream)
                for event in part.events:
                    coming.append((part.stream, event.draft.event))  # noqa: PERF401
        if self._sealing.mapper.keys is not None:
            self._sealing.mapper.keys.prepare_for(coming)
        self._answers = self._views.ask(cursor, coming)
        if self._unsure or self.recorder.is_elsewhere():
            self._known.read(cursor, end=self._end)
        self._heads.foresee(cursor, streams)
        if self.opened.check(cursor, self._views.whole):
            self._views.look(cursor)

    def finish(self, cursor: Cursor, written: Sequence[Work], *, carefully: bool) -> None:
        """Write the views, and note which topics a reader of this log must know."""
        recorded = self._finished = _recorded(written)
        for event in recorded:
            if event.topic not in self._topics:
                cursor.execute("INSERT INTO log_topics VALUES (?) ON CONFLICT DO NOTHING", (event.topic,))
                self._topics.add(event.topic)
        self._views.apply(cursor, recorded, self._answers, carefully=carefully)
        self._under_way = self._under_way or bool(recorded)
        _pass(_STORING, recorded)

    def committed(self, written: Sequence[Work]) -> None:
        """Move on, before the waiting callers are told."""
        if self._finished is None:  # it was read back
            self._finished = _recorded(written)
        recorded = self._finished
        self._known.committed()
        self._sealing.clock.committed()
        _pass(_STORED, recorded)
        for work in written:
            if isinstance(work, Append) and work.erases:
                crash_point("E2")
                self.opened.erased()
                break
        if self._unsure:
            self._unsure = False
            self._tell_unheard(recorded[0].position - 1 if recorded else None)
        if recorded:
            self._moved_on(recorded)
        self._under_way = self._unsure

    def acknowledged(self) -> None:
        """Tell the listeners that come after the waiting callers."""
        recorded, self._finished = self._finished, None
        if recorded:
            self._frontier.tell_others(recorded)

    def undone(self) -> None:
        """Forget what only that transaction knew."""
        self._finished = None
        self._views.forget()
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
            self._moved_on(unheard)
            self._frontier.tell_others(unheard)

    def _moved_on(self, recorded: Sequence[Recorded]) -> None:
        last = recorded[-1]
        self._end = End(last.position, last.hash)
        # The frontier last: a caller that waits for the position is to find that the first listeners have heard.
        self._frontier.tell_first(recorded)
        self._frontier.advance(last.position)

    def _parts(self, batch: Sequence[StreamAppend]) -> list[Part]:
        parts: list[Part] = []
        for one in batch:
            stream = one.stream
            try:
                stream.encode()
            except UnicodeEncodeError as error:
                raise NotStorable(f"the stream's name {stream!r} can't be encoded: {error}") from error
            if "\0" in stream:
                self.recorder.check_nul(stream)
            events: list[Pending] = []
            for draft in one.drafts:  # a comprehension would be one more call for each part
                events.append(Pending(stream, draft))  # noqa: PERF401
            parts.append(Part(stream, one.expected, events))
        return parts

    def _check_may_wait(self) -> None:
        if not self.commits.may_wait():
            raise StoreUnavailable(
                "the writer's own thread can't wait for the writer: append with a callback"
            )


def _recorded(written: Sequence[Work]) -> list[Recorded]:
    recorded: list[Recorded] = []
    for work in written:
        if isinstance(work, Append):
            recorded += work.written
    return recorded


_STORING: Final[Mapping[type[object], str]] = {
    ExchangeAccepted: "S1",
    TurnRequested: "K1",
    HoldRequested: "H1",
    ExchangeHeld: "H3",
    ExchangeReleased: "H5",
    HoldWithdrawn: "H7",
}
_STORED: Final[Mapping[type[object], str]] = {
    ExchangeAccepted: "S2",
    HoldRequested: "H2",
    ExchangeHeld: "H4",
    ExchangeReleased: "H6",
    HoldWithdrawn: "H8",
}
"""Crash points before and after the commit of an event (docs/reliability.md)."""


def _pass(points: Mapping[type[object], str], recorded: Sequence[Recorded]) -> None:
    for item in recorded if is_armed() else ():
        for kind in kinds_of(item.event):
            if (point := points.get(kind)) is not None:
                crash_point(point)
