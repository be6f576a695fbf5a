"""Where queries of views are answered: from the stored views, or, if these can't be trusted, from views folded beside the log."""

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import compress
from operator import not_
from typing import Final

from intersession_events.log.log import Moment
from intersession_events.log.recorded import SetAside
from intersession_events.log.sql import Question, Row
from intersession_events.log.views import InlineView
from intersession_events.stores.database import typed
from intersession_events.stores.folding.beside import ViewsBeside, words_of
from intersession_events.stores.folding.fold import layout_of
from intersession_events.stores.portable.inline_views import ViewTables
from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.reading.recorder import EVENTS, ReadsLog

_LOGGER: Final = logging.getLogger("intersession.store")

_SET_ASIDE: Final = (
    "SELECT view, position, stream, version, topic, reason FROM set_aside ORDER BY position, view"
)


class ReadViews:
    """Answers queries of one log's views."""

    def __init__(
        self, recorder: ReadsLog, at_one_moment: Callable[[], AbstractContextManager[Moment]]
    ) -> None:
        """Read by a recorder. `at_one_moment` lends a way to query the database as it is at one moment."""
        self._recorder = recorder
        self._at_one_moment = at_one_moment
        self._beside: ViewsBeside | None = None
        self._stale: frozenset[str] = frozenset()
        """The tables of the views that are not as the log has them; all others can be asked where they are stored."""

    def believe(
        self,
        views: Sequence[InlineView],
        tables: ViewTables,
        events: EventReader,
        on_folding: Callable[[int, int], None] | None,
    ) -> None:
        """Find out which stored views can be trusted; others are folded beside the log when they are first asked."""
        with typed(self._recorder.failures):
            stale = self._stale_of(tables, views)
        if stale:
            self.fold_beside(views, stale, events, on_folding)

    def fold_beside(
        self,
        views: Sequence[InlineView],
        stale: Sequence[InlineView],
        events: EventReader,
        on_folding: Callable[[int, int], None] | None,
    ) -> None:
        """Fold the stale ones of some views beside the log when they are first asked; as of one moment with others, those as well."""
        self._stale = frozenset(table for view in stale for table in layout_of(view).all_tables)
        self._beside = ViewsBeside(
            views,
            proven=events.proven,
            rows=lambda after, to, limit: events.rows(after=after, to=to, limit=limit),
            head=events.head,
            progress=on_folding,
        )

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

    def _stale_of(self, tables: ViewTables, views: Sequence[InlineView]) -> Sequence[InlineView]:
        """Return the views that are not as this version and this log have them; all, if somebody else has written into one."""
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
