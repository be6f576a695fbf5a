"""Views of a fork, copied from those of its source log: whatever had ended at the cut is not folded again."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from intersession_events.basics.errors import CorruptEvent, StoreUnavailable, UnknownTopic
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import COLUMNS
from intersession_events.log.views import CarriedView, InlineView, PickingView, take_in
from intersession_events.stores.folding.fold import PlainSql, Proven, layout_of

_FIRST: Final = "SELECT originator_id, originator_version FROM stored_events WHERE rowid=?"
_FROM: Final = (
    COLUMNS + "WHERE originator_id=? AND originator_version>=? AND rowid<=? ORDER BY originator_version"
)
_TOUCHED: Final = "SELECT name FROM inline_views WHERE position < 0"
_OF_TOPICS: Final = COLUMNS + "WHERE topic IN ({}) AND rowid<=? ORDER BY rowid"


class Carrying(NamedTuple):
    """The views that go along into a fork which begins as `source` was at the position `at`.

    `proven` returns the event of a row.
    """

    source: Log
    proven: Proven
    views: Sequence[InlineView]
    at: int

    def fill(self, made: sqlite3.Connection) -> None:
        """Write the rows of these views as of the cut into the fork's file, in its transaction; each view notes that position.

        A view that knows no way, or can't go it, is left out: opening the fork builds it from the events.
        """
        carried = [view for view in self.views if is_carried(view)]
        left_out = {one.view for one in self.source.set_aside([view.name for view in carried])}
        left_out |= {name for (name,) in self.source.query(_TOUCHED, ())}
        here = {position for (position,) in made.execute("SELECT rowid FROM stored_events")}
        for view in carried:
            if view.name in left_out:
                continue
            sql = PlainSql(made)
            try:
                view.create(sql)
                if isinstance(view, CarriedView):
                    with self.source.moment() as moment:
                        left = view.carry_over(sql, moment, at=self.at, here=here)
                    events = self._left(made, left)
                else:
                    events = self._picked(made, view.topics if isinstance(view, PickingView) else ())
                take_in(view, sql, events)
            except (CorruptEvent, StoreUnavailable, UnknownTopic, ValueError, sqlite3.Error):
                view.drop(sql)
                continue
            made.execute("INSERT INTO inline_views VALUES (?, ?, ?)", (view.name, view.shape, self.at))
            there = {name for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type='trigger'")}
            for name, statement in layout_of(view).marks.items():
                if name not in there:
                    made.execute(str(statement))

    def _left(self, made: sqlite3.Connection, positions: Iterable[int]) -> list[Recorded]:
        """Return the events of streams from the first of some positions in each on."""
        begins: dict[str, int] = {}
        for position in sorted(positions):
            for stream, version in made.execute(_FIRST, (position,)):
                begins.setdefault(stream, version)
        rows = [row for begin in begins.items() for row in made.execute(_FROM, (*begin, self.at))]
        return [self.proven(row) for row in sorted(rows, key=itemgetter(0))]

    def _picked(self, made: sqlite3.Connection, topics: Collection[str]) -> list[Recorded]:
        marks = ", ".join("?" * len(topics))
        return [self.proven(row) for row in made.execute(_OF_TOPICS.format(marks), (*topics, self.at))]


def is_carried(view: InlineView) -> bool:
    """Whether a fork begins with a view. Other views are slow to fold and seldom asked: they wait for their first question."""
    return isinstance(view, CarriedView | PickingView)
