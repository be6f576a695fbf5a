"""A store that fails under a running agent: the answer is tried again, then the attempt is (reliability 3.1, rule 7)."""

import threading
from pathlib import Path

import pytest

from faulty_store import FAULT, FAULTY, sync_failed
from intersession import SessionSystem, Turn
from intersession_events.facts import RunInterrupted, RunStarted
from intersession_events.stores import SqliteLog
from intersession_projections.inline_views import inline_views


@pytest.mark.clause("D4", "S6")
def test_an_answer_that_a_broken_store_never_took_is_asked_for_again_at_the_next_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.db"
    asked, go = threading.Event(), threading.Event()
    attempts: list[int] = []

    def agent(turn: Turn) -> str:
        attempts.append(turn.attempt)
        asked.set()
        go.wait(30)
        return "done"

    log = SqliteLog(path, inline=inline_views(), environment=FAULTY)
    config = {"runs": {"storeRetryMaxSeconds": 1}}
    with SessionSystem(log, agents={"main": agent}, config=config) as system:
        run_id = system.inbound(channel="x", chat_id="1", sender="1", text="hi")["runId"]
        assert asked.wait(10)
        FAULT.before = sync_failed()
        go.set()
        waited = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 500})
        refused = system.inbound(channel="x", chat_id="2", sender="1", text="hi")
    log.close()

    with SessionSystem(f"sqlite:///{path}", agents={"main": agent}) as system:
        answer = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 10_000})
        events = [item.event for item in system.log.stream("session:agent:main:main")]

    assert waited["status"] == "timeout"
    assert refused["code"] == "unavailable"
    assert (answer["status"], answer["reply"]) == ("ok", "done")
    assert attempts == [1, 2]
    assert [type(event) for event in events if isinstance(event, RunInterrupted | RunStarted)] == [
        RunStarted,
        RunInterrupted,
        RunStarted,
    ]
