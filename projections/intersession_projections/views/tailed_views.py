"""The list of tailed views: no caller waits for them."""

import logging
from collections.abc import Collection
from contextlib import closing
from typing import Final

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.progress import Progress
from intersession_events.log.log import Log
from intersession_events.log.views import InlineView
from intersession_events.stores.tailing.places import kept
from intersession_events.stores.tailing.tail import Tail
from intersession_events.stores.tailing.view import QueryableView
from intersession_projections.views.full_text.view import FullTextView, Redact
from intersession_projections.views.usage import UsageView

_LOGGER: Final = logging.getLogger("intersession.views")


def tailed_views(redact: Redact, log: Log | None = None) -> tuple[InlineView, ...]:
    """Return new instances of them all, like `inline_views`.

    Of a log in a file they lie in `<store>.views`, each in a file of its own, else in the log's database.
    `redact` says what of a message strangers read; `log` is what they are filled from.
    """
    return (FullTextView(redact, log), UsageView())


def take_in(log: Log, redact: Redact, progress: Progress | None = None) -> None:
    """Bring them all up to date, and close them: used after many events were added to a log.

    `progress` gets the position and the last one, for one view after the other.
    """
    for tail in tails_of(log, [view.name for view in tailed_views(redact)], redact):
        with closing(tail.view):
            tail.catch_up(progress)


def tails_of(log: Log, names: Collection[str], redact: Redact) -> list[Tail[QueryableView]]:
    """Return the runners of the named views of a log; a view that can't be opened is left out, and logged."""
    tails: list[Tail[QueryableView]] = []
    for view in tailed_views(redact, log):
        # The words of a log that is kept encrypted are in no other place.
        if view.name in names and not (log.is_encrypted and isinstance(view, FullTextView)):
            try:
                tails.append(Tail(log, kept(view, log), patient=True))
            except StoreUnavailable as error:
                _LOGGER.warning("%s", error)
    return tails
