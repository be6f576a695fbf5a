"""Decides where a tailed view is stored: in the log's own database if several processes share that, else in a file beside it."""

import logging
from contextlib import closing
from pathlib import Path
from typing import Final

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.log import Log
from intersession_events.log.views import InlineView
from intersession_events.stores.database import MEMORY
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.inside import KeepsViews, ViewInside
from intersession_events.stores.tailing.view import QueryableView, place_of

_LOGGER: Final = logging.getLogger("intersession.views")


def kept(view: InlineView, log: Log) -> QueryableView:
    """Open the tables of a tailed view: in the log's database if that stores such views, else in a file beside it.

    Raises:
        StoreUnavailable: it can be kept nowhere.
    """
    if isinstance(log, KeepsViews):
        try:
            return ViewInside(view, log)
        except StoreUnavailable as error:
            _LOGGER.info("%s; it is kept in a file", error)
    return ViewFile(view, log)


def kept_to(view: InlineView, log: Log) -> int:
    """Return the position of a tailed view that a process keeps; 0 if none does. It begins no view."""
    if isinstance(log, KeepsViews):
        found = log.kept_rows("SELECT shape, position FROM inline_views WHERE name = ?", (view.name,))
        return found[0][1] if found and found[0][0] == view.shape else 0
    if log.place == MEMORY or not Path(place_of(log.place, view.name)).exists():
        return 0
    try:
        with closing(ViewFile(view, log)) as file:
            return file.reached()
    except StoreUnavailable as error:
        _LOGGER.info("%s", error)
        return 0


def kept_inside(log: Log) -> frozenset[str]:
    """Return the names of all tailed views in a log's own database, if they are stored there."""
    if not isinstance(log, KeepsViews):
        return frozenset()
    return frozenset(name for (name,) in log.kept_rows("SELECT name FROM inline_views"))
