"""What the events of an exchange ask for beside its steps, as lists of effects."""

import pytest

from intersession_actors.owners.exchange.effects import ForgetRuling, UnwatchSessions, effects
from intersession_actors.owners.streams.effects import DropStopwatch, Effect, Pass, StartStopwatch
from intersession_actors.rules.config.config import load_config
from intersession_events.facts import (
    AnnounceDecided,
    Event,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    HoldRequested,
    HoldWithdrawn,
    LoopEnded,
    TurnEnded,
    joined,
)
from support.bare_events import bare
from support.exchange_states import state_after

LIMITS = load_config(None).config
ACCEPTED = ExchangeAccepted(
    exchange_id="x1",
    run_id="r0",
    target="agent:ops:main",
    target_session_id="s1",
    message_id="m1",
    message="how is it going?",
    requester="agent:main:main",
)
HELD = ExchangeHeld(
    hold_id="h1",
    step="reply",
    run_id="r0",
    speaker="agent:ops:main",
    since_ms=1,
    before="reply",
    source="setting",
    by="x",
    order="o",
)
ENDED = TurnEnded(run_id="r0", turn=0, speaker="agent:ops:main", status="ok")
LOOP_ENDED = LoopEnded(reason="turn_limit", turns=1)


def asked_by(event: Event) -> list[Effect]:
    return [*effects(state_after(ACCEPTED), bare("exchange:x1", 2, event), LIMITS)]


@pytest.mark.clause("LIVE-1", "LOOP-2", "O4")
@pytest.mark.parametrize(
    ("event", "asked"),
    [
        (joined([ENDED, HELD])[0], [ForgetRuling(), StartStopwatch(("held", "h1"))]),
        (
            ExchangeReleased(hold_id="h1", action="go_on", by="ann", held_ms=5),
            [ForgetRuling(), DropStopwatch(("held", "h1"))],
        ),
        (HoldRequested(before="next", by="ann"), []),
        (HoldWithdrawn(by="ann"), []),
        (
            joined([ENDED, LOOP_ENDED, AnnounceDecided(silent=True, why="announce_skip")])[0],
            [ForgetRuling(), Pass("K6"), Pass("A4")],
        ),
        (ExchangeClosed(reason="silent"), [ForgetRuling(), UnwatchSessions(ACCEPTED)]),
    ],
)
def test_an_event_asks_for(event: Event, asked: list[Effect]) -> None:
    assert asked_by(event) == asked
