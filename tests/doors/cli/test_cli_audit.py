"""`audit access` tells who asked for what, from the receipts alone."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, Turn, echo
from intersession_actors.calls.service.callers import Caller
from intersession_events.copies.bundles.verifying import check_bundle
from intersession_events.facts import SendRefused
from support.as_caller import called_by
from support.doors.command_line import DemoLog, ran, words
from support.running import wait_for

MAIN = "agent:main:main"
OPS = "agent:ops:main"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log in which a session, a credential and the operator asked for things."""
    path = tmp_path_factory.mktemp("audit") / "log.db"
    with SessionSystem(f"sqlite:///{path}", agents={"main": echo(), "ops": echo()}) as system:
        for key in (MAIN, OPS):
            system.gateway.call("sessions.patch", {"key": key, "label": "a"})
        seen = system.tools(MAIN)
        seen.call("sessions_list", {"kinds": ["main"], "limit": 5})
        seen.call("sessions_history", {"sessionKey": OPS})
        seen.call(
            "sessions_send", {"sessionKey": "agent:main:\x1b[31mred", "message": "hi", "timeoutSeconds": 0}
        )
        seen.call("sessions_history", {"sessionKey": "ghost"})
        system.tools().call("sessions_list", {})
        limited = Caller.by_credential("bot", ("agent:ops:*",))
        called_by(limited, system, "chat.history", {"sessionKey": MAIN})
        system.gateway.call("sessions.patch", {"key": MAIN, "label": "b"})
    return path


def asked(log: Path, *tokens: object) -> list[tuple[str, str, int, int]]:
    receipts: list[dict[str, Any]] = ran("audit", "access", *tokens, "--store", log, "--json").json[
        "receipts"
    ]
    return [(row["who"], row["tool"], row["allowed"], row["denied"]) for row in receipts]


@pytest.mark.clause("VIS-4")
def test_receipts_come_newest_first_over_all_who_asked(audited: Path) -> None:
    assert asked(audited) == [
        ("credential:bot", "chat.history", 0, 1),
        ("operator", "sessions_list", 2, 0),
        (MAIN, "sessions_history", 0, 1),
        (MAIN, "sessions_send", 0, 1),
        (MAIN, "sessions_history", 0, 1),
        (MAIN, "sessions_list", 1, 1),
    ]
    assert asked(audited, "--limit", 2) == asked(audited)[:2]


@pytest.mark.clause("VIS-4")
def test_receipts_are_found_by_who_asked_for_what_and_what_was_denied(audited: Path) -> None:
    assert asked(audited, "--who", "operator") == [("operator", "sessions_list", 2, 0)]
    assert asked(audited, "--who", "credential:bot") == [("credential:bot", "chat.history", 0, 1)]
    assert asked(audited, "--who", "main", "--tool", "sessions_list") == [(MAIN, "sessions_list", 1, 1)]
    assert [row[1] for row in asked(audited, "--denied", "--who", MAIN)] == [
        "sessions_history",
        "sessions_send",
        "sessions_history",
        "sessions_list",
    ]
    assert asked(audited, "--target", "ghost") == [(MAIN, "sessions_history", 0, 1)]
    assert asked(audited, "--target", "nobody asked") == []


@pytest.mark.clause("VIS-4")
def test_receipts_of_a_span_lie_between_two_places(audited: Path) -> None:
    rows = ran("audit", "access", "--store", audited, "--json").json["receipts"]
    places = [row["position"] for row in rows]

    assert places == sorted(places, reverse=True)
    assert asked(audited, "--since", places[2], "--until", places[1]) == asked(audited)[1:2]
    assert asked(audited, "--until", "2020-01-01T00:00:00Z") == []
    assert ran("audit", "access", "--store", audited, "--since", "2999-01-01").exit_code == 1
    assert "--since" in ran("audit", "access", "--store", audited, "--since", "soon").err


