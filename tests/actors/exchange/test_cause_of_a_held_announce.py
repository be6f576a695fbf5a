"""What leads to the text of an announce that was held is the announce that was decided at its release (WHY-1, LIVE-1)."""

from collections.abc import Iterator
from typing import Any

import pytest

from intersession import MemoryChannel
from intersession_events import facts
from intersession_events.log import Log, Recorded
from intersession_projections.causes import Causes, Effects
from support.running import Booth, wait_for
from support.story import Story

MAIN = "agent:main:main"
HELD = {"session": {"agentToAgent": {"hold": "announce", "maxPingPongTurns": 0}}}
ASKED = {"agentId": "research", "message": "well?", "timeoutSeconds": 20}


@pytest.fixture
def story() -> Iterator[Story]:
    told = Story()
    yield told
    told.close()


def last(log: Log, kind: type[Any]) -> Recorded:
    (*_, found) = [item for item in log.all() if isinstance(item.event, kind)]
    return found


@pytest.mark.clause("WHY-1", "LIVE-1")
@pytest.mark.parametrize("text", [None, "The dam is closed."])
def test_a_text_that_was_released_is_recorded_as_led_to_by_its_announce(
    log_url: str, text: str | None
) -> None:
    """Its event named the hold, and reading had to mend that."""
    with Booth(log_url) as booth:
        agents = {"main": lambda _: "REPLY_SKIP", "research": lambda _: "The dam is open."}
        system = booth.start(agents, {"t": MemoryChannel()}, HELD)
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="research", wait=20)
        run_id = system.tools(MAIN).call("sessions_send", ASKED).get("runId", "")
        wait_for(system, facts.ExchangeHeld)
        system.release(run_id, text=text)
        wait_for(system, facts.ExchangeClosed)
        sent, announced = last(system.log, facts.DeliveryDecided), last(system.log, facts.AnnounceDecided)
        released = last(system.log, facts.ExchangeReleased)
        replayed = system.debug.replay()

    assert sent.causation == announced.id
    assert announced.causation == released.id
    assert replayed["firstDifference"] is None


ROUTE = facts.Route(channel="t", to="1")


def of_before(story: Story) -> tuple[Recorded, Recorded]:
    """Write a release as logs of before have it: the text names the hold. Return the release, and the text."""
    answered = story.put(
        "session:s", facts.RunCompleted(run_id="r", attempt=1, text="a"), correlation="chain"
    )
    held = story.put(
        "exchange:x",
        facts.ExchangeHeld(
            hold_id="h",
            step="announce",
            text="a",
            speaker=MAIN,
            since_ms=1,
            before="announce",
            source="run",
            by="operator",
            order="o",
        ),
        causation=answered.id,
        correlation="chain",
    )
    released = story.put(
        "exchange:x",
        facts.ExchangeReleased(hold_id="h", action="go_on", by="operator"),
        causation=held.id,
        correlation="chain",
    )
    announced = facts.AnnounceDecided(text="a", delivery_id="d")
    story.put("exchange:x", announced, causation=released.id, correlation="chain")
    text = facts.DeliveryDecided(
        delivery_id="d",
        session_key=MAIN,
        route=ROUTE,
        text="a",
        key="d",
        purpose="announce",
        owner="exchange:x",
    )
    return released, story.put("delivery:d", text, causation=held.id, correlation="chain")


@pytest.mark.clause("WHY-1", "LIVE-1")
def test_a_log_of_before_is_read_as_if_it_had_been_right(story: Story) -> None:
    released, text = of_before(story)
    path = [item.kind for item in Causes(story.log).path(text.position)]
    led = Effects(story.log).of(released.position)

    assert path == [
        "delivery_decided",
        "announce_decided",
        "exchange_released",
        "exchange_held",
        "run_completed",
    ]
    assert led is not None
    assert [one.topic for one in led.effects[0].effects] == ["delivery_decided.1"]
