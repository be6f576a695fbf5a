"""The lists over the whole log, newest first and in pages: each a verb of the debugger (FIND-2)."""

from intersession_actors.debugger.lists.calls import (
    Called,
    CallsAnswer,
    CallsOf,
    CallsWanted,
    call_value,
    calls_in,
    list_calls,
    page_of_calls,
)
from intersession_actors.debugger.lists.deliveries import (
    LOST,
    Deliveries,
    DeliveriesAnswer,
    TextsWanted,
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
from intersession_actors.debugger.lists.imports import ImportsAnswer, ImportsOf, list_imports
from intersession_actors.debugger.lists.messages import (
    MessagesAnswer,
    MessagesOf,
    list_messages,
    said_value,
    speaker,
)
from intersession_actors.debugger.lists.paging import LimitGiven, paged
from intersession_actors.debugger.lists.runs import Runs, RunsAnswer, Stands, list_runs

__all__ = [
    "LOST",
    "STREAMS",
    "Called",
    "CallsAnswer",
    "CallsOf",
    "CallsWanted",
    "Deliveries",
    "DeliveriesAnswer",
    "Events",
    "EventsAnswer",
    "EventsWanted",
    "ImportsAnswer",
    "ImportsOf",
    "LimitGiven",
    "MessagesAnswer",
    "MessagesOf",
    "Runs",
    "RunsAnswer",
    "Stands",
    "TextsWanted",
    "call_value",
    "calls_in",
    "deliveries_at",
    "delivery_value",
    "event_brief",
    "event_value",
    "list_calls",
    "list_deliveries",
    "list_events",
    "list_imports",
    "list_messages",
    "list_runs",
    "page_of_calls",
    "paged",
    "said_value",
    "speaker",
    "text_value",
]
