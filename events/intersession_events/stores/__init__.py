"""Stores: where a log is kept. `open_log` opens the one that a URL names."""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession_events.stores.backup import back_up
    from intersession_events.stores.opened import open_log
    from intersession_events.stores.sqlite.application import SessionLog
    from intersession_events.stores.tailing.file import ViewFile
    from intersession_events.stores.tailing.tail import Tail
    from intersession_events.stores.view_proof import views_proven

on_demand(globals())

__all__ = ["SessionLog", "Tail", "ViewFile", "back_up", "open_log", "views_proven"]
