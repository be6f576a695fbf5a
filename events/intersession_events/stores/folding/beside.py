"""Views folded beside a log for a reader, where the log's own are not as this version has them; they last as long as the reader."""

import re
import threading
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from intersession_events.log.log import Moment
from intersession_events.log.recorded import SetAside
from intersession_events.log.sql import Question, Row, SqlValue
from intersession_events.log.views import InlineView
from intersession_events.stores.folding.fold import Fold, Progress, Proven, bring, layout_of, temporary

_PAGE: Final = 1_000
_WORD: Final = re.compile(r"\w+")


def words_of(statement: str) -> set[str]:
    """Return the words of a statement; the names of its tables are among them."""
    return set(_WORD.findall(statement))


class ViewsBeside:
    """The views of one log in a temporary database. The writer keeps its own meanwhile: each query first takes in what is new.

    A view is folded once a query names a table of it: who reads events alone waits for none, and who asks for runs does
    not wait for the list of sessions. Each tells `progress` how far it is, a position and the head as it was.
    """

    def __init__(
        self,
        views: Sequence[InlineView],
        *,
        proven: Proven,
        rows: Callable[[int, int, int], Sequence[Row]],
        head: Callable[[], int],
        progress: Progress | None = None,
    ) -> None:
        """Make the views, empty. `rows` returns rows after a position, up to another, and up to a limit."""
        self._proven = proven
        self._rows = rows
        self._head = head
        self._progress = progress
        self._connection = temporary()
        self._folds = [
            (Fold.of_whole_log(view, self._connection), frozenset(layout_of(view).all_tables))
            for view in views
        ]
        self._turn = threading.Lock()

    def each(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Run several."""
        if not questions:
            return []
        with self._turn:
            head = self._head()
            return [self._query(statement, parameters, head=head) for statement, parameters in questions]

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query the views as the log makes them now."""
        with self._turn:
            yield Moment(partial(self._query, head=(head := self._head())), head)

    def set_aside(self, views: Collection[str] = ()) -> Sequence[SetAside]:
        """Return what these views, or all, could not take in, in log order."""
        folds = [fold for fold, _ in self._folds if not views or fold.name in views]
        with self._turn:
            self._bring(folds, self._head())
        found = [one for fold in folds for one in fold.set_aside]
        return sorted(found, key=lambda one: (one.position, one.view))

    def close(self) -> None:
        """Delete the temporary database."""
        with self._turn:
            self._connection.close()

    def _query(self, statement: str, parameters: Sequence[SqlValue], *, head: int) -> list[Row]:
        named = words_of(statement)
        self._bring([fold for fold, tables in self._folds if tables & named], head)
        return self._connection.execute(statement, parameters).fetchall()

    def _bring(self, folds: Sequence[Fold], head: int) -> None:
        """Have views take in what they have not, up to a position."""
        behind = [fold for fold in folds if fold.position < head]
        progress = None if all(fold.position for fold in behind) else self._progress
        to = {fold.name: head for fold in behind}
        bring(behind, lambda after: self._rows(after, head, _PAGE), self._proven, to=to, progress=progress)
        for fold in behind:
            fold.reach(head)
        for fold in folds:
            fold.settle()