@pytest.mark.clause("VIS-4")
def test_a_receipt_says_with_which_filters_what_came_back_and_why_not(audited: Path) -> None:
    rows = ran("audit", "access", "--store", audited, "--json").json["receipts"]
    listed, denied = rows[-1], rows[-2]

    assert listed["filters"] == {"kinds": ["main"], "limit": 5}
    assert len(listed["keysDigest"]) == 64
    assert denied["deniedTargets"] == [{"target": OPS, "code": "forbidden"}]
    assert rows[0]["credential"] == "bot"


@pytest.mark.clause("VIS-4")
def test_people_get_a_table_and_a_summary(audited: Path) -> None:
    lines = words(ran("audit", "access", "--store", audited).out)

    assert lines[0].split()[:4] == ["#", "when", "(UTC)", "who"]
    assert lines[1].endswith(f"{MAIN} (not_visible)")
    assert lines[-1] == "6 receipts; 5 with a denial"
    assert "\\x1b[31mred (invalid_key)" in lines[4]
    assert words(ran("audit", "access", "--target", "x", "--store", audited).out) == ["no receipts"]


def test_who_is_not_there_is_told_so(audited: Path) -> None:
    done = ran("audit", "access", "--who", "agent:main:nobody", "--store", audited)

    assert done.exit_code == 1
    assert "not_visible" in done.err


@pytest.mark.clause("VIS-4", "HIST-7")
def test_the_receipts_of_a_session_that_is_gone_stay(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    key = "agent:main:telegram:group:7"
    with SessionSystem(f"sqlite:///{path}", agents={"main": echo()}) as system:
        system.inbound(channel="telegram", chat_id="7", chat_type="group", sender="ann", text="hi", wait=10)
        system.tools(key).call("agents_list", {})
        system.gateway.call("sessions.delete", {"key": key})

    assert asked(path, "--who", key) == [(key, "agents_list", 0, 0)]


@pytest.mark.clause("LOOP-5")
def test_sends_that_a_limit_refused_are_among_them(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    def asking(other: str) -> Callable[[Turn], str]:
        def agent(turn: Turn) -> str:
            turn.tools.call("sessions_send", {"sessionKey": other, "message": "on", "timeoutSeconds": 0})
            return "NO_REPLY"

        return agent

    config = {
        "session": {"agentToAgent": {"limits": {"hops": 1}}},
        "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    }
    agents = {"main": asking(OPS), "ops": asking(MAIN)}
    with SessionSystem(f"sqlite:///{path}", agents=agents, config=config) as system:
        system.inbound(channel="telegram", chat_id="7", sender="ann", text="hi", wait=10)
        wait_for(system, SendRefused)
    rows = ran("audit", "access", "--denied", "--store", path, "--json").json["receipts"]

    assert [(row["who"], row["deniedTargets"], row["limitValue"]) for row in rows if "limit" in row] == [
        (OPS, [{"target": MAIN, "code": "limit"}], 1)
    ]


def test_the_receipts_of_the_demo_are_told(demo_log: DemoLog) -> None:
    assert [row[1] for row in asked(demo_log.path)] == ["sessions_spawn", "sessions_send"]


@pytest.mark.clause("ANS-14", "BUNDLE-7")
def test_who_was_denied_what_is_proven_by_a_bundle(audited: Path, tmp_path: Path) -> None:
    made = tmp_path / "denied.zip"
    done = ran("audit", "access", "--denied", "--who", MAIN, "--bundle", made, "--store", audited, "--json")
    with zipfile.ZipFile(made) as archive:
        events = [json.loads(line) for line in archive.read("events.jsonl").splitlines()]
        answer = json.loads(archive.read("answer.json"))

    assert check_bundle(made).ok
    assert answer["verb"] == "access"
    assert answer["answer"]["receipts"] == done.json["receipts"]
    assert {f"access:{MAIN}"} <= {event["stream"] for event in events}
    assert "credential:bot" not in str(events)  # whose receipts answer another question
