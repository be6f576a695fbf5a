"""The list of views that are written in the transaction of each append, because every call needs them at once."""

from intersession_events.log.views import InlineView
from intersession_projections.views.flows.view import OpenFlowsView
from intersession_projections.views.held_sessions import HeldSessionsView
from intersession_projections.views.positions import PositionsView
from intersession_projections.views.run_outcomes.view import RunOutcomesView
from intersession_projections.views.sessions.threads import ThreadBindingsView
from intersession_projections.views.sessions.view import SessionListView


def inline_views() -> tuple[InlineView, ...]:
    """Return them all, new, for the log to keep."""
    return (
        SessionListView(),
        RunOutcomesView(),
        OpenFlowsView(),
        PositionsView(),
        ThreadBindingsView(),
        HeldSessionsView(),
    )
