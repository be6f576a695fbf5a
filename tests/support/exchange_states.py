"""Where an exchange stands, for tests of its rules."""

from intersession_actors.exchange.exchange import Exchange
from intersession_actors.exchange.rules import evolve
from intersession_events.facts import ExchangeEvent


def state_after(*events: ExchangeEvent) -> Exchange:
    """Fold events of an exchange."""
    state: Exchange | None = None
    for event in events:
        state = evolve(state, event)
    assert state is not None
    return state
