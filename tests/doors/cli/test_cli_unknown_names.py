"""A filter that names what the log does not know is told so, with names that look like it: an empty list alone says nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from intersession import MemoryChannel
from intersession_events.facts import DeliveryDone
from support.any_log import Logs
from support.doors.command_line import shown
from support.running import WAIT, Booth, wait_for


@pytest.fixture(scope="module")
def booth(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booth]:
    """A log with two agents, a person, a channel and a label."""
    with Booth(logs.at(tmp_path_factory.mktemp("names"))) as opened:
        system = opened.start(
            {"main": lambda turn: turn.message, "research": lambda turn: turn.message},
            {"telegram": MemoryChannel()},
        )
        said: dict[str, Any] = {"channel": "telegram", "chat_id": "42", "sender": "u1", "sender_name": "Ada"}
        system.inbound(**said, text="hi", wait=WAIT)
        system.inbound(**said, text="hi", agent_id="research", wait=WAIT)
        wait_for(system, DeliveryDone)
        system.gateway.call("sessions.patch", {"key": "agent:research:main", "label": "library"})
        system.tools("agent:main:main").call("sessions_list", {})
        system.close()
        yield opened


ASKED: list[tuple[tuple[str, ...], list[str]]] = [
    (("runs", "--agent", "reserch"), ["research"]),
    (("runs", "--channel", "telegrm"), ["telegram"]),
    (("runs", "--person", "adaa"), ["Ada"]),
    (("runs", "--agent", "zzz"), []),
    (("messages", "--person", "adda"), ["Ada"]),
    (("deliveries", "--channel", "Telegram"), ["telegram"]),
    (("sessions", "--agent", "researchers"), ["research"]),
    (("sessions", "--label", "librarry"), ["library"]),
    (("events", "--stream", "session:agent:reserch:main"), ["agent:research:main"]),
    (("events", "--stream", "exchange:zzzz"), []),
    (("audit", "access", "--tool", "session_list"), ["sessions_list"]),
    (("audit", "access", "--who", "credential:none"), []),
]


@pytest.mark.parametrize(
    "command",
    [
        *("replay", "history", "show", "why", "lens", "forks", "fork", "export-test"),
        *("abort", "retry", "hold", "release", "runs --session", "messages --to", "state"),
    ],
)
def test_an_argument_that_is_no_utf_8_is_told(booth: Booth, command: str) -> None:
    told = shown(booth, *command.split(), "ab\udcff")
    assert told.exit_code == 1
    assert "Traceback" not in told.err
    assert told.err.splitlines()[-1].startswith("error (invalid_request): "), told.err


@pytest.mark.parametrize(("tokens", "alike"), ASKED, ids=[" ".join(tokens) for tokens, _ in ASKED])
def test_a_name_that_nobody_knows_is_told(booth: Booth, tokens: tuple[str, ...], alike: list[str]) -> None:
    """Before: `runs --agent X` said `no rows` of an agent that was typed wrong."""
    *_, option, value = tokens
    people, programs = shown(booth, *tokens), shown(booth, *tokens, "--json")

    assert (people.exit_code, programs.exit_code) == (0, 0), "nothing matched, which is right"
    assert people.err.startswith(f"note: {option}: this log knows no ")
    assert repr(value) in people.err
    assert all(name in people.err for name in alike)
    (told,) = programs.json["unknown"]
    assert (told["option"], told["value"]) == (option, value)
    assert [name for name in alike if name not in told["near"]] == []
    assert programs.json["count"] == 0


@pytest.mark.parametrize(
    "tokens",
    [
        ("runs", "--agent", "research", "--failed"),
        ("runs", "--channel", "telegram", "--open"),
        ("runs", "--person", "ADA", "--open"),
        ("messages", "--person", "ada", "--inter-session"),
        ("deliveries", "--channel", "telegram", "--failed"),
        ("sessions", "--agent", "research", "--kind", "cron"),
        ("events", "--stream", "delivery:", "--kind", "run_failed"),
        ("audit", "access", "--tool", "sessions_send"),
        ("audit", "access", "--who", "main", "--denied"),
    ],
    ids=" ".join,
)
def test_a_name_that_is_known_is_not(booth: Booth, tokens: tuple[str, ...]) -> None:
    people, programs = shown(booth, *tokens), shown(booth, *tokens, "--json")

    assert (people.exit_code, people.err) == (0, "")
    assert (programs.json["count"], "unknown" in programs.json) == (0, False)


@pytest.mark.clause("LIST-7")
def test_who_acts_as_a_session_hears_of_no_name_but_what_it_sees(booth: Booth) -> None:
    people = shown(booth, "sessions", "--agent", "zzz", "--as", "main")

    assert (people.exit_code, people.err) == (0, "note: agentId: you see no session of that agent\n")


@pytest.mark.parametrize(
    "command",
    [
        ("runs", "--session"),
        ("messages", "--to"),
        ("deliveries", "--session"),
        ("events", "--session"),
        ("replay",),
        ("reset",),
        ("label", "--clear"),
        ("abort",),
    ],
    ids=" ".join,
)
def test_a_session_that_nobody_knows_is_refused_with_those_that_look_like_it(
    booth: Booth, command: tuple[str, ...]
) -> None:
    refused = shown(booth, *command, "reserch", "--json")

    assert (refused.exit_code, refused.json["code"]) == (1, "not_visible")
    assert "there is research" in refused.json["error"]


def test_what_can_be_no_agent_id_is_refused(booth: Booth) -> None:
    refused = shown(booth, "runs", "--agent", "No Such!", "--json")

    assert (refused.exit_code, refused.json["code"]) == (1, "invalid_request")
    assert refused.json["error"].startswith("agent: ")
