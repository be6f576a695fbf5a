"""Views for somebody who only reads a log whose own are not as this version has them: folded beside it, for as long as it is read."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from intersession_events.log import InlineView, Moment, Row, SetAside, SqlValue
from intersession_events.stores.folding.fold import Fold, Proven, page_of, temporary

Progress = Callable[[int, int], None]


class ViewsBeside:
    """All views of one log, in one temporary database. A writer keeps its own meanwhile: each query takes in what came since.

    The first query folds the log: who reads events alone does not wait for that. It tells `progress` how far it is, a
    position and the head as it was.
    """

    def __init__(
        self,
        views: Sequence[InlineView],
        *,
        proven: Proven,
        rows_behind: Callable[[int], Sequence[Row]],
        head: Callable[[], int],
        progress: Progress | None = None,
    ) -> None:
        self._proven = proven
        self._rows_behind = rows_behind
        self._head = head
        self._progress = progress
        self._connection = temporary()
        self._folds = [Fold(view, self._connection) for view in views]
        self._position = 0
        self._turn = threading.Lock()

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a reading statement on the views as the log makes them now."""
        with self._turn:
            self._catch_up()
            return self._rows(statement, parameters)

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query the views as the log makes them now."""
        with self._turn:
            self._catch_up()
            yield Moment(self._rows, self._position)

    @property
    def set_aside(self) -> Sequence[SetAside]:
        """What could not be taken in, in log order."""
        with self._turn:
            self._catch_up()
        found = [one for fold in self._folds for one in fold.set_aside]
        return sorted(found, key=lambda one: (one.position, one.view))

    def close(self) -> None:
        """Let the temporary database go."""
        with self._turn:
            self._connection.close()

    def _rows(self, statement: str, parameters: Sequence[SqlValue]) -> list[Row]:
        return self._connection.execute(statement, parameters).fetchall()

    def _catch_up(self) -> None:
        progress, self._progress = self._progress, None
        head = 0 if progress is None else self._head()
        while rows := self._rows_behind(self._position):
            page = page_of(rows, self._proven)
            for fold in self._folds:
                fold.take(page)
            self._position = page.position
            if progress is not None:
                progress(self._position, max(head, self._position))
