"""`intersession deliveries` lists what went outside or should have, and has one text tried once more."""

import json
from pathlib import Path
from typing import Any

import pytest

from intersession import DeliveryRefused, MemoryChannel, Outbound, SessionSystem, Turn
from intersession_events.facts import (
    DeliveryDone,
    DeliveryFailed,
    DeliveryRetried,
    DeliveryStarted,
    DeliveryUnknown,
    SpawnAccepted,
)
from intersession_events.stores.portable.log import PortableLog
from support.doors.command_line import shown
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.hosts_code import doubts, parrot, refuses
from support.running import WAIT, Booth, recorded, wait_for, wait_for_number

MAIN = "agent:main:main"


def speak(system: SessionSystem, channel: str = "telegram", text: str = "hi") -> str:
    return str(system.inbound(channel=channel, chat_id="42", sender="ann", text=text, wait=WAIT)["runId"])


def listed(booth: Booth, *tokens: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(booth, "deliveries", *tokens, "--json").json["deliveries"]
    return found


def test_every_text_is_listed_and_filtered_by_how_it_stands(booth: Booth) -> None:
    """Before: failed deliveries could not be found."""
    system = booth.start({"main": parrot}, {"telegram": MemoryChannel(), "signal": refuses, "matrix": doubts})
    for channel in ("telegram", "signal", "matrix", "nobody"):
        speak(system, channel)
    for event in (DeliveryDone, DeliveryFailed, DeliveryUnknown):
        wait_for(system, event)

    def channels(*tokens: object) -> list[str]:
        return [row["channel"] for row in listed(booth, *tokens)]

    assert channels() == ["nobody", "matrix", "signal", "telegram"]
    assert channels("--failed") == ["matrix", "signal"]
    assert channels("--pending") == ["nobody"]
    assert channels("--failed", "--pending") == ["nobody", "matrix", "signal"]
    assert channels("--channel", "telegram") == ["telegram"]
    assert channels("--session", "main") == channels()
    signal = listed(booth, "--channel", "signal")[0]
    assert (signal["state"], signal["attempts"], signal["route"]) == (
        "failed",
        1,
        {"channel": "signal", "to": "42"},
    )
    assert (signal["sessionKey"], signal["text"]) == (MAIN, "you said hi")
    assert "NOT delivered to signal:42: DeliveryRefused: no such chat" in shown(booth, "deliveries").out
    assert channels("--since", signal["position"]) == ["nobody", "matrix"]
    assert channels("--until", signal["position"]) == ["signal", "telegram"]


def test_the_texts_of_one_run_are_asked_for(booth: Booth) -> None:
    """Whether a person was told of it: what a run answered, what an exchange or a spawn announced."""

    def main(turn: Turn) -> str:
        if turn.step != "message" or turn.message != "go":
            return "It is done."
        return str(turn.tools.call("sessions_spawn", {"task": "dig"})["status"])

    system = booth.start({"main": main}, {"telegram": MemoryChannel()})
    run, other = speak(system, text="go"), speak(system, text="hi")
    wait_for_number(system, DeliveryDone, 3)
    (spawn,) = recorded(system, SpawnAccepted)

    def texts(*tokens: object) -> list[str]:
        return [row["text"] for row in listed(booth, *tokens)]

    assert texts("--run", run[:8]) == ["accepted"]
    assert texts("--run", other) == ["It is done."]
    (announced,) = texts("--run", spawn.spawn_id)
    assert announced.startswith("Status: success")
    assert texts("--run", run, "--failed") == []
    refused = shown(booth, "deliveries", "--run", "nobody", "--json")
    assert (refused.exit_code, refused.json["code"]) == (1, "invalid_request")
    assert "intersession runs" in refused.json["error"]


def test_a_list_is_read_in_pages(booth: Booth) -> None:
    system = booth.start({"main": parrot}, {"telegram": MemoryChannel()})
    for number in range(5):
        speak(system, text=str(number))
    wait_for_number(system, DeliveryDone, 5)
    texts: list[str] = []
    cursor: tuple[str, ...] = ()
    while True:
        page = shown(booth, "deliveries", "--limit", 2, *cursor, "--json").json
        texts += [row["text"] for row in page["deliveries"]]
        if page["cursor"] is None:
            break
        cursor = ("--cursor", page["cursor"])

    assert texts == [f"you said {number}" for number in (4, 3, 2, 1, 0)]
    assert shown(booth, "deliveries", "--cursor", "x").exit_code == 1


def test_a_text_that_failed_is_tried_again_through_the_gateway_of_its_host(
    booth: Booth, tmp_path: Path
) -> None:
    """Before: nothing could be done about a delivery that had failed."""
    asked: list[Outbound] = []

    def at_first_refuses(outbound: Outbound) -> None:
        asked.append(outbound)
        if len(asked) == 1:
            raise DeliveryRefused("no such chat")

    config = tmp_path / "config.json5"
    config.write_text(json.dumps(GATEWAY), encoding="utf-8")
    system = booth.start({"main": parrot}, {"telegram": at_first_refuses}, GATEWAY)
    speak(system)
    wait_for(system, DeliveryFailed)
    (row,) = listed(booth)
    log = system.log
    assert isinstance(log, PortableLog)
    with LiveGateway(system) as live:
        log.announce_gateway(live.address)
        options = ("--config", config)
        done = shown(booth, "deliveries", "retry", row["id"][:12], *options, "--json")
        again = shown(booth, "deliveries", "retry", row["id"], *options, "--json")
        log.announce_gateway(None)

    assert (done.exit_code, done.json["state"], done.json["attempts"]) == (0, "done", 2)
    assert (again.exit_code, again.json["code"]) == (1, "invalid_request")
    assert [outbound.text for outbound in asked] == ["you said hi"] * 2
    assert len({outbound.key for outbound in asked}) == 1
    assert [event.by for event in recorded(system, DeliveryRetried)] == ["operator"]
    assert listed(booth, "--failed") == []


@pytest.mark.ci
def test_without_a_host_the_command_has_a_text_wait_for_its_channel(booth: Booth) -> None:
    system = booth.start({"main": parrot}, {"telegram": doubts})
    speak(system)
    wait_for(system, DeliveryUnknown)
    system.close()
    (row,) = listed(booth, "--failed")

    asked = shown(booth, "deliveries", "retry", row["id"], "--json")
    told = shown(booth, "replay", MAIN).out
    channel = MemoryChannel()
    again = booth.start({"main": parrot}, {"telegram": channel})
    wait_for(again, DeliveryDone)

    assert (asked.exit_code, asked.json["state"]) == (0, "retrying")
    assert "wants it delivered to telegram:42 after all" in told
    assert [sent.text for sent in channel.delivered] == ["you said hi"]
    assert [event.attempt for event in recorded(again, DeliveryStarted)] == [1, 2]


@pytest.mark.parametrize("typed", ["nothing", "", "delivery:", "' OR 1=1 --"])
def test_what_is_no_delivery_is_refused_and_says_so(booth: Booth, typed: str) -> None:
    system = booth.start({"main": parrot}, {"telegram": refuses})
    speak(system)
    wait_for(system, DeliveryFailed)
    system.close()

    refused = shown(booth, "deliveries", "retry", typed, "--json")

    assert (refused.exit_code, refused.json["code"]) == (1, "invalid_request")
