"""A run is queued in a generation of its session, and its id says in which."""

import pytest

from intersession import echo
from intersession_events.facts import RunQueued, SessionOpened
from support.running import WAIT, Booth, all_said, recorded


@pytest.mark.clause("KEY-9", "INB-1")
def test_a_run_after_a_reset_is_of_the_new_generation(booth: Booth) -> None:
    system = booth.start({"main": echo()})
    message = {"channel": "telegram", "chat_id": "42", "sender": "ann", "wait": WAIT}
    system.inbound(**message, text="before")  # type: ignore[arg-type]
    assert system.gateway.call("sessions.reset", {"key": "main"})["ok"]
    system.inbound(**message, text="after")  # type: ignore[arg-type]

    before, after = [event.session_id for event in recorded(system, RunQueued)]
    (opened,) = recorded(system, SessionOpened)
    assert before == opened.session_id
    assert after != before
    said = [event for event in all_said(system) if event.message.role == "user"]
    assert [event.session_id for event in said] == [before, after]
