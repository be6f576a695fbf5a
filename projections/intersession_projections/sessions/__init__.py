"""The session list and its order, the history of a session, and which thread belongs to which session."""

from intersession_projections.sessions.history import End, History, HistoryPage, UnknownMessage
from intersession_projections.sessions.list import Sessions
from intersession_projections.sessions.names import SessionNames
from intersession_projections.sessions.row import SessionRow, evolve_row
from intersession_projections.sessions.taken_order import Taken, taken_backwards, taken_forwards, with_run
from intersession_projections.sessions.threads import ThreadBindings, ThreadBindingsView
from intersession_projections.sessions.view import SessionListView
from intersession_projections.sessions.wanted import Seen, Wanted

__all__ = [
    "End",
    "History",
    "HistoryPage",
    "Seen",
    "SessionListView",
    "SessionNames",
    "SessionRow",
    "Sessions",
    "Taken",
    "ThreadBindings",
    "ThreadBindingsView",
    "UnknownMessage",
    "Wanted",
    "evolve_row",
    "taken_backwards",
    "taken_forwards",
    "with_run",
]
