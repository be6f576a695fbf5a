"""Why something ended, in words that say what happened: one reason can stand for several ends."""

import pytest
from msgspec.structs import replace

from intersession_events import facts
from intersession_events.facts.parts import words_of
from intersession_events.facts.reasons import closed
from intersession_projections.questions.flow_summary import in_words
from intersession_projections.views.flows.rows import ExchangeSummary, SpawnSummary

EXCHANGE = ExchangeSummary(
    exchange_id="x", run_id="r", target="agent:b:main", accepted=1, accepted_ms=1, position=9, turns=2
)
SPAWN = SpawnSummary(
    spawn_id="s",
    run_id="r",
    child="agent:a:subagent:c",
    child_session_id="c",
    agent_id="a",
    accepted=1,
    accepted_ms=1,
    position=9,
    status="ok",
)


@pytest.mark.clause("WHY-2")
@pytest.mark.parametrize(
    ("delivery", "reason", "told"),
    [
        (None, "announce_failed", "the announce could not be made"),
        ("d", "announce_failed", "the announce could not be delivered"),
        (None, "no_route", "nowhere to announce to"),
        ("d", "no_route", "no route to announce to, the host alone has the text"),
        ("d", "announced", "announced"),
    ],
)
def test_an_announce_that_was_never_made_is_not_told_as_one_that_was_not_delivered(
    delivery: str | None, reason: facts.CloseReason, told: str
) -> None:
    exchange = replace(EXCHANGE, delivery_id=delivery, close_reason=reason)
    assert in_words(exchange) == f"2 turns; {told}"


@pytest.mark.clause("WHY-2")
def test_a_spawn_whose_text_its_channel_gave_up_on_was_not_delivered() -> None:
    spawn = replace(SPAWN, delivery_id="d", close_reason="announce_failed")
    assert in_words(spawn) == "task done; the announce could not be delivered"


@pytest.mark.clause("WHY-2", "LOOP-5")
def test_a_guard_that_kept_an_announce_from_being_asked_for_is_told_as_that() -> None:
    event = facts.ExchangeClosed(reason="announce_failed", note="runs: 3 of 3", limit="limits.runs")
    assert words_of(event).reason == "a limit kept the announce from being asked for"
    assert closed("announce_failed") == "the announce could not be made, or not be delivered"


@pytest.mark.clause("WHY-2")
@pytest.mark.parametrize(
    ("run_id", "told"),
    [(None, "the announce turn could not be asked for"), ("r", "the announce turn failed")],
)
def test_an_announce_turn_that_nobody_was_asked_for_did_not_fail(run_id: str | None, told: str) -> None:
    event = facts.AnnounceDecided(silent=True, why="run_failed", run_id=run_id)
    assert words_of(event).how == f"Nothing is announced: {told}."


@pytest.mark.clause("WHY-2")
@pytest.mark.parametrize("error", ["backend: no model", "no model"])
def test_a_failure_is_told_with_its_code_once(error: str) -> None:
    told = words_of(facts.RunFailed(run_id="r", attempt=1, code="backend", error=error))

    assert told.brief == "backend: no model"
