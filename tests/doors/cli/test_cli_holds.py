"""`intersession hold` and `release`, and where what is held shows: `runs --held`, `doctor`, `replay`, `show`, `why`, `state` (LIVE-1)."""

import json
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import ExchangeClosed, ExchangeHeld, RunCompleted, ToolCallHeld
from intersession_events.stores.portable.log import PortableLog
from support.doors.command_line import shown
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.running import SEES_ALL, Booth, Gate, merged, wait_for, wait_for_number

pytestmark = pytest.mark.clause("LIVE-1")

MAIN, OPS = "agent:main:main", "agent:ops:main"
TURNS: dict[str, Any] = {"session": {"agentToAgent": {"maxPingPongTurns": 1}}}


def says(turn: Turn) -> str:
    return f"{turn.agent_id} says {turn.step}"


AGENTS = {"main": says, "ops": says}
"""Who answers where `--agents` names this."""


def sent(system: SessionSystem, message: str = "status?") -> str:
    given = {"sessionKey": OPS, "message": message, "timeoutSeconds": 0}
    return str(dict(system.tools(MAIN).call("sessions_send", given))["runId"])


def held(booth: Booth, setting: str = "reply") -> str:
    system = booth.start(AGENTS, {}, merged(TURNS, {"session": {"agentToAgent": {"hold": setting}}}))
    run_id = sent(system)
    wait_for(system, ExchangeHeld)
    system.close(grace=0)
    return run_id


def test_what_is_held_shows_wherever_somebody_looks(booth: Booth) -> None:
    run_id = held(booth)
    listed = shown(booth, "runs", "--held", "--json").json["runs"]
    assert [row["runId"] for row in listed] == [run_id]
    assert (listed[0]["held"]["text"], listed[0]["held"]["step"]) == ("ops says message", "reply")
    in_words = shown(booth, "runs", "--held").out
    assert "HELD before the reply goes on" in " ".join(in_words.split())
    assert "`intersession release ID`" in " ".join(in_words.split())
    findings = {found["code"] for found in shown(booth, "doctor", "--json").json["findings"]}
    assert "exchanges_held" in findings
    state = shown(booth, "state", run_id, "--json").json["exchanges"][0]
    assert (state["phase"], state["held"]["text"]) == ("held", "ops says message")
    told = shown(booth, "replay", run_id).out
    assert "Held: the reply waits for a release, as session.agentToAgent.hold wants." in " ".join(
        told.split()
    )
    assert "Held" in shown(booth, "show", run_id).out
    took = next(line for line in shown(booth, "diff", run_id, run_id).out.splitlines() if "took" in line)
    assert took.count("so far") == 2
    (position,) = {row["position"] for row in listed}
    explained = shown(booth, "why", str(position), "--json").json["explanations"]
    assert [(one["code"], one["rule"]) for one in explained] == [("waits_for_release", "LIVE-1")]
    assert "still_held" in shown(booth, "runs", "--held", "--smell").out
    assert shown(booth, "runs", "--json").json["runs"][0]["held"]


@pytest.mark.clause("ORIGIN-1")
@pytest.mark.parametrize("setting", ["reply", "announce"])
def test_words_of_who_edited_what_was_held_are_told_as_theirs(booth: Booth, setting: str) -> None:
    config = merged(TURNS, {"session": {"agentToAgent": {"hold": setting}}})
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, config)
    system.inbound(channel="chat", chat_id="7", sender="ann", text="hi", agent_id="ops", deliver=False)
    run_id = sent(system)
    wait_for(system, ExchangeHeld)
    system.release(run_id, text="the disk is new")
    wait_for(system, ExchangeClosed)
    system.close()

    first = shown(booth, "origin", "the disk is new", "--json").json["first"]
    assert (first["who"], first["editedBy"], first["cause"]) == (OPS, "operator", None)
    assert ", in the words of operator: the disk is new" in shown(booth, "origin", "the disk is new").out
    unedited = shown(booth, "origin", "status?", "--json").json["first"]
    assert "editedBy" not in unedited


