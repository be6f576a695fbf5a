"""Brings the views of a log to its end when it is opened for writing, and rebuilds views beside the old ones."""

from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Final

from intersession_events.basics.progress import Progress
from intersession_events.log.sql import COLUMNS
from intersession_events.stores.database import Cursor, Row
from intersession_events.stores.folding.fold import bring, page_of
from intersession_events.stores.library.frontier import Frontier
from intersession_events.stores.portable.inline_views import PAGE, InlineViews
from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.writer import PAGE_TIMEOUT_S, Writer

_END: Final = 2**63 - 1


class Keeping:
    """Brings the views of one log to its last event."""

    def __init__(
        self, writer: Writer, views: InlineViews, *, events: EventReader, frontier: Frontier
    ) -> None:
        self._writer = writer
        self._views = views
        self._events = events
        self._frontier = frontier
        self.built: Sequence[str] = ()
        """Which views were built anew when the log was opened."""

    def rebuild(self, names: Sequence[str], progress: Progress | None) -> None:
        """Rebuild views from the log, beside the old ones and while the log is in use, and swap them.

        Raises:
            KeyError: there is no such view.
        """
        if unknown := sorted(set(names) - set(self._views.names)):
            raise KeyError(
                f"no inline view {unknown[0]!r}; there are {', '.join(self._views.names) or 'none'}"
            )
        with ExitStack() as stack:
            folds = [stack.enter_context(closing(self._views.fold(name))) for name in names]
            proven, head = self._events.proven, self._events.head()

            def rows(after: int) -> list[Row]:
                return self._events.rows(after=after, limit=PAGE)

            bring(folds, rows, proven, to=dict.fromkeys(names, head), progress=progress)

            def swap(cursor: Cursor) -> None:
                bring(folds, partial(_page, cursor), proven, to=dict.fromkeys(names, _END))
                for fold in folds:
                    self._views.swap(cursor, fold)

            def join() -> None:
                for name in names:
                    self._views.join(name)

            self._writer.transact(swap, PAGE_TIMEOUT_S, join)
            if progress is not None:
                progress(self._frontier.head, self._frontier.head)

    def take_up(self, on_folding: Progress | None, *, left: Collection[str] = ()) -> list[str]:
        """Continue each view from its position; a view of another shape, not whole, or ahead of the log is rebuilt.

        Those that `left` names are left as they are instead, and returned.
        """
        behind: dict[str, bool | None] = {}

        def look(cursor: Cursor) -> None:
            last, positions = self._views.positions(cursor)
            behind.update(
                (name, positions[name] < last if name in positions else None) for name in self._views.names
            )
            missing = [name for name in behind if name not in positions]
            if missing and not last:  # in an empty log each begins
                with self._writer.recorder.without_answers(cursor):
                    self._views.begin(cursor, missing)
                behind.update(dict.fromkeys(missing, False))

        def join() -> None:
            for name, is_behind in behind.items():
                if is_behind is False:
                    self._views.join(name)

        self._writer.transact(look, PAGE_TIMEOUT_S, join)
        for name, is_behind in behind.items():
            if is_behind and not self._catch_up(name):
                behind[name] = None
        outdated = [name for name, is_behind in behind.items() if is_behind is None]
        if built := [name for name in outdated if name not in left]:
            self.rebuild(built, on_folding)
            self.built = built
        return [name for name in outdated if name in left]

    def _catch_up(self, name: str) -> bool:
        """Take page after page into a view; with the last one it joins those that get each append.

        Return whether it has: somebody else may have written into it meanwhile.
        """
        ended = False

        def page(cursor: Cursor) -> bool:
            nonlocal ended
            last, positions = self._views.positions(cursor)
            if name in positions:
                ended = self._take_page(cursor, name, positions[name]) >= last
            return name in positions

        def join() -> None:
            if ended:
                self._views.join(name)

        while not ended and self._writer.transact(page, PAGE_TIMEOUT_S, join):
            pass
        return ended

    def _take_page(self, cursor: Cursor, name: str, position: int) -> int:
        rows = _page(cursor, position)
        if not rows:
            return position
        page = page_of(rows, self._events.proven)
        self._views.advance(cursor, name, page)
        return page.position


def _page(cursor: Cursor, after: int) -> list[Row]:
    cursor.execute(COLUMNS + "WHERE rowid>? ORDER BY rowid LIMIT ?", (after, PAGE))
    return [tuple(row) for row in cursor.fetchall()]
