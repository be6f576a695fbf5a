"""Which of the session tools an agent gets."""

from typing import Any

import pytest

from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.config.tools import SESSION_TOOLS
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.tools import UseTool, judge_tool, workshop_of
from intersession_events.basics.keys.key import SessionKey

CHILD = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
TOOLS = (*SESSION_TOOLS, "session_status", "exec")


def given(
    tools: dict[str, Any] | None = None,
    own: dict[str, Any] | None = None,
    *,
    subagent: bool = False,
    sandboxed: bool = False,
    may_spawn: bool = True,
) -> tuple[str, ...]:
    config = load_config({"tools": tools or {}, "agents": {"list": [{"id": "a", "tools": own or {}}]}}).config
    key = SessionKey.subagent("a", CHILD) if subagent else SessionKey.main("a")
    asks = Requester(key=key, agent_id="a", sandboxed=sandboxed, spawn_depth=0 if may_spawn else 1)
    known = workshop_of(config, asks)
    return tuple(tool for tool in TOOLS if judge_tool(UseTool(tool=tool), known) is None)


def test_an_agent_gets_every_tool_unless_something_takes_it_but_those_that_have_to_be_named() -> None:
    assert given() == (*SESSION_TOOLS, "exec")
    assert given({"alsoAllow": ["session_*"]}) == TOOLS


@pytest.mark.parametrize(
    ("tools", "own", "missing"),
    [
        ({"deny": ["sessions_send"]}, {}, {"sessions_send", "session_status"}),
        ({}, {"deny": ["sessions_*"]}, {tool for tool in TOOLS if tool.startswith("session")}),
        ({"allow": ["sessions_*"]}, {}, {"agents_list", "session_status", "exec"}),
        ({"allow": ["sessions_*"]}, {"allow": ["sessions_list"]}, set(TOOLS) - {"sessions_list"}),
        ({"allow": ["group:sessions"]}, {}, {"exec"}),
        ({"deny": [" Sessions_Send "]}, {"deny": ["GROUP:sessions"]}, {*TOOLS} - {"exec"}),
        ({"profile": "minimal"}, {}, set(TOOLS) - {"session_status"}),
        ({"profile": "messaging"}, {}, {"sessions_spawn", "agents_list", "exec"}),
        ({"profile": "messaging", "alsoAllow": ["exec"]}, {}, {"sessions_spawn", "agents_list"}),
        ({"profile": "full", "deny": ["exec"]}, {"alsoAllow": ["exec"]}, {"exec"}),
    ],
)
def test_settings_narrow_one_after_the_other_and_deny_is_final(
    tools: dict[str, Any], own: dict[str, Any], missing: set[str]
) -> None:
    assert set(TOOLS) - set(given(tools, own)) == missing


@pytest.mark.clause("SPAWN-7")
def test_a_child_gets_the_full_set_without_the_session_tools() -> None:
    assert given(subagent=True) == ("exec",)


@pytest.mark.clause("SPAWN-7")
@pytest.mark.parametrize(
    ("rules", "gets"),
    [
        ({"alsoAllow": ["sessions_list"]}, ("sessions_list", "exec")),
        ({"allow": ["sessions_list", "exec"]}, ("sessions_list", "exec")),
        ({"allow": ["sessions_list"], "alsoAllow": ["exec"]}, ("sessions_list", "exec")),
        ({"deny": ["exec"]}, ()),
        ({"alsoAllow": ["sessions_send"], "deny": ["sessions_*"]}, ("exec",)),
        ({"allow": []}, ()),
    ],
)
def test_the_settings_adjust_what_a_child_gets(rules: dict[str, Any], gets: tuple[str, ...]) -> None:
    assert given({"subagents": {"tools": rules}}, subagent=True) == gets


@pytest.mark.clause("SPAWN-3", "SPAWN-7")
@pytest.mark.parametrize(
    "rules", [{"allow": ["*"]}, {"alsoAllow": ["sessions_spawn"]}, {"allow": ["sessions_spawn"]}]
)
def test_no_setting_gives_spawning_to_a_child_that_may_not(rules: dict[str, Any]) -> None:
    tools = {"subagents": {"tools": rules}, "allow": ["*"]}

    assert "sessions_spawn" not in given(tools, subagent=True, may_spawn=False)
    assert "sessions_spawn" in given(tools, subagent=True, may_spawn=True)


def test_a_sandbox_has_rules_of_its_own() -> None:
    tools = {"sandbox": {"tools": {"deny": ["exec"]}}}

    assert "exec" not in given(tools, sandboxed=True)
    assert "exec" in given(tools, sandboxed=False)
    assert "exec" not in given(own={"sandbox": {"tools": {"allow": ["sessions_*"]}}}, sandboxed=True)
