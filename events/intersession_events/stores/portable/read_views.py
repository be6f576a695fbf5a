"""Where queries of views are answered: from the stored views, or, if these can't be trusted, from views folded beside the log."""

import logging
import re
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import compress
from operator import not_
from typing import Final

from intersession_events.basics.progress import Progress
from intersession_events.log.log import Moment
from intersession_events.log.recorded import SetAside
from intersession_events.log.sql import Question, Row, SqlValue
from intersession_events.log.views import InlineView
from intersession_events.stores.database import Row as EventRow
from intersession_events.stores.database import typed
from intersession_events.stores.folding.fold import Fold, bring, layout_of, temporary
from intersession_events.stores.portable.inline_views import ViewTables
from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.reading.recorder import EVENTS, ReadsLog

_LOGGER: Final = logging.getLogger("intersession.store")

_SET_ASIDE: Final = (
    "SELECT view, position, stream, version, topic, reason FROM set_aside ORDER BY position, view"
)


_PAGE: Final = 1_000
_WORD: Final = re.compile(r"\w+")


def words_of(statement: str) -> set[str]:
    """Return the words of a statement; the names of its tables are among them."""
    return set(_WORD.findall(statement))


class ViewsBeside:
    """The views of one log in a temporary database. The writer keeps its own meanwhile: each query first takes in what is new.

    A view is folded once a query names a table of it: a reader of events alone waits for none, and a query of runs does
    not wait for the list of sessions. Each tells `progress` how far it is, a position and the head as it was.
    """

    def __init__(
        self,
        views: Sequence[InlineView],
        events: EventReader,
        progress: Progress | None,
    ) -> None:
        """Make the views, empty."""
        self._events = events
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
            head = self._events.head()
            return [self._query(statement, parameters, head=head) for statement, parameters in questions]

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query the views as the log makes them now."""
        with self._turn:
            yield Moment(partial(self._query, head=(head := self._events.head())), head)

    def set_aside(self, views: Collection[str] = ()) -> Sequence[SetAside]:
        """Return what these views, or all, could not take in, in log order."""
        folds = [fold for fold, _ in self._folds if not views or fold.name in views]
        with self._turn:
            self._bring(folds, self._events.head())
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
        """Let views take in their missing events, up to a position."""
        behind = [fold for fold in folds if fold.position < head]
        progress = None if all(fold.position for fold in behind) else self._progress
        to = {fold.name: head for fold in behind}

        def rows(after: int) -> list[EventRow]:
            return self._events.rows(after=after, to=head, limit=_PAGE)

        bring(behind, rows, self._events.proven, to=to, progress=progress)
        for fold in behind:
            fold.reach(head)
        for fold in folds:
            fold.settle()


class ReadViews:
    """Answers queries of one log's views."""

    def __init__(
        self,
        recorder: ReadsLog,
        at_one_moment: Callable[[], AbstractContextManager[Moment]],
        views: Sequence[InlineView],
        events: EventReader,
        progress: Progress | None,
    ) -> None:
        """Read by a recorder. `at_one_moment` lends a way to query the database as it is at one moment."""
        self._recorder = recorder
        self._at_one_moment = at_one_moment
        self._views = views
        self._events = events
        self._progress = progress
        self._beside: ViewsBeside | None = None
        self._stale: frozenset[str] = frozenset()
        """The tables of the views that are not as the log has them; all others can be asked where they are stored."""

    def believe(self, tables: ViewTables) -> None:
        """Find out which stored views can be trusted; others are folded beside the log when they are first asked."""
        with typed(self._recorder.failures):
            stale = self._stale_of(tables)
        if stale:
            self.fold_beside(stale)

    def fold_beside(self, stale: Sequence[InlineView]) -> None:
        """Fold the stale ones of the views beside the log when they are first asked; as of one moment with others, those as well."""
        self._stale = frozenset(table for view in stale for table in layout_of(view).all_tables)
        self._beside = ViewsBeside(self._views, self._events, self._progress)

    def each(self, questions: Iterable[Question]) -> list[list[Row]]:
        """Run several statements, in one round trip where the store allows it."""
        asked = list(questions)
        with typed(self._recorder.failures):
            if self._beside is None:
                return self._recorder.each(asked)
            # The events themselves are in the log alone, however its views are read.
            stale = self._stale
            is_beside = [bool(stale & words_of(one)) and EVENTS not in one for one, _ in asked]
            stored = iter(self._recorder.each(compress(asked, map(not_, is_beside))))
            beside = iter(self._beside.each(list(compress(asked, is_beside))))
            return [next(beside if one else stored) for one in is_beside]

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query the log as it is now, for a block."""
        lent = self._at_one_moment if self._beside is None else self._beside.moment
        with typed(self._recorder.failures), lent() as moment:
            yield moment

    def set_aside(self, views: Collection[str] = ()) -> Sequence[SetAside]:
        """Return the events that these views, or any, could not take in, in log order."""
        if self._beside is not None:
            return self._beside.set_aside(views)
        return [
            SetAside(view=view, position=position, stream=stream, version=version, topic=topic, reason=reason)
            for view, position, stream, version, topic, reason in self.each([(_SET_ASIDE, ())])[0]
            if not views or view in views
        ]

    def close(self) -> None:
        """Delete the folded views."""
        if self._beside is not None:
            self._beside.close()

    def _stale_of(self, tables: ViewTables) -> Sequence[InlineView]:
        """Return the views that are not as this version and this log have them; all, if another program has written into one."""
        views = self._views
        if not views:
            return []
        if not tables.are_kept(self._recorder.each):
            _LOGGER.warning(
                "what is noted of the views is gone, or is no table any more: answers come from the events. "
                "`intersession rebuild` makes anew what was changed"
            )
            return views
        with self._at_one_moment() as moment:
            (stored,) = moment.each(("SELECT name, shape, position FROM inline_views", ()))
            head = moment.head
            rows = {name: (shape, position) for name, shape, position in stored if isinstance(position, int)}
            known = [view for view in views if view.name in rows and rows[view.name][0] == view.shape]
            whole = tables.whole(
                lambda questions: moment.each(*questions), [layout_of(view) for view in known]
            )
            if touched := sorted(
                view.name for view in known if rows[view.name][1] < 0 or view.name not in whole
            ):
                _LOGGER.warning(
                    "%s changed by somebody else: not believed, answers come from the events. "
                    "`intersession rebuild` makes anew what was changed",
                    f"the view {touched[0]} was"
                    if len(touched) == 1
                    else f"the views {', '.join(touched)} were",
                )
                return views
            return [view for view in views if view not in known or rows[view.name][1] < head]
