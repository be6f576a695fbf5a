"""`runs.retry`: the message of a run that failed is answered after all, once, by a new run (GATE-6)."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession_events.facts import RunFailed, RunQueued, RunStarted, message_in, text_of
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from support.running import WAIT, Booth, Gate, all_said, ended, recorded, wait_for

MAIN, OPS = "agent:main:main", "agent:ops:main"


class Model:
    """An agent whose model is down until a test mends it."""

    def __init__(self) -> None:
        self.is_down = True
        self.turns: list[Turn] = []

    def __call__(self, turn: Turn) -> str:
        self.turns.append(turn)
        if self.is_down:
            raise ConnectionError("the model is down")
        return f"you said {turn.message}"


def speak(system: SessionSystem, text: str = "hi", **given: Any) -> str:
    said: dict[str, Any] = {"channel": "telegram", "chat_id": "42", "sender": "ann", "sender_name": "Ann"}
    return str(system.inbound(text=text, **(said | {"wait": WAIT} | given))["runId"])


def queued(system: SessionSystem, run_id: str) -> RunQueued:
    (found,) = [event for event in recorded(system, RunQueued) if event.run_id == run_id]
    return found


def outcome(system: SessionSystem, run_id: str) -> RunOutcome:
    found = system.service.runs.get(run_id)
    assert found is not None
    return found


@pytest.mark.clause("GATE-6")
def test_a_person_gets_the_answer_after_all(booth: Booth) -> None:
    """Before: a run that failed could not be tried again by anybody."""
    model, channel = Model(), MemoryChannel()
    system = booth.start({"main": model}, {"telegram": channel}, {"runs": {"failureText": ""}})
    failed = speak(system, "what is the weather?")
    model.is_down = False

    answer = system.retry(failed)
    end = ended(system, answer["runId"])

    channel.wait_for(1, timeout=WAIT)
    assert (answer["status"], answer["sessionKey"], answer["retryOf"]) == ("accepted", MAIN, failed)
    assert (end["status"], end["reply"]) == ("ok", "you said what is the weather?")
    assert [out.text for out in channel.delivered] == ["you said what is the weather?"]
    first, again = all_said(system)[:2]
    assert text_of(first.message) == text_of(again.message)
    assert first.message.id != again.message.id
    assert again.message.provenance == first.message.provenance, "it is Ann who spoke"
    assert queued(system, answer["runId"]).retry_of == failed
    (cause,) = [item.causation for item in system.log.all() if message_in(item.event) == again.message]
    (end_of_failed,) = [item.id for item in system.log.all() if isinstance(item.event, RunFailed)]
    assert cause == end_of_failed
    assert outcome(system, answer["runId"]).retry_of == failed
    assert system.service.runs.retry_of(failed) == outcome(system, answer["runId"])


@pytest.mark.clause("GATE-6")
def test_asked_twice_it_is_the_same_run_also_after_a_restart(booth: Booth) -> None:
    model = Model()
    system = booth.start({"main": model})
    failed = speak(system)
    first = system.retry(failed)
    assert ended(system, first["runId"])["status"] == "error"
    assert system.retry(failed) == first

    system.close()
    model.is_down = False
    system = booth.start({"main": model})

    assert system.retry(failed) == first
    # The retry failed too: it is a run like any other.
    again = system.retry(first["runId"])
    assert again["runId"] not in {failed, first["runId"]}
    assert ended(system, again["runId"])["status"] == "ok"
    assert len(recorded(system, RunStarted)) == 3


@pytest.mark.clause("GATE-6")
def test_the_run_is_asked_for_as_the_failed_one_was(booth: Booth) -> None:
    model, channel = Model(), MemoryChannel()
    system = booth.start({"main": model}, {"telegram": channel})
    asked = {
        "message": "report",
        "sessionKey": MAIN,
        "idempotencyKey": "k",
        "timeout": 77,
        "thinking": "high",
        "extraSystemPrompt": "be brief",
        "deliver": True,
        "channel": "telegram",
        "to": "7",
    }
    failed = system.gateway.call("agent", asked)["runId"]
    ended(system, failed)
    model.is_down = False

    # By the caller's own key, as everywhere (GATE-1).
    again = system.retry("k")

    assert ended(system, again["runId"])["status"] == "ok"
    before, after = (queued(system, run) for run in (failed, again["runId"]))
    assert again["retryOf"] == failed
    for name in ("timeout_ms", "thinking", "system_context", "route", "step", "model"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.idempotency_key is None
    channel.wait_for(2, timeout=WAIT)
    assert (channel.delivered[-1].to, channel.delivered[-1].text) == ("7", "you said report")


def refusal(system: SessionSystem, run_id: str) -> ToolRefused:
    with pytest.raises(ToolRefused) as refused:
        system.retry(run_id)
    assert refused.value.error.startswith("runId: "), refused.value.error
    assert system.gateway.call("runs.retry", {"runId": run_id}) == refused.value.as_result()
    return refused.value


@pytest.mark.clause("GATE-6")
def test_what_did_not_fail_is_refused_and_the_error_says_what_to_do(booth: Booth) -> None:
    model, gate = Model(), Gate()

    stops = gate.saying("late")

    model.is_down = False
    system = booth.start({"main": model, "ops": stops})
    answered = speak(system)
    running = speak(system, agent_id="ops", wait=None)
    gate.reached()

    assert refusal(system, "nobody's").code == "unknown_run"
    assert refusal(system, answered).code == "invalid_request"
    assert "did not fail, say it again" in refusal(system, answered).error
    assert refusal(system, running).code == "busy"
    assert "wait for its end or abort it first" in refusal(system, running).error
    system.abort(running)
    assert "aborted by operator" in refusal(system, running).error
    gate.open()
    assert len(recorded(system, RunQueued)) == 2, "a refusal leaves nothing behind"


@pytest.mark.clause("GATE-6", "HIST-6")
def test_a_session_that_is_not_what_it_was_gets_no_message(booth: Booth) -> None:
    system = booth.start({"main": Model()})
    in_main = speak(system)
    in_group = speak(system, chat_id="r1", chat_type="group")
    system.gateway.call("sessions.reset", {"key": MAIN})
    system.gateway.call("sessions.delete", {"key": "agent:main:telegram:group:r1"})

    assert refusal(system, in_main).code == "old_generation"
    assert refusal(system, in_group).code == "not_visible"


@pytest.mark.clause("GATE-6", "ERASE-1")
def test_words_that_were_erased_are_not_said_again(booth: Booth) -> None:
    system = booth.start({"main": Model()}, None, {"runs": {"failureText": ""}})
    failed = speak(system)
    system.erase(MAIN)

    assert "erased" in refusal(system, failed).error


@pytest.mark.clause("GATE-6")
def test_a_run_of_a_flow_is_refused(booth: Booth) -> None:
    system = booth.start({"main": Model(), "ops": Model()})
    system.inbound(channel="telegram", chat_id="42", sender="ann", text="hi", deliver=False)
    sent = system.tools(MAIN).call(
        "sessions_send", {"agentId": "ops", "message": "hi", "timeoutSeconds": WAIT}
    )
    spawned = system.tools(MAIN).call("sessions_spawn", {"task": "count"})
    wait_for(system, RunFailed, lambda event: event.run_id == spawned["runId"])

    assert "a part of exchange " in refusal(system, sent["runId"]).error
    assert "a part of spawn " in refusal(system, spawned["runId"]).error
    assert "with a new idempotencyKey" in refusal(system, spawned["runId"]).error


@pytest.mark.clause("GATE-6", "LOOP-5")
def test_an_agent_that_retries_goes_on_with_its_own_chain(booth: Booth) -> None:
    """An agent that tries itself again for ever is stopped by the guards over the chain."""
    system: SessionSystem

    def stubborn(turn: Turn) -> str:
        if turn.message != "go":
            raise ConnectionError("no")
        failed = speak(system, "work", agent_id="ops")
        while True:
            failed = system.retry(failed)["runId"]
            ended(system, failed)

    def fails(_turn: Turn) -> str:
        raise ConnectionError("no")

    system = booth.start(
        {"main": stubborn, "ops": fails}, None, {"session": {"agentToAgent": {"limits": {"runs": 6}}}}
    )
    run_id = speak(system, "go")

    end = ended(system, run_id)
    assert (end["status"], "limit" in end["error"]) == ("error", True), end
    assert len(recorded(system, RunQueued)) == 6


@pytest.mark.clause("GATE-6")
def test_an_answer_to_a_person_has_the_time_that_is_configured_now(booth: Booth) -> None:
    """Runs that took too long are tried again because the operator has given them more time."""
    model = Model()
    system = booth.start({"main": model}, None, {"agents": {"defaults": {"timeoutSeconds": 60}}})
    failed = speak(system)
    system.reload({"agents": {"defaults": {"timeoutSeconds": 90}}})

    again = system.retry(failed)

    limits = [event.timeout_ms for event in recorded(system, RunQueued)]
    assert (limits, ended(system, again["runId"])["status"]) == ([60_000, 90_000], "error")
