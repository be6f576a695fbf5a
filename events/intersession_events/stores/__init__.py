"""Stores: where a log is kept. `open_log` opens the one that a URL names."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_events.stores.backup import back_up
    from intersession_events.stores.database import MEMORY
    from intersession_events.stores.folding import Carrying, views_proven
    from intersession_events.stores.opened import (
        Located,
        filling_at,
        gateway_of,
        has_writer,
        located,
        open_log,
        writer_of,
    )
    from intersession_events.stores.portable import NAME, Filling, Holder, Moved, PortableLog
    from intersession_events.stores.sqlite import FileFilling, SessionLog, SqliteLog, holder_of
    from intersession_events.stores.tailing import (
        KeptView,
        Tail,
        TailedView,
        Tails,
        ViewFile,
        kept,
        kept_inside,
        kept_to,
        place_of,
    )
    from intersession_events.stores.url import VARIABLE

__all__ = [
    "MEMORY",
    "NAME",
    "VARIABLE",
    "Carrying",
    "FileFilling",
    "Filling",
    "Holder",
    "KeptView",
    "Located",
    "Moved",
    "PortableLog",
    "SessionLog",
    "SqliteLog",
    "Tail",
    "TailedView",
    "Tails",
    "ViewFile",
    "back_up",
    "filling_at",
    "gateway_of",
    "has_writer",
    "holder_of",
    "kept",
    "kept_inside",
    "kept_to",
    "located",
    "open_log",
    "place_of",
    "views_proven",
    "writer_of",
]
