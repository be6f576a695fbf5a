"""The web debugger's tab *Event* at an answer that came while another message waited."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import expect

from intersession import MemoryChannel, SessionSystem, Turn
from support.doors.chromium import WAIT_MS, Tab, chromium, come_in
from support.doors.gateway_live import GATEWAY, LiveGateway

expect.set_options(timeout=WAIT_MS)


@pytest.mark.ci
def test_an_answer_is_what_its_event_changed_though_a_message_that_waits_stands_behind_it() -> None:
    waits = Event()

    def main(turn: Turn) -> str:
        assert waits.wait(30)
        return f"answered: {turn.message}"

    told: dict[str, Any] = {"channel": "chat", "chat_id": "7", "sender": "ann", "agent_id": "main"}
    with (
        SessionSystem(
            ":memory:", agents={"main": main}, channels={"chat": MemoryChannel()}, config=GATEWAY
        ) as system,
        LiveGateway(system) as gateway,
    ):
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(system.inbound, text="one", wait=30, **told)
            for recorded in system.follow(0, timeout=30):
                if recorded.topic == "run_started.1":
                    break
            system.inbound(text="two", **told)
            waits.set()
            run = first.result()["runId"]
        at = next(
            recorded.position
            for recorded in system.log.all()
            if "answered: one" in str(recorded.event) and recorded.topic == "run_completed.1"
        )
        with chromium() as browser:
            page = Tab(browser.new_context(), gateway.address).page
            come_in(page, gateway.address)
            expect(page.get_by_role("heading", name="Runs")).to_be_visible()
            page.goto(f"{gateway.address}/debug/run/{run}?at={at}&tab=event")

            changed = page.get_by_role("row").filter(has_text="main · message")
            expect(changed).to_contain_text("says: answered: one")
