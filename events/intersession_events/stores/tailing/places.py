"""Says where a view lies that follows a log: in the log's own database where several processes share that, else in a file beside it."""

import logging
from typing import Final

from intersession_events.errors import StoreUnavailable
from intersession_events.log import InlineView, Log
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.inside import KeepsViews, ViewInside
from intersession_events.stores.tailing.view import KeptView

_LOGGER: Final = logging.getLogger("intersession.views")


def kept(view: InlineView, log: Log) -> KeptView:
    """Open the tables of a view that follows a log: in the log's database where that keeps such views, else in a file beside it.

    Raises:
        StoreUnavailable: it can be kept nowhere.
    """
    if isinstance(log, KeepsViews):
        try:
            return ViewInside(view, log)
        except StoreUnavailable as error:
            _LOGGER.info("%s; it is kept in a file", error)
    return ViewFile(view, log)


def kept_inside(log: Log) -> frozenset[str]:
    """Return the names of all views that a log's own database has, where views that follow it are kept there, too."""
    if not isinstance(log, KeepsViews):
        return frozenset()
    return frozenset(name for (name,) in log.kept_rows("SELECT name FROM inline_views"))
