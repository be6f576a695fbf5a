"""What leads to the text of an announce that was held is its release, with the announce that was decided then (WHY-1, LIVE-1)."""

from typing import Any

import pytest

from intersession import MemoryChannel
from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, parts_in
from support.running import Booth, wait_for

MAIN = "agent:main:main"
HELD = {"session": {"agentToAgent": {"hold": "announce", "maxPingPongTurns": 0}}}
ASKED = {"agentId": "research", "message": "well?", "timeoutSeconds": 20}


def last(log: Log, kind: type[Any]) -> Recorded:
    (*_, found) = [item for item in parts_in(log.all()) if isinstance(item.event, kind)]
    return found


@pytest.mark.clause("WHY-1", "LIVE-1")
@pytest.mark.parametrize("text", [None, "The dam is closed."])
def test_a_text_that_was_released_is_recorded_as_led_to_by_its_release(
    log_url: str, text: str | None
) -> None:
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

    assert sent.causation == announced.id == released.id
    assert replayed["firstDifference"] is None
