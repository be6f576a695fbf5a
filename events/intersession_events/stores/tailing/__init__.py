"""Views that follow the log in their own time, as projections of the eventsourcing library: an append never waits for them."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_events.stores.tailing.file import ViewFile
    from intersession_events.stores.tailing.places import kept, kept_inside, kept_to
    from intersession_events.stores.tailing.tail import Tail
    from intersession_events.stores.tailing.tails import Tails
    from intersession_events.stores.tailing.view import KeptView, TailedView, place_of

__all__ = [
    "KeptView",
    "Tail",
    "TailedView",
    "Tails",
    "ViewFile",
    "kept",
    "kept_inside",
    "kept_to",
    "place_of",
]
