"""The lists over the whole log, newest first and in pages: each a verb of the debugger (FIND-2)."""

from intersession_actors.debugger.lists.deliveries import (
    LOST,
    Deliveries,
    DeliveriesAnswer,
    deliveries_at,
    delivery_value,
    list_deliveries,
    text_value,
)
from intersession_actors.debugger.lists.events import (
    STREAMS,
    Events,
    EventsAnswer,
    EventsWanted,
    event_brief,
    event_value,
    list_events,
)
from intersession_actors.debugger.lists.messages import (
    MessagesAnswer,
    MessagesOf,
    list_messages,
    said_value,
    speaker,
)
from intersession_actors.debugger.lists.runs import Runs, RunsAnswer, Stands, list_runs

__all__ = [
    "LOST",
    "STREAMS",
    "Deliveries",
    "DeliveriesAnswer",
    "Events",
    "EventsAnswer",
    "EventsWanted",
    "MessagesAnswer",
    "MessagesOf",
    "Runs",
    "RunsAnswer",
    "Stands",
    "deliveries_at",
    "delivery_value",
    "event_brief",
    "event_value",
    "list_deliveries",
    "list_events",
    "list_messages",
    "list_runs",
    "said_value",
    "speaker",
    "text_value",
]
