"""Decides where a tailed view is stored: in the log's own database if several processes share that, else in a file beside it."""

import logging
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.log import Log
from intersession_events.log.other_words import as_it_is
from intersession_events.log.views import InlineView
from intersession_events.stores.database import MEMORY
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.inside import ViewInside
from intersession_events.stores.tailing.view import QueryableView, place_of

if TYPE_CHECKING:
    from intersession_events.stores.postgres.log import PostgresLog

_LOGGER: Final = logging.getLogger("intersession.views")


def kept(view: InlineView, log: Log) -> QueryableView:
    """Open the tables of a tailed view: in the log's database if that stores such views, else in a file beside it.

    Raises:
        StoreUnavailable: it can be kept nowhere.
    """
    if (shared := _shared(log)) is not None:
        try:
            return ViewInside(view, shared)
        except StoreUnavailable as error:
            _LOGGER.info("%s; it is kept in a file", error)
    return ViewFile(view, log)


def kept_to(view: InlineView, log: Log) -> int:
    """Return the position of a tailed view that a process keeps; 0 if none does. It begins no view."""
    if (shared := _shared(log)) is not None:
        found = shared.kept_rows("SELECT shape, position FROM inline_views WHERE name = ?", (view.name,))
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
    shared = _shared(log)
    if shared is None:
        return frozenset()
    return frozenset(name for (name,) in shared.kept_rows("SELECT name FROM inline_views"))


def _shared(log: Log) -> "PostgresLog | None":
    """Return a log whose database keeps tailed views as well; None for any other."""
    log = as_it_is(log)
    return cast("PostgresLog", log) if isinstance(log, PortableLog) and log.keeps_views else None
