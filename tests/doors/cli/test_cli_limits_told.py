"""A list that gives less than it was asked for says so, at each door; a number that no list can have is a usage error (finding A16)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem
from support.doors.command_line import ran

NOTES = "agent:main:notes"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "s.db"
    with SessionSystem(path, agents={"main": lambda turn: turn.message}) as system:
        system.gateway.perform("sessions.patch", {"key": NOTES, "label": "notes"})
        system.gateway.perform("chat.inject", {"sessionKey": NOTES, "message": "milk"})
    return path


@pytest.mark.parametrize(
    ("command", "name", "most"),
    [
        (("sessions", "--limit", 1000), "limitApplied", 200),
        (("sessions", "--messages", 99), "messageLimitApplied", 20),
        (("history", NOTES, "--limit", 1001), "limitApplied", 1000),
    ],
    ids=["sessions", "messages", "history"],
)
def test_a_command_says_that_it_gives_less_than_was_asked_for(
    store: Path, command: tuple[str, ...], name: str, most: int
) -> None:
    """Before: `--limit 1000` gave 200 in silence."""
    asked, told = ran(*command, "--store", store, "--json").json, ran(*command, "--store", store)
    enough = ran(*command[:-1], most, "--store", store)

    assert asked[name] == most
    assert f" was taken as {most}" in told.err
    assert enough.err == ""


@pytest.mark.parametrize("command", [("sessions",), ("history", NOTES)], ids=" ".join)
@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_limit_below_one_is_told_too(store: Path, command: tuple[str, ...], limit: str) -> None:
    assert ran(*command, "--limit", limit, "--store", store, "--json").json["limitApplied"] == 1


def test_uncut_a_limit_below_one_is_a_usage_error(store: Path) -> None:
    """What is uncut has no limit to be cut to."""
    assert ran("history", NOTES, "--raw", "--limit", 0, "--store", store, "--json").json["code"] == "usage"


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("sessions.list", {"limit": 201}, {"limitApplied": 200}),
        ("chat.history", {"sessionKey": NOTES, "limit": 5000}, {"limitApplied": 1000}),
        ("sessions.preview", {"keys": [NOTES], "limit": 51}, {"limitApplied": 50}),
        ("sessions.preview", {"keys": [NOTES], "maxChars": 9999}, {"maxCharsApplied": 2000}),
        ("sessions.preview", {"keys": [NOTES] * 65}, {"keysApplied": 64}),
        ("sessions.preview", {"keys": [NOTES]}, {}),
        ("sessions.list", {"limit": 200}, {}),
    ],
)
def test_a_method_says_that_it_gives_less_than_was_asked_for(
    store: Path, method: str, params: dict[str, Any], said: dict[str, int]
) -> None:
    """Before: the command line: help without words, no completion, limits in silence, names that could not be typed."""
    with SessionSystem(store) as system:
        answer: dict[str, Any] = system.gateway.perform(method, params)

    assert {name: value for name, value in answer.items() if name.endswith("Applied")} == said


@pytest.mark.clause("LIST-2", "HIST-1")
def test_a_tool_says_that_it_gives_less_than_was_asked_for(store: Path) -> None:
    """Before: the command line: help without words, no completion, limits in silence, names that could not be typed."""
    with SessionSystem(store) as system:
        call: Callable[[str, dict[str, Any]], Any] = system.tools().call
        assert call("sessions_list", {"limit": 201})["limitApplied"] == 200
        assert call("sessions_list", {"limit": 0})["limitApplied"] == 1
        assert "limitApplied" not in call("sessions_list", {"limit": 1.5})
        assert call("sessions_history", {"sessionKey": NOTES, "limit": 10**9})["limitApplied"] == 1000


@pytest.mark.parametrize("command", [("runs",), ("audit", "access")], ids=" ".join)
@pytest.mark.parametrize("limit", ["0", "-1", "100001", "9" * 30, "nan"])
def test_a_limit_out_of_range_is_a_usage_error(store: Path, command: tuple[str, ...], limit: str) -> None:
    done = ran(*command, "--limit", limit, "--store", store, "--json")

    assert (done.exit_code, done.json["code"]) == (2, "usage")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("sessions", "--search", "x" * 100_000), "invalid_request"),
        (("sessions", "--as", "x" * 100_000), "invalid_key"),
        (("history", "main", "--as-of", "x" * 100_000), "invalid_request"),
        (("history", "x" * 100_000), "invalid_key"),
        (("replay", "x" * 100_000), "not_visible"),
    ],
    ids=lambda given: str(given)[:20],
)
def test_what_is_too_long_or_no_number_is_refused(store: Path, command: tuple[str, ...], code: str) -> None:
    done = ran(*command, "--store", store, "--json")

    assert done.json["code"] == code
    assert len(done.json["error"]) < 300
