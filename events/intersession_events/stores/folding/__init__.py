"""Views folded anew, in a temporary database: to be compared with those of a log, or to take their place."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_events.stores.folding.beside import ViewsBeside, words_of
    from intersession_events.stores.folding.carrying import Carrying, is_carried
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
        schema_of,
        temporary,
    )
    from intersession_events.stores.folding.proof import views_proven

__all__ = [
    "MADE",
    "Carrying",
    "Fold",
    "Layout",
    "Page",
    "PlainSql",
    "ViewsBeside",
    "is_carried",
    "layout_of",
    "lost",
    "made_in",
    "made_of",
    "page_of",
    "schema_of",
    "temporary",
    "views_proven",
    "words_of",
]
