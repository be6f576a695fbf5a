"""Views folded anew, in a temporary database: to be compared with those of a log, or to take their place."""

from intersession_events.stores.folding.beside import ViewsBeside
from intersession_events.stores.folding.fold import (
    MADE,
    Fold,
    Layout,
    Page,
    PlainSql,
    layout_of,
    lost,
    made_in,
    made_of,
    page_of,
    temporary,
)
from intersession_events.stores.folding.proof import views_proven

__all__ = [
    "MADE",
    "Fold",
    "Layout",
    "Page",
    "PlainSql",
    "ViewsBeside",
    "layout_of",
    "lost",
    "made_in",
    "made_of",
    "page_of",
    "temporary",
    "views_proven",
]
