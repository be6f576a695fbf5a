"""`intersession messages` says who spoke to whom, on whose behalf, and who outside got the answer."""

import json
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import DeliveryDone, ExchangeClosed
from support.doors.command_line import DemoLog, Ran, ran
from support.hosts_code import parrot
from support.running import WAIT, Booth, wait_for, wait_for_number

MAIN, RESEARCH = "agent:main:main", "agent:research:main"


def asking(turn: Turn) -> str:
    if turn.message.startswith("ask "):
        asked = {"agentId": "research", "message": turn.message[4:], "timeoutSeconds": WAIT}
        return f"research says {turn.tools.call('sessions_send', asked)['reply']}"
    return "REPLY_SKIP"


@pytest.fixture
def system(booth: Booth) -> SessionSystem:
    """A system in which ada had `main` ask `research`, and ben had asked `research` himself."""
    channel = MemoryChannel()
    system = booth.start({"main": asking, "research": parrot}, {"telegram": channel, "discord": channel})
    said: dict[str, Any] = {
        "channel": "discord",
        "chat_id": "7",
        "sender": "ben",
        "agent_id": "research",
        "wait": WAIT,
    }
    system.inbound(text="what is new?", **said)
    said = {"channel": "telegram", "chat_id": "42", "sender": "4711", "sender_name": "Ada", "wait": WAIT}
    system.inbound(text="ask when does the lake open?", **said)
    wait_for(system, ExchangeClosed)
    wait_for_number(system, DeliveryDone, 3)
    return system


def shown(booth: Booth, *tokens: object) -> Ran:
    return ran("messages", *tokens, "--store", booth.url)


def listed(booth: Booth, *tokens: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(booth, *tokens, "--json").json["messages"]
    return found


@pytest.mark.usefixtures("system")
def test_who_spoke_to_research_on_whose_behalf_delivered_to_whom_is_one_command(booth: Booth) -> None:
    """Before: it took 40 lines of Python."""
    asked, direct = (
        row
        for row in listed(booth, "--to", "research", "--why", "--delivered")
        if row["kind"] == "external_user" or row.get("turn") == 0
    )

    assert (asked["from"], asked["to"], asked["text"]) == (MAIN, RESEARCH, "when does the lake open?")
    assert asked["person"] == {"channel": "telegram", "id": "4711", "name": "Ada"}
    assert (asked["why"]["to"], asked["why"]["text"]) == (MAIN, "ask when does the lake open?")
    assert (direct["from"], direct["person"]["id"], direct["why"]["text"]) == (
        "person",
        "ben",
        "what is new?",
    )
    assert [(text["channel"], text["to"], text["state"]) for text in direct["delivered"]] == [
        ("discord", "7", "done")
    ]
    told = shown(booth, "--to", "research", "--why", "--delivered").out
    assert "main → research for Ada on telegram" in told
    assert "ben on discord → research" in told
    assert "delivered to discord:7" in told


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(
    ("tokens", "texts"),
    [
        (("--inter-session", "--from", "main"), {"when does the lake open?"}),
        (("--person", "ada", "--to", MAIN, "--limit", 1000), {"ask when does the lake open?"}),
        (("--person", "4711", "--inter-session", "--from", MAIN), {"when does the lake open?"}),
        (("--person", "ben"), {"what is new?"}),
        (("--person", "nobody"), set[str]()),
        (("--to", "research", "--until", 5), {"what is new?"}),
        (("--since", 5, "--from", "main"), {"when does the lake open?"}),
    ],
)
def test_filters_hold_together(booth: Booth, tokens: tuple[object, ...], texts: set[str]) -> None:
    found = {
        row["text"]
        for row in listed(booth, *tokens)
        if row["kind"] == "external_user" or row.get("turn") == 0
    }
    assert found == texts


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("tokens", [(), ("--to", "research")])
def test_pages_give_every_message_once(booth: Booth, tokens: tuple[str, ...]) -> None:
    whole = [row["position"] for row in listed(booth, *tokens)]
    paged: list[int] = []
    cursor: tuple[str, ...] = ()
    while True:
        page = shown(booth, *tokens, "--limit", 1, *cursor, "--json").json
        paged += [row["position"] for row in page["messages"]]
        if page["cursor"] is None:
            break
        cursor = ("--cursor", page["cursor"])

    assert paged == whole == sorted(whole, reverse=True)
    assert len(whole) > 1


@pytest.mark.clause("FIND-2")
def test_all_that_sessions_said_to_each_other_is_printed_as_json_lines(demo_log: DemoLog) -> None:
    asked = ("--inter-session", "--since", "2020-01-01", "--store", demo_log.path)

    lines = ran("messages", *asked, "--jsonl").out.splitlines()

    every = ran("messages", *asked, "--limit", 1000, "--json").json["messages"]
    assert [json.loads(line) for line in lines] == every
    assert len(ran("messages", *asked, "--jsonl", "--limit", 1).out.splitlines()) == 1
    events = ran("events", "--jsonl", "--store", demo_log.path).out.splitlines()
    assert len(events) == json.loads(events[0])["position"] > 50
