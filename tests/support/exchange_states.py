"""Where an exchange stands, for tests of its rules."""

from intersession_actors.owners.exchange import rules
from intersession_actors.owners.exchange.commands import ExchangeCommand
from intersession_actors.owners.exchange.exchange import Exchange
from intersession_actors.owners.exchange.rules import Circumstances, evolve
from intersession_actors.owners.streams.commands import Refused
from intersession_events.facts import ExchangeEvent


def state_after(*events: ExchangeEvent) -> Exchange:
    """Fold events of an exchange."""
    state: Exchange | None = None
    for event in events:
        state = evolve(state, event)
    assert state is not None
    return state


def decide(state: Exchange, command: ExchangeCommand, now: Circumstances) -> list[ExchangeEvent]:
    """Return what a command leads to that is not refused."""
    events = rules.decide(state, command, now)
    assert not isinstance(events, Refused), events.error
    return events
