"""What the operator can do to a session stands on the command line, with a host of the log and without."""

import json
from pathlib import Path

import pytest

from intersession import SessionSystem
from intersession_events.facts import RunAborted, RunQueued
from intersession_events.stores.portable.log import PortableLog
from support.doors.command_line import Ran, ran
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.running import WAIT, Booth, Gate, recorded, wait_for

NOTES = "agent:main:notes"


def shown(booth: Booth, *tokens: object) -> Ran:
    return ran(*tokens, "--store", booth.url, "--json")


def opened(booth: Booth) -> SessionSystem:
    """Start a system that has a session of notes."""
    system = booth.start({"main": lambda turn: f"noted {turn.message}"}, None, GATEWAY)
    asked = {"sessionKey": NOTES, "message": "milk", "idempotencyKey": "1"}
    run = system.gateway.call("chat.send", asked)
    system.gateway.perform("agent.wait", {"runId": run["runId"], "timeoutMs": int(WAIT * 1000)})
    return system


@pytest.mark.parametrize("hosted", [True, False])
def test_a_session_is_labelled_reset_and_deleted(booth: Booth, tmp_path: Path, *, hosted: bool) -> None:
    """Before: these were there in Python alone."""
    system = opened(booth)
    config = tmp_path / "config.json5"
    config.write_text(json.dumps(GATEWAY), encoding="utf-8")
    log = system.log
    assert isinstance(log, PortableLog)
    options = ("--config", config)

    def changed() -> None:
        named = shown(booth, "label", "main/notes", "shopping", *options)
        listed = shown(booth, "sessions", "--label", "shopping").json["sessions"]
        assert (named.exit_code, [row["label"] for row in listed]) == (0, ["shopping"])
        assert shown(booth, "label", "main/notes", "--clear", *options).exit_code == 0
        assert shown(booth, "sessions", "--label", "shopping").json["sessions"] == []
        (before,) = shown(booth, "sessions").json["sessions"]
        after = shown(booth, "reset", NOTES, *options).json
        assert after["sessionId"] != before["sessionId"]
        assert shown(booth, "history", NOTES).json["messages"] == []
        assert shown(booth, "history", before["sessionId"]).json["messages"] != []
        assert shown(booth, "erase", NOTES, *options).exit_code == 2, "it wants --yes"
        erased = shown(booth, "erase", NOTES, "--yes", "--reason", "asked for", *options)
        assert (erased.exit_code, erased.json["erased"] > 0) == (0, True)
        old = shown(booth, "history", before["sessionId"]).json["messages"]
        assert {
            message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
            for message in old
        } == {"[erased]"}
        assert shown(booth, "verify").json["erased"] == erased.json["erased"]
        assert shown(booth, "delete", NOTES, *options).json["deleted"]
        assert (again := shown(booth, "delete", NOTES, *options)).exit_code == 1, again
        assert shown(booth, "reset", "nobody/none", *options).json["code"] in {"not_visible", "invalid_key"}

    if not hosted:
        system.close()
        changed()
        return
    with LiveGateway(system) as live:
        log.announce_gateway(live.address)
        changed()
        log.announce_gateway(None)


def test_a_main_session_is_not_deleted(booth: Booth) -> None:
    system = booth.start({"main": lambda turn: turn.message})
    system.inbound(channel="telegram", chat_id="42", sender="ann", text="hi", wait=WAIT)
    system.close()

    assert shown(booth, "delete", "main").json["code"] == "main_session"
    assert shown(booth, "label", "main").exit_code == 2
    assert shown(booth, "label", "main", "x", "--clear").exit_code == 2


def test_what_a_crash_left_open_is_aborted_without_a_host(booth: Booth) -> None:
    gate = Gate()
    hangs = gate.saying("late")
    system = booth.start({"main": hangs})
    for text in ("one", "two", "three"):
        system.inbound(channel="telegram", chat_id="42", sender="ann", text=text)
    gate.reached()
    wait_for(system, RunQueued)
    system.close(grace=0)
    gate.open()
    runs = [row["runId"] for row in shown(booth, "runs", "--open").json["runs"]]

    first = shown(booth, "abort", runs[0][:12])
    rest = shown(booth, "abort", "main")

    assert first.json["runIds"] == [runs[0]]
    assert sorted(rest.json["runIds"]) == sorted(runs[1:])
    assert shown(booth, "abort", "main").json == {"ok": True, "aborted": False, "runIds": []}
    again = booth.start({"main": lambda turn: turn.message})
    assert {event.by for event in recorded(again, RunAborted)} == {"operator"}
