"""The full-text index of a log: brings the view up to date, and finds positions in it."""

import heapq
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final, Literal

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.progress import Progress
from intersession_events.log.log import Log
from intersession_events.log.sql import Row, SqlValue, marks
from intersession_events.stores.database import MEMORY
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.places import kept, kept_inside, kept_to
from intersession_events.stores.tailing.tail import Tail
from intersession_events.stores.tailing.view import QueryableView, place_of
from intersession_projections.views.full_text.found import Found, Wanted
from intersession_projections.views.full_text.scan import Scan
from intersession_projections.views.full_text.tokens import Term, holds
from intersession_projections.views.full_text.view import FullTextView, Redact, entry, restored

_PAGE: Final = 256
_AT_ONCE: Final = 200
"""Groups that are asked for in one statement."""
_END: Final = 2**62
_FEW: Final = 2_000
"""Events that the view takes in at once, for every caller."""
_AS_FAST: Final = 32
"""The number of events that are scanned in the time that one takes to be indexed."""
_LOGGER: Final = logging.getLogger("intersession.views")
_COLUMNS: Final = {
    "a": ("agent", "words", "topic"),
    "s": ("session", "words", "topic"),
    "q": ("agent", "private", "topic"),
    "p": ("session", "private", "topic"),
    "f": ("agent", "words", "event"),
    "e": ("session", "words", "event"),
}
"""Of each letter of a group: whose number stands behind it, where its words are, and which kind of events it is of."""


class FullText:
    """The full text of one log. The view lies beside the log or in its database, else in memory while this object lives.

    So it does where the log is kept encrypted.
    """

    def __init__(self, log: Log, redact: Redact, *, indexed: bool | None = None) -> None:
        self._log = log
        self._view = FullTextView(redact, log, indexed=indexed)
        self._in_memory: ViewFile | None = None

    @contextmanager
    def up_to_date(self, progress: Progress | None = None, *, for_all: bool = False) -> Generator[Found]:
        """Bring the view up to date, and return it for queries. `progress` gets the present and the last position.

        Where that would take longer than to look through the log, a reader `for_all` scans the log instead, and
        leaves the view to those who keep it.
        """
        with ExitStack() as opened:
            if for_all and self._is_far_behind():
                yield Scan(self._log)
                return
            file = self._opened(opened)
            Tail(self._log, file).catch_up(progress)  # several may at once: each takes what is still to come
            yield _InView(file, indexed=self._view.indexed)

    def forget(self) -> list[str]:
        """Remove erased texts from the view, wherever there is one, without waiting for the next search; return in words what is left."""
        views: list[QueryableView] = []
        if self._log.place != MEMORY and Path(place_of(self._log.place, self._view.name)).exists():
            views.append(ViewFile(self._view, self._log))
        if self._view.name in kept_inside(self._log):
            views.append(kept(self._view, self._log))
        left: list[str] = []
        for view in views:
            with closing(view):
                if self._log.is_encrypted:
                    view.begin_anew()  # it is of before, and nobody keeps it now
                else:
                    Tail(self._log, view).catch_up()
                left += view.forget()
        return left

    def _is_far_behind(self) -> bool:
        head = self._log.head()
        bearable = max(_FEW, head // _AS_FAST)
        if head <= bearable:
            return False
        view = self._in_memory
        return head - (kept_to(self._view, self._log) if view is None else view.reached()) > bearable

    def _opened(self, opened: ExitStack) -> QueryableView:
        if self._in_memory is not None:
            return self._in_memory
        if self._log.place != MEMORY and not self._log.is_encrypted:
            try:
                return opened.enter_context(closing(kept(self._view, self._log)))
            except StoreUnavailable as error:
                _LOGGER.info("%s; it is kept in memory", error)
        self._in_memory = ViewFile(self._view, self._log, MEMORY)
        return self._in_memory


class _InView:
    """The view, up to date. Without FTS5 it is no index: all words of a group are looked at."""

    def __init__(self, view: QueryableView, *, indexed: bool) -> None:
        self._view = view
        self.indexed = indexed

    def names(self, kind: Literal["agent", "session"]) -> dict[str, int]:
        """Return the numbers of all agents (`agent:NAME`), or of all sessions (by their keys), for groups."""
        rows = self._view.query("SELECT name, no FROM said_names WHERE kind = ?", (kind,))
        return {str(name): int(number) for name, number in rows}

    def positions(self, wanted: Wanted) -> Iterator[int]:
        """Yield the positions of the matches, newest first, read as they are consumed."""
        if not wanted.groups or not wanted.terms:
            return
        parts = (
            [
                self._matched(wanted, wanted.groups[at : at + _AT_ONCE])
                for at in range(0, len(wanted.groups), _AT_ONCE)
            ]
            if self.indexed
            else [self._scanned(wanted, group) for group in wanted.groups]
        )
        last = None
        for position in heapq.merge(*parts, reverse=True):
            if position != last:
                yield position
            last = position

    def _matched(self, wanted: Wanted, groups: Sequence[str]) -> Iterator[int]:
        words = " OR ".join(
            "(" + " AND ".join(_word(group, term) for term in wanted.terms) + ")" for group in groups
        )
        statement = (
            "SELECT w.rowid FROM said_words w CROSS JOIN said_at s ON s.position = w.rowid "  # noqa: S608 - our own words
            f"WHERE said_words MATCH ? AND w.rowid > ? AND w.rowid < ?{_of_topics(wanted)} "
            f"ORDER BY w.rowid DESC LIMIT {_PAGE}"
        )
        return self._pages(wanted, statement, (words,), lambda row: row[0])

    def _scanned(self, wanted: Wanted, group: str) -> Iterator[int]:
        column, words, kind = _COLUMNS[group[0]]
        statement = (
            f"SELECT position, {words} FROM said_at s JOIN said_names n ON n.no = s.topic "  # noqa: S608 - our own words
            f"WHERE s.{column} = ? AND n.kind = ? AND {words} IS NOT NULL AND position > ? AND position < ?"
            f"{_of_topics(wanted)} ORDER BY position DESC LIMIT {_PAGE}"
        )
        return self._pages(
            wanted,
            statement,
            (int(group[1:]), kind),
            lambda row: row[0] if holds(set(restored(row[1])), wanted.terms) else None,
        )

    def _pages(
        self,
        wanted: Wanted,
        statement: str,
        parameters: Sequence[SqlValue],
        position_of: Callable[[Row], int | None],
    ) -> Iterator[int]:
        before = wanted.span.last(_END) + 1
        while True:
            rows = self._view.query(statement, (*parameters, wanted.span.after, before, *wanted.topics))
            yield from (position for position in map(position_of, rows) if position is not None)
            if len(rows) < _PAGE:
                return
            before = int(rows[-1][0])


def _of_topics(wanted: Wanted) -> str:
    if not wanted.topics:
        return ""
    numbers = (
        f"SELECT no FROM said_names WHERE kind IN ('topic', 'event') AND name IN ({marks(wanted.topics)})"  # noqa: S608 - marks
    )
    return f" AND s.topic IN ({numbers})"


def _word(group: str, term: Term) -> str:
    return f'"{entry(group, term.text)}"{"*" if term.begins else ""}'
