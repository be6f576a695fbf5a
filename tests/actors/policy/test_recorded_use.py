"""How much a chain had used is read from the fields of what was decided, and of an older log from its words (LOOP-5)."""

import pytest
from msgspec import structs

from intersession_actors.policy import used_when_stopped
from intersession_actors.policy.recorded_use import MONEY, RUNS, TOKENS, WALL
from intersession_events import facts
from intersession_events.facts import decode, encode

HELD = facts.ExchangeHeld(
    hold_id="h",
    step="reply",
    text="so",
    speaker="agent:a:main",
    since_ms=1,
    before="next",
    source="run",
    by="operator",
    order="run",
)

# (setting, an event that says how much was used, the field in which it does)
SAID: list[tuple[str, facts.Event, str]] = [
    (RUNS, facts.LoopEnded(reason="run_limit", turns=2, limit=RUNS, note="12 of 10", used=12), "used"),
    (
        TOKENS,
        structs.replace(HELD, next_end="token_limit", next_limit=TOKENS, next_note="12 of 10", next_used=12),
        "next_used",
    ),
    (
        MONEY,
        facts.ExchangeClosed(
            reason="announce_failed",
            limit=MONEY,
            note=f"{MONEY} is 10 and this chain of messages has used 12",
            used=12,
        ),
        "used",
    ),
    (
        WALL,
        facts.SpawnClosed(
            reason="handed_over",
            limit=WALL,
            note=f"{WALL} is 10 and this chain of messages has used 12",
            used=12,
        ),
        "used",
    ),
    (
        TOKENS,
        facts.RunFailed(
            run_id="r",
            attempt=0,
            code="limit",
            error=f"limit: {TOKENS} is 10 and this chain of messages has used 12, so this run was not started",
            limit=TOKENS,
            used=12,
        ),
        "used",
    ),
]


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize(("setting", "event", "field"), SAID, ids=[type(said[1]).__name__ for said in SAID])
def test_what_was_used_is_a_field_and_of_an_older_log_the_words(
    setting: str, event: facts.Event, field: str
) -> None:
    other = "7 are 8 of 9"
    words = {"next_note": other} if field == "next_used" else {"note": other}
    worded = structs.replace(event, **({"error": other} if isinstance(event, facts.RunFailed) else words))
    older = structs.replace(event, **{field: None})
    if isinstance(older, facts.RunFailed):
        older = structs.replace(older, limit=None)

    assert used_when_stopped([worded], setting) == 12
    assert used_when_stopped([older], setting) == 12
    assert used_when_stopped([event], RUNS if setting != RUNS else WALL) is None


@pytest.mark.clause("LOOP-5")
def test_a_stored_event_of_before_reads_and_is_stored_as_it_was() -> None:
    stored = b'{"limit":"session.agentToAgent.limits.runs","note":"12 of 10","reason":"run_limit","turns":2}'

    event = decode("loop_ended.1", stored)

    assert event == facts.LoopEnded(reason="run_limit", turns=2, limit=RUNS, note="12 of 10")
    assert encode(event) == stored
    assert used_when_stopped([event], RUNS) == 12
