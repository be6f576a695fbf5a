"""`intersession runs` answers questions over the whole log, and what it prints can be typed back."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import DeliveryFailed, ExchangeClosed, SpawnClosed
from support.any_log import Logs
from support.doors.command_line import ran, shown
from support.hosts_code import parrot, refuses
from support.running import WAIT, Booth, wait_for

MAIN = "agent:main:main"


def main(turn: Turn) -> str:
    if turn.message == "ask":
        turn.tools.call("sessions_send", {"agentId": "research", "message": "q", "timeoutSeconds": WAIT})
    if turn.message == "spawn":
        turn.tools.call("sessions_spawn", {"task": "count"})
    if turn.message == "break":
        raise ValueError("broken")
    return "REPLY_SKIP" if "agent" in turn.message else "done"


@pytest.fixture(scope="module")
def booth(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booth]:
    """A log with an exchange and a spawn that ada asked for, a run that failed, and one whose text nobody got."""
    with Booth(logs.at(tmp_path_factory.mktemp("runs"))) as opened:
        system = opened.start(
            {"main": main, "research": parrot}, {"telegram": MemoryChannel(), "signal": refuses}
        )
        speak(system, "telegram", "ada", "ask")
        wait_for(system, ExchangeClosed)
        speak(system, "telegram", "ada", "spawn")
        wait_for(system, SpawnClosed)
        speak(system, "telegram", "ben", "break")
        speak(system, "signal", "eve", "hi")
        wait_for(system, DeliveryFailed)
        flows = system.service.flows
        for _ in system.follow(max(0, system.log.head() - 1), timeout=WAIT):
            if not (flows.open_exchanges() or flows.open_spawns() or flows.open_deliveries()):
                break
        system.close()
        yield opened


def speak(system: SessionSystem, channel: str, sender: str, text: str) -> None:
    system.inbound(channel=channel, chat_id="42", sender=sender, text=text, wait=WAIT)


def listed(booth: Booth, *tokens: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(booth, "runs", *tokens, "--json").json["runs"]
    return found


@pytest.mark.parametrize(
    ("tokens", "kinds"),
    [
        ((), ["run", "run", "spawn", "run", "exchange", "run"]),
        (("--kind", "exchange"), ["exchange"]),
        (("--kind", "spawn", "--kind", "exchange"), ["spawn", "exchange"]),
        (("--failed",), ["run", "run"]),
        (("--failed", "--channel", "signal"), ["run"]),
        (("--channel", "telegram", "--kind", "exchange"), ["exchange"]),
        (("--session", "research"), ["exchange"]),
        (("--agent", "research"), ["exchange"]),
        (("--agent", "nobody"), []),
        (("--person", "ADA"), ["spawn", "run", "exchange", "run"]),
        (("--person", "ben"), ["run"]),
        (("--open",), []),
        (("--session", "main", "--with", "research"), ["exchange"]),
        (("--with", "research"), ["exchange"]),
        (("--session", "research", "--with", "research"), ["exchange"]),
        (("--end", "backend"), ["run"]),
        (("--end", "error", "--person", "ada"), []),
        (("--end", "announced"), ["spawn"]),
        (("--end", "turn_limit", "--end", "announced"), ["spawn", "exchange"]),
        (("--words", "YOU said"), ["exchange", "run"]),
        (("--words", "broken"), ["run"]),
        (("--words", "you broken"), []),
        (("--words", "count", "--kind", "spawn", "--session", "main"), ["spawn"]),
        (("--words", "attempt"), []),
    ],
)
def test_runs_are_filtered(booth: Booth, tokens: tuple[str, ...], kinds: list[str]) -> None:
    """Before: there was no question over the whole log."""
    assert [row["kind"] for row in listed(booth, *tokens)] == kinds


@pytest.mark.parametrize(
    ("tokens", "known"),
    [(("--end", "turnlimit"), "turn_limit"), (("--kind", "runs"), "exchange"), (("--with", "nobody/x"), "")],
)
def test_an_unknown_word_is_refused_and_the_known_ones_are_named(
    booth: Booth, tokens: tuple[str, ...], known: str
) -> None:
    refused = shown(booth, "runs", *tokens, "--json")

    assert refused.exit_code in {1, 2}
    assert known in refused.json["error"]


def test_runs_are_listed_between_places_and_in_pages(booth: Booth) -> None:
    whole = [row["accepted"] for row in listed(booth)]
    assert whole == sorted(whole, reverse=True)
    assert [row["accepted"] for row in listed(booth, "--since", whole[3], "--until", whole[1])] == whole[1:3]
    paged: list[int] = []
    cursor: tuple[str, ...] = ()
    while True:
        page = shown(booth, "runs", "--limit", 2, *cursor, "--json").json
        paged += [row["accepted"] for row in page["runs"]]
        if page["cursor"] is None:
            break
        cursor = ("--cursor", page["cursor"])
    assert paged == whole


@pytest.mark.sqlite("copies the file, so that the other tests read the log as it is")
def test_every_name_that_runs_prints_is_accepted(booth: Booth, tmp_path: Path) -> None:
    """Before: `research` and `main/subagent:…` were accepted by no command."""
    (spawn,) = listed(booth, "--kind", "spawn")
    line = next(line for line in shown(booth, "runs").out.splitlines() if "main/subagent:" in line)
    child = next(word for word in line.split() if word.startswith("main/subagent:"))
    for name in (child, child[:-2]):
        assert shown(booth, "history", name, "--json").json["sessionKey"] == spawn["target"]
        assert shown(booth, "replay", name, "--json").exit_code == 0
        assert [row["kind"] for row in listed(booth, "--session", name)] == ["spawn"]
        assert shown(booth, "sessions", "--as", name).exit_code == 0
        assert shown(booth, "audit", "access", "--who", name).exit_code == 0
    assert shown(booth, "history", "research", "--json").json["sessionKey"] == "agent:research:main"
    assert shown(booth, "replay", "research").exit_code == 0
    # What is sent goes to a copy: the other tests read the log as it is.
    copy = tmp_path / "copy.db"
    with (
        closing(sqlite3.connect(booth.url.removeprefix("sqlite:///"))) as log,
        closing(sqlite3.connect(copy)) as into,
    ):
        log.backup(into)
    sent = ran("send", "hello", "--to", child, "--timeout", 0, "--json", "--store", copy)
    assert sent.json["sessionKey"] == spawn["target"]


@pytest.mark.sqlite("copies the file, so that the other tests read the log as it is")
def test_the_label_that_a_list_prints_is_accepted(booth: Booth, tmp_path: Path) -> None:
    """Before: `sessions` prints labels, and only `send --label` took one."""
    (spawn,) = listed(booth, "--kind", "spawn")
    copy = tmp_path / "copy.db"
    with (
        closing(sqlite3.connect(booth.url.removeprefix("sqlite:///"))) as log,
        closing(sqlite3.connect(copy)) as into,
    ):
        log.backup(into)
    ran("label", spawn["target"], "the detour", "--store", copy)

    named = ran("history", "the detour", "--json", "--store", copy)
    unknown = ran("history", "a detour", "--json", "--store", copy)
    # Agents give labels, and what is erased can't be had back.
    erased = ran("erase", "the detour", "--yes", "--json", "--store", copy)

    assert named.json["sessionKey"] == spawn["target"]
    assert (unknown.exit_code, erased.exit_code) == (1, 1)


def test_the_beginning_of_an_id_is_enough(booth: Booth) -> None:
    for row in listed(booth):
        for typed in (row["id"][:8], row["runId"][:8]):
            assert shown(booth, "replay", typed, "--json").exit_code == 0
    assert shown(booth, "replay", listed(booth)[0]["id"][:2]).exit_code == 1
    session_id = shown(booth, "sessions", "--agent", "research", "--json").json["sessions"][0]["sessionId"]
    assert shown(booth, "history", session_id[:8]).exit_code == 0
