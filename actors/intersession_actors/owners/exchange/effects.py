"""The effects of an exchange's events beside the steps in the same append. Pure."""

from collections.abc import Sequence

from intersession_actors.owners.exchange.exchange import Exchange
from intersession_actors.owners.streams.effects import DropStopwatch, Effect, Pass, StartStopwatch
from intersession_actors.rules.config.config import Config
from intersession_events import facts
from intersession_events.log.recorded import Recorded


class ForgetRuling(Effect, frozen=True):
    """Drop the host rule's question and verdict: the outcome is durable."""


class LookForAgent(Effect, frozen=True):
    """Go on after a release if the next turn's agent is registered by now (LIVE-1)."""

    accepted: facts.ExchangeAccepted


class UnwatchSessions(Effect, frozen=True):
    """Stop following the conversations of the two sessions (LOOP-2)."""

    accepted: facts.ExchangeAccepted


def effects(state: Exchange, recorded: Recorded, limits: Config) -> Sequence[Effect]:
    """Return the effects of a durable event; `state` is the exchange after it."""
    del limits
    asked = list[Effect]()
    if not isinstance(recorded.event, facts.HoldRequested | facts.HoldWithdrawn):
        asked.append(ForgetRuling())
    for event in facts.parts_of(recorded.event):
        match event:
            case facts.ExchangeHeld(hold_id=hold_id):
                asked.append(StartStopwatch(("held", hold_id)))
            case facts.LoopEnded():
                asked.append(Pass("K6"))
            case facts.ExchangeReleased(hold_id=hold_id):
                asked.append(DropStopwatch(("held", hold_id)))
                if state.phase == "released":
                    # An agent that was registered while this was appended did not find it among what waits for it.
                    asked.append(LookForAgent(state.accepted))
            case facts.ExchangeClosed():
                asked.append(UnwatchSessions(state.accepted))
            case facts.AnnounceDecided(silent=True):
                asked.append(Pass("A4"))
            case _:
                pass
    return asked