def test_a_release_into_the_log_goes_on_with_the_next_start(booth: Booth) -> None:
    run_id = held(booth)
    first = shown(booth, "release", run_id[:8], "--edit", "all is fine")
    again = shown(booth, "release", run_id, "--edit", "all is fine", "--json")
    other = shown(booth, "release", run_id, "--drop", "--json")

    assert (first.exit_code, again.exit_code, other.exit_code) == (0, 0, 1), first
    assert "is released (edit)" in first.out
    assert again.json["again"] is True
    assert other.json["code"] == "invalid_request"
    assert shown(booth, "runs", "--held", "--json").json["runs"] == []
    system = booth.start(AGENTS)
    wait_for(system, ExchangeClosed)
    system.close()
    told = shown(booth, "replay", run_id).out
    assert "lets it go on with another text" in " ".join(told.split())
    history = shown(booth, "history", MAIN, "--json").json["messages"]
    edited = [row for row in history if row.get("provenance", {}).get("editedBy")]
    assert [(row["content"], row["provenance"]["editedBy"]) for row in edited] == [
        ("all is fine", "operator")
    ]
    smells = shown(booth, "smells", run_id, "--json").json["smells"]
    assert "text_replaced" in {smell["code"] for smell in smells}


def test_with_agents_the_command_goes_on_itself(booth: Booth) -> None:
    run_id = held(booth)
    done = shown(booth, "release", run_id, "--agents", f"{__name__}:AGENTS")
    assert done.exit_code == 0, done
    (row,) = shown(booth, "runs", "--kind", "exchange", "--json").json["runs"]
    assert (row["state"], row["turns"]) == ("closed", 1)


def test_a_gateway_holds_and_releases_what_goes_on_there(booth: Booth, tmp_path: Path) -> None:
    gate = Gate()
    system = booth.start({"main": says, "ops": gate.before(says, "message")}, {}, merged(TURNS, GATEWAY))
    config = tmp_path / "config.json5"
    config.write_text(json.dumps(merged(SEES_ALL, GATEWAY)), encoding="utf-8")
    log = system.log
    assert isinstance(log, PortableLog)
    with LiveGateway(system) as live:
        log.announce_gateway(live.address)
        run_id = sent(system)
        gate.reached()
        asked = shown(booth, "hold", run_id, "--before", "announce", "--config", config, "--json")
        of_session = shown(booth, "hold", "main", "--config", config)
        gate.open()
        wait_for_number(system, ExchangeHeld, 1)
        on = shown(booth, "release", run_id, "--config", config)
        wait_for_number(system, ExchangeHeld, 2)
        ended = shown(booth, "release", run_id, "--end", "--config", config, "--json")
        lifted = shown(booth, "release", "main", "--config", config, "--json")
        log.announce_gateway(None)

    assert (asked.json["before"], asked.json["again"]) == ("announce", False)
    assert "agent:main:main is held: its exchanges stop before whatever goes on next" in of_session.out
    assert "`intersession release agent:main:main` lets it go on" in of_session.out
    assert on.exit_code == 0, on
    assert ended.json["action"] == "end"
    assert wait_for(system, ExchangeClosed).reason == "ended"
    assert lifted.json["again"] is False


@pytest.mark.parametrize("command", ["hold", "release"])
def test_what_names_nothing_is_refused_with_what_to_do(booth: Booth, command: str) -> None:
    held(booth)
    nobody = shown(booth, command, "nobody-of-this-name", "--json")
    assert nobody.exit_code == 1
    assert nobody.json["code"] == "not_visible"
    twice = shown(booth, "release", "main", "--drop", "--end")
    assert twice.exit_code == 2


@pytest.mark.clause("ASK-2")
def test_held_tool_call_is_listed_and_released(booth: Booth) -> None:
    def lists(turn: Turn) -> str:
        answer: Any = turn.tools.call("sessions_list", {"limit": 3})
        return str(answer.get("error"))

    config: dict[str, Any] = {"tools": {"ask": ["sessions_list"]}}
    system = booth.start({"main": lists}, {"chat": MemoryChannel()}, config)
    system.inbound(channel="chat", chat_id="7", sender="ann", text="go")
    call = wait_for(system, ToolCallHeld)
    system.close(grace=0)

    listed = shown(booth, "runs", "--held", "--json").json
    in_words = shown(booth, "runs", "--held").out
    findings = {found["code"] for found in shown(booth, "doctor", "--json").json["findings"]}
    wrong = shown(booth, "release", call.hold_id[:8], "--edit", "no JSON")
    refused = shown(booth, "release", call.hold_id[:8], "--refuse", "not today", "--json").json
    system = booth.start({"main": lists}, {"chat": MemoryChannel()}, config)
    done = wait_for(system, RunCompleted)

    assert [one["holdId"] for one in listed["calls"]] == [call.hold_id]
    assert call.hold_id in in_words
    assert "calls_held" in findings
    assert "of a tool call it is a JSON object" in wrong.err
    assert (refused["status"], refused["action"]) == ("released", "refuse")
    assert "operator refused the call of sessions_list: not today" in str(done.reply)
