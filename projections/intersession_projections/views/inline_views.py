"""The list of inline views, which every append writes in its transaction because every call needs them at once."""

from intersession_events.log.views import InlineView
from intersession_projections.views.flows.view import OpenFlowsView
from intersession_projections.views.held_calls import HeldCallsView
from intersession_projections.views.held_sessions import HeldSessionsView
from intersession_projections.views.positions import PositionsView
from intersession_projections.views.run_outcomes.view import RunOutcomesView
from intersession_projections.views.sessions.threads import ThreadBindingsView
from intersession_projections.views.sessions.view import SessionListView


def inline_views() -> tuple[InlineView, ...]:
    """Return new instances of them all, for the log to keep."""
    return (
        SessionListView(),
        RunOutcomesView(),
        OpenFlowsView(),
        PositionsView(),
        ThreadBindingsView(),
        HeldSessionsView(),
        HeldCallsView(),
    )
