"""Stores: where a log is kept. `open_log` opens the one that a URL names."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_events.stores.backup import back_up
    from intersession_events.stores.database import MEMORY
    from intersession_events.stores.folding import Carrying, views_proven
    from intersession_events.stores.forks_removed import remove_fork
    from intersession_events.stores.migrating import Migrated, migrate
    from intersession_events.stores.opened import Located, gateway_of, located, open_log, writer_of
    from intersession_events.stores.portable import NAME, Holder, PortableLog
    from intersession_events.stores.sqlite import SessionLog, SqliteLog, holder_of
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
    from intersession_events.stores.written import has_writer

__all__ = [
    "MEMORY",
    "NAME",
    "VARIABLE",
    "Carrying",
    "Holder",
    "KeptView",
    "Located",
    "Migrated",
    "PortableLog",
    "SessionLog",
    "SqliteLog",
    "Tail",
    "TailedView",
    "Tails",
    "ViewFile",
    "back_up",
    "gateway_of",
    "has_writer",
    "holder_of",
    "kept",
    "kept_inside",
    "kept_to",
    "located",
    "migrate",
    "open_log",
    "place_of",
    "remove_fork",
    "views_proven",
    "writer_of",
]
