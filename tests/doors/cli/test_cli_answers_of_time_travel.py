"""What the commands of time travel print of hostile words: inert for people, and for programs what the protocol says (FIND-2)."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from intersession import MemoryChannel, Reply, SessionSystem, Turn
from intersession_events.basics.machine import random_id
from intersession_events.facts import DeliveryDone, ExchangeClosed, Usage
from support.doors.command_line import Ran, environment, ran
from support.every_day import every_day
from support.hostile import given, rows, steers
from support.processes.forked import ForkedCommand
from support.running import SEES_ALL, WAIT, merged, wait_for, wait_for_number

HOSTILE = "\n".join(str(given(row)) for row in rows("R"))
PLACE = {"position", "eventId", "timeMs", "text"}
TOLD = {"position", "eventId", "timeMs", "stream", "topic", "way", "who", "to", "text", "how", "carried"}


class Hostile(NamedTuple):
    """A log in which everybody says everything that steers a terminal; an exchange of it, another one, and a fork."""

    path: Path
    run: str
    other: str
    fork: str


def main(turn: Turn) -> str:
    if turn.step == "reply":
        return HOSTILE
    turn.tools.call("sessions_send", {"agentId": "research", "message": HOSTILE, "timeoutSeconds": 20})
    return HOSTILE


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    path = tmp_path_factory.mktemp("hostile") / "hostile.db"
    one_turn = {"session": {"agentToAgent": {"maxPingPongTurns": 1}}}
    channel = MemoryChannel()
    with SessionSystem(
        path,
        agents={"main": main, "research": lambda _: Reply(HOSTILE, usage=Usage(input=3, output=2))},
        channels={"telegram": channel},
        config=merged(SEES_ALL, one_turn),
    ) as system:
        for number in (1, 2):
            for agent in ("research", "main") if number == 1 else ("main",):
                system.inbound(
                    channel="telegram",
                    chat_id=agent,
                    sender="ada",
                    sender_name="\u202eada",
                    text=HOSTILE,
                    agent_id=agent,
                    wait=20,
                )
            wait_for_number(system, ExchangeClosed, number)
        wait_for(system, DeliveryDone)
    found = ran("runs", "--kind", "exchange", "--store", path, "--json").json["runs"]
    made = ran("fork", found[1]["id"], "--at", "turn:1", "--no-run", "--store", path, "--json").json
    return Hostile(path, found[1]["id"], found[0]["id"], made["fork"])


def asked(log: Hostile, *command: str) -> Ran:
    names = {"RUN": log.run, "OTHER": log.other, "FORK": log.fork, "NEW": f"{log.path.parent / random_id()}"}
    typed = [re.sub("RUN|OTHER|FORK|NEW", lambda found: names[found[0]], token) for token in command]
    return ran(*typed, "--store", log.path)


EVENT = {"position", "eventId", "timeMs", "stream", "version", "kind", "topic", "text", "data"}
ANSWERS: list[tuple[tuple[str, ...], set[str]]] = [
    (
        ("lens", "RUN@turn:1"),
        {
            "run",
            "attempt",
            "place",
            "sessionKey",
            "asRecorded",
            "contextHash",
            "rebuiltHash",
            "systemContext",
            "messages",
            "message",
            "partial",
            "madeBefore",
            "tools",
            "model",
            "thinking",
            "settings",
            "deadlineMs",
            "contextTokens",
            "usedTokens",
            "leftOut",
        },
    ),
    (("show", "RUN"), {"run", "place", "next", "lanes", "rows", "smells"}),
    (("why", "RUN"), {"event", "causes", "root", "explanations"}),
    (("why", "RUN", "--forward"), {"event", "effects", "open"}),
    (
        ("state", "RUN", "--at", "RUN@turn:1"),
        {"place", "next", "sessions", "runs", "exchanges", "spawns", "deliveries", "open", "config"},
    ),
    (
        ("state",),
        {"place", "next", "sessions", "runs", "exchanges", "spawns", "deliveries", "open", "config"},
    ),
    (("state", "--from", "RUN@start", "--to", "RUN@end"), {"from", "to", "changes"}),
    (("origin", "alert"), {"first", "hops", "match", "words", "cut"}),
    (("smells", "RUN"), {"run", "smells"}),
    (("smells",), {"runs", "looked", "cursor"}),
    (("diff", "RUN", "OTHER"), {"same", "firstDivergence", "turns", "totals", "a", "b"}),
    (("diff", "RUN", "FORK"), {"same", "firstDivergence", "turns", "totals", "a", "b"}),
    (("search", "alert"), {"hits", "cursor", "indexed"}),
    (("runs", "--smell"), {"count", "runs", "cursor"}),
    (("messages", "--why", "--delivered"), {"count", "messages", "cursor"}),
    (("deliveries",), {"count", "deliveries", "cursor"}),
    (("events",), {"count", "events", "cursor"}),
    (("forks",), {"forks", "unread"}),
    (
        ("replay", "RUN", "--sealed"),
        {"run", "events", "decided", "given", "same", "walked", "notJudged", "firstDifference"},
    ),
    (
        ("replay", "--all", "--sealed"),
        {"run", "events", "decided", "given", "same", "walked", "notJudged", "firstDifference"},
    ),
    (("fork", "RUN", "--at", "reply", "--no-run"), {"fork", "store", "from", "run", "edits"}),
    (
        ("fork", "RUN", "--at", "turn:1", "--agent", "*=recorded", "--times", "2"),
        {"outcomes"},
    ),
    (("export-test", "RUN", "-o", "NEW.py"), {"run", "test", "recording", "events"}),
    (("usage",), {"count", "usage", "totals", "cursor"}),
    (("erasures",), {"count", "erasures", "cursor"}),
    (("audit", "access"), {"count", "receipts", "cursor"}),
]
ROWS: list[tuple[tuple[str, ...], str, set[str]]] = [
    (("search", "alert"), "hits", {"position", "sessionKey", "runId", "kind", "timeMs", "snippet"}),
    (("messages", "--why", "--delivered"), "messages", {"position", "from", "to", "runId", "text"}),
    (("deliveries",), "deliveries", {"id", "sessionKey", "route", "state", "attempts", "position"}),
    (("events",), "events", EVENT),
    (("tail", "--last", "1000"), "", EVENT),
    (("runs", "--smell"), "runs", {"id", "kind", "smells"}),
    (("forks",), "forks", {"id", "parent", "place", "edits", "outcome"}),
    (
        ("fork", "RUN", "--at", "turn:1", "--agent", "*=recorded", "--times", "2"),
        "outcomes",
        {"count", "end", "turns", "tokens", "costMicros", "announced", "forks"},
    ),
    (("usage",), "usage", {"agent", "runs", "totalTokens", "costMicros"}),
    (("audit", "access"), "receipts", {"position", "time", "who", "tool", "allowed", "denied"}),
]
"""Commands that list, under which name, and what each row has at least; `tail` prints its rows alone, for ever."""


@pytest.mark.clause("FIND-2", "PLACE-5")
@pytest.mark.parametrize(
    ("command", "names"), ANSWERS, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_an_answer_has_the_names_that_it_promises_and_places_are_places(
    log: Hostile, command: tuple[str, ...], names: set[str]
) -> None:
    done = asked(log, *command, "--json")

    assert done.exit_code in {0, 1 if command[0] == "diff" else 0}, done.err
    assert set(done.json) == names
    assert steers(done.out) == []
    for path, value in _objects(done.json):
        if path.rpartition("/")[2] in {"place", "next", "from", "to"} and "eventId" in value:
            assert set(value) == PLACE, path
        if "how" in value and "stream" in value:
            assert set(value) - {"effects", "more", "kind", "by"} == TOLD, path
        # Settings, events and what a tool takes have names of their own.
        if not re.search("settings|config|data|parameters|inputs|totals", path):
            assert [name for name in value if not re.fullmatch("[a-z][a-zA-Z]*", name)] == [], path


@pytest.mark.clause("FIND-2")
@pytest.mark.parametrize(("command", "name", "has"), ROWS, ids=[" ".join(row[0]) for row in ROWS])
def test_each_row_of_a_list_has_the_names_that_it_promises(
    log: Hostile, command: tuple[str, ...], name: str, has: set[str]
) -> None:
    if name:
        listed = asked(log, *command, "--json").json[name]
    else:
        child = ForkedCommand([*command, "--json", "--store", str(log.path)], environment())
        listed = [json.loads(line) for line in islice(child.stdout, 40)]
        child.kill()
        child.communicate(timeout=WAIT)

    assert listed
    assert [row for row in listed if not has <= set(row)] == []


def test_a_screen_has_no_json_and_says_what_has(log: Hostile) -> None:
    refused = asked(log, "step", "RUN", "--json")

    assert refused.exit_code == 2
    assert set(refused.json) >= {"status", "code", "error"}
    assert "show --json" in refused.json["error"]


@pytest.mark.parametrize(
    "command",
    every_day(
        {" ".join(command): (command,) for command, _ in ANSWERS},
        *(" ".join(command) for command, _ in ANSWERS[::4]),
    ),
)
def test_hostile_words_come_out_of_a_command_as_escapes(log: Hostile, command: tuple[str, ...]) -> None:
    done = asked(log, *command)

    assert done.exit_code in {0, 1}
    assert done.out
    assert steers(done.out + done.err) == []


@pytest.mark.parametrize(
    "command",
    [
        ("lens", "\x1b[31mnobody"),
        ("show", "\x1b[31mnobody"),
        ("why", "\x1b[31mnobody"),
        ("smells", "\x1b[31mnobody"),
        ("smells", "--session", "\x1b[31mnobody"),
        ("smells", "--since", "\x1b[31mnoon"),
        ("smells", "--cursor", "\x1b[31m"),
        ("smells", "RUN", "--limit", "2"),
        ("state", "\x1b[31mnobody"),
        ("state", "--at", "\x1b[31mnoon"),
        ("origin", "x", "--run", "\x1b[31mnobody"),
        ("diff", "RUN", "\x1b[31mnobody"),
        ("fork", "RUN", "--at", "\x1b[31mnoon", "--no-run"),
        ("search", "\x1b"),
    ],
    ids=lambda command: " ".join(command).replace("\x1b", "ESC"),
)
def test_what_is_not_there_is_said_in_a_line_that_names_it(log: Hostile, command: tuple[str, ...]) -> None:
    done = asked(log, *command)

    assert (done.exit_code, done.out) in {(1, ""), (2, "")}
    assert re.match(r"error \((invalid_request|not_visible|invalid_key|usage)\): (--)?\w", done.err), done.err
    assert done.err.count("\n") == 1
    assert steers(done.err) == []


def _objects(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for name, item in value.items():
            yield from _objects(item, f"{path}/{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item, path)
