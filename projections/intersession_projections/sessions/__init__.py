"""The session list and its order, the history of a session, and which thread belongs to which session."""

from intersession_projections.sessions.history import History, HistoryPage, UnknownMessage
from intersession_projections.sessions.list import SessionListView, Sessions
from intersession_projections.sessions.order import Seen
from intersession_projections.sessions.row import SessionRow
from intersession_projections.sessions.taken_order import taken_forwards
from intersession_projections.sessions.threads import ThreadBindings, ThreadBindingsView

__all__ = [
    "History",
    "HistoryPage",
    "Seen",
    "SessionListView",
    "SessionRow",
    "Sessions",
    "ThreadBindings",
    "ThreadBindingsView",
    "UnknownMessage",
    "taken_forwards",
]
