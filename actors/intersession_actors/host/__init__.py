"""Calls code that is not ours: on threads, on event loops, to a host's own actors, and only where its library is installed."""

from intersession_actors.host.actors import HostActor, asking, is_host_actor
from intersession_actors.host.calls import Call, Came, Outcome, Outside, Raised
from intersession_actors.host.extras import MissingExtra, imported
from intersession_actors.host.loop import OwnLoop

__all__ = [
    "Call",
    "Came",
    "HostActor",
    "MissingExtra",
    "Outcome",
    "Outside",
    "OwnLoop",
    "Raised",
    "asking",
    "imported",
    "is_host_actor",
]
