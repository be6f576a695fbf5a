"""`intersession retry RUN` has the message of a run that failed answered after all, and every list says so (GATE-6)."""

import json
from pathlib import Path

from intersession import MemoryChannel, Turn
from intersession_events.facts import DeliveryDone
from intersession_events.stores.portable.log import PortableLog
from support.doors.command_line import shown
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.running import Booth, Gate, speak, wait_for_number

AGENTS = {"main": lambda turn: f"you said {turn.message}"}
"""Who answers where `--agents` names this."""


def test_a_gateway_tries_it_again_and_the_answer_is_shown(booth: Booth, tmp_path: Path) -> None:
    """Before: no question over the whole log, and operator's commands in Python alone."""
    is_down = [True]

    def agent(turn: Turn) -> str:
        if is_down:
            raise ConnectionError("the model is down")
        return f"you said {turn.message}"

    channel = MemoryChannel()
    system = booth.start({"main": agent}, {"telegram": channel}, GATEWAY)
    config = tmp_path / "config.json5"
    config.write_text(json.dumps(GATEWAY), encoding="utf-8")
    log = system.log
    assert isinstance(log, PortableLog)
    with LiveGateway(system) as live:
        log.announce_gateway(live.address)
        run_id = speak(system)["runId"]
        first = shown(booth, "retry", run_id[:8], "--config", config, "--json")
        is_down.clear()
        again = shown(booth, "retry", first.json["runId"], "--config", config)
        log.announce_gateway(None)

    assert (first.exit_code, first.json["status"], first.json["retryOf"]) == (1, "error", run_id)
    assert again.exit_code == 0, again
    assert again.out.startswith("ok")
    assert "you said hi" in again.out
    wait_for_number(system, DeliveryDone, 3)
    assert channel.delivered[-1].text == "you said hi"


def test_without_a_host_the_command_has_the_agents_that_it_is_given(booth: Booth) -> None:
    def down(_turn: Turn) -> str:
        raise ConnectionError("the model is down")

    system = booth.start({"main": down})
    run_id = speak(system)["runId"]
    system.close()
    before = shown(booth, "runs")

    waiting = shown(booth, "retry", run_id)
    same = shown(booth, "retry", run_id, "--agents", f"{__name__}:AGENTS", "--json")

    assert "`intersession retry ID`" in before.out
    assert waiting.exit_code == 0
    assert waiting.out.startswith("accepted")
    assert (same.exit_code, same.json["status"], same.json["reply"]) == (0, "ok", "you said hi")
    assert same.json["runId"] in waiting.out


def test_lists_stories_and_the_doctor_say_what_was_tried_again(booth: Booth) -> None:
    turns: list[Turn] = []

    def down(turn: Turn) -> str:
        turns.append(turn)
        if len(turns) == 1:
            raise ConnectionError("the model is down")
        return "at last"

    system = booth.start({"main": down}, {"telegram": MemoryChannel()})
    run_id = speak(system)["runId"]
    assert [row["runId"] for row in system.status()["failedRuns"]] == [run_id]
    new_id = system.retry(run_id)["runId"]
    system.gateway.call("agent.wait", {"runId": new_id})
    wait_for_number(system, DeliveryDone, 2)
    status = system.status()
    system.close()

    rows = {row["id"]: row for row in shown(booth, "runs", "--json").json["runs"]}
    listed, told = shown(booth, "runs"), shown(booth, "replay", new_id)
    session, old = shown(booth, "replay", "main"), shown(booth, "replay", run_id)
    doctor = shown(booth, "doctor", "--json").json["findings"]

    assert status["failedRuns"] == []
    assert rows[run_id]["retriedBy"] == new_id
    assert rows[new_id]["retryOf"] == run_id
    assert f"tried again by {new_id}: answered" in listed.out
    assert "`intersession retry ID`" not in listed.out
    assert f"tried again by {new_id}: answered" in old.out
    for story in (told.out, session.out):
        assert f"wants run {run_id} tried again" in story
    assert not {"runs_fail", "runs_failed"} & {finding["code"] for finding in doctor}
    said = shown(booth, "messages", "--json").json["messages"]
    assert [row.get("retryOf") for row in said] == [run_id, None]
    assert f"again, for run {run_id}" in shown(booth, "messages").out


def test_what_runs_prints_can_be_typed_back(booth: Booth) -> None:
    """Before: the id of an exchange or a spawn in `runs` was one that neither `abort` nor `retry` knew."""
    gate = Gate()
    slow = gate.saying("late")
    system = booth.start({"main": slow, "ops": slow})
    tools = system.tools("agent:main:main")
    tools.call("sessions_send", {"agentId": "ops", "message": "a", "timeoutSeconds": 0})
    tools.call("sessions_spawn", {"task": "count"})
    for _ in range(2):
        gate.reached()
    system.close(grace=0)
    gate.open()
    listed = shown(booth, "runs")
    rows = {row["kind"]: row for row in shown(booth, "runs", "--json").json["runs"]}

    assert "`intersession abort ID`" in listed.out
    for kind in ("exchange", "spawn"):
        name = rows[kind]["id"]
        assert name in listed.out
        assert f"a part of {kind} {name}" in shown(booth, "retry", name[:8], "--json").json["error"]
        assert shown(booth, "abort", name[:8], "--json").json["runIds"] == [rows[kind]["runId"]]
        assert shown(booth, "abort", name, "--json").json["aborted"] is False


def test_what_can_not_be_tried_again_is_refused_with_what_to_do(booth: Booth) -> None:
    system = booth.start(AGENTS)
    answered = speak(system)["runId"]
    system.close()

    done = shown(booth, "retry", answered, "--json")
    unknown = shown(booth, "retry", "nobody's", "--json")
    late = shown(booth, "retry", answered, "--timeout", "-1", "--json")

    assert (done.exit_code, done.json["code"]) == (1, "invalid_request")
    assert "did not fail, say it again" in done.json["error"]
    assert (unknown.exit_code, unknown.json["code"]) == (1, "unknown_run")
    assert (late.exit_code, late.json["code"]) == (2, "usage")
