"""A tailed view in the log's own database, where several processes share that: rows and position in one transaction."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.views import InlineView
from intersession_events.stores.database import Cursor
from intersession_events.stores.folding.fold import Page, layout_of
from intersession_events.stores.portable.inline_views import InlineViews
from intersession_events.stores.tailing.view import QueryableView

if TYPE_CHECKING:
    from intersession_events.stores.postgres.log import PostgresLog

_PATIENCE_S: Final = 2.0
"""How long to wait for the process that keeps a view, if it can't be written here and makes progress."""
_STILL_S: Final = 0.5
"""How long it may stand still before it counts as abandoned."""
_LOOK_S: Final = 0.05
_STANDS: Final = (
    "SELECT shape, position, (SELECT MAX(rowid) FROM stored_events) FROM inline_views WHERE name = ?"
)


class ViewInside(QueryableView):
    """The tables of one view beside the events. Its shape and position are stored with those of inline views.

    So it is proven as they are, and made anew if it is of another shape, or somebody else has written into it.
    """

    def __init__(self, view: InlineView, log: "PostgresLog") -> None:
        """Take up a view of a log, or begin it.

        Raises:
            StoreUnavailable: it is behind, and can't be written here; or the store is away.
        """
        super().__init__(view)
        self._log = log
        self._name = view.name
        self._shape = view.shape
        self._layout = layout_of(view)
        self._views = InlineViews([view], log.view_tables)
        if not log.may_keep():
            self._position = self._waited_for()
        elif (position := self._stands_at()) is None:
            self.begin_anew()
        else:
            self._position = position

    def reached(self) -> int:
        """Read its position: another process may keep it current."""
        self._position = self._stands_at() or 0
        return self._position

    def take(self, events: Sequence[Recorded], position: int) -> None:
        """Take events in and store the position, in one transaction; an event that fails is set aside."""
        with self._log.keeping(self._name) as cursor:
            reached = self._written(cursor)
            if (
                self._position <= reached < position
            ):  # else somebody is ahead of this page, or has begun it anew
                fresh = [event for event in events if event.position > reached]
                self._views.advance(cursor, self._name, Page(fresh, (), position))
                reached = position
        self._position = reached

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a reading statement on the view's tables; rows are tuples."""
        return self._log.kept_rows(statement, parameters)

    def begin_anew(self) -> None:
        """Empty it."""
        with self._log.keeping(self._name) as cursor:
            self._views.begin(cursor, [self._name])
        self._position = 0

    def forget(self) -> Sequence[str]:
        """Have the server write its tables anew."""
        return self._log.let_go_of(self._layout.all_tables)

    def _stands_at(self) -> int | None:
        """Return how far it has come; None if it has to be made anew."""
        found = self._log.kept_rows(_STANDS, (self._name,))
        if not found or found[0][0] != self._shape or not 0 <= found[0][1] <= (found[0][2] or 0):
            return None
        position: int = found[0][1]
        return position if self._log.view_tables.whole(self._log.kept_together, [self._layout]) else None

    def _written(self, cursor: Cursor) -> int:
        """Return its position, inside a transaction; a view that another program has written into is begun anew."""
        cursor.execute(_STANDS, (self._name,))
        row = cursor.fetchone()
        if row is not None and row[0] != self._shape:
            raise StoreUnavailable(f"{self.said} is kept by another version, in another shape")
        if row is None or row[1] < 0:
            self._views.begin(cursor, [self._name])
            return 0
        position: int = row[1]
        return position

    def _waited_for(self) -> int:
        """Wait for the host that keeps it, if there is one and it does."""
        never = threading.Event()
        ((wanted,),) = self._log.kept_rows("SELECT COALESCE(MAX(rowid), 0) FROM stored_events")
        before, still = -1, 0
        for _ in range(int(_PATIENCE_S / _LOOK_S)):
            if (position := self._stands_at()) is None:
                break
            if position >= wanted:
                return position
            before, still = position, still + 1 if position == before else 0
            if still * _LOOK_S > _STILL_S or self._log.written_by() is None:
                break
            never.wait(_LOOK_S)
        raise StoreUnavailable(f"{self.said} is behind, and can't be written here")
