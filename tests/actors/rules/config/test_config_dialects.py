"""Older spellings of a configuration load, each with a notice of the name it has now."""

from typing import Any

import pytest

from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ConfigError

pytestmark = pytest.mark.clause("CFG-2")

OLD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"routing": {"agents": {"ops": {"subagents": {"allowAgents": ["*"]}, "name": "Ops"}}}},
        {"agents": {"list": [{"id": "ops", "subagents": {"allowAgents": ["*"]}, "name": "Ops"}]}},
        "routing.agents.ops",
    ),
    (
        {"routing": {"agents": {"a": {}, "b": {}}, "defaultAgentId": "b"}},
        {"agents": {"list": [{"id": "a"}, {"id": "b", "default": True}]}},
        "routing.defaultAgentId",
    ),
    (
        {"routing": {"agentToAgent": {"enabled": True, "allow": ["a"]}}},
        {"tools": {"agentToAgent": {"enabled": True, "allow": ["a"]}}},
        "routing.agentToAgent",
    ),
    (
        {"agent": {"subagents": {"archiveAfterMinutes": 5}}},
        {"agents": {"defaults": {"subagents": {"archiveAfterMinutes": 5}}}},
        "agent.subagents is called agents.defaults.subagents",
    ),
    (
        {"agent": {"sandbox": {"mode": "all", "sessionToolsVisibility": "all"}}},
        {"agents": {"defaults": {"sandbox": {"mode": "all", "sessionToolsVisibility": "all"}}}},
        "agent.sandbox is called agents.defaults.sandbox",
    ),
    (
        {"agent": {"subagents": {"tools": {"deny": ["exec"]}}, "sandbox": {"tools": {"allow": ["exec"]}}}},
        {"tools": {"subagents": {"tools": {"deny": ["exec"]}}, "sandbox": {"tools": {"allow": ["exec"]}}}},
        "agent.subagents.tools is called tools.subagents.tools",
    ),
    (
        {"agent": {"tools": {"deny": ["sessions_send"]}, "timeoutSeconds": 30}},
        {"tools": {"deny": ["sessions_send"]}, "agents": {"defaults": {"timeoutSeconds": 30}}},
        "agent.tools is called tools",
    ),
    ({"telegram": {"botToken": "t"}}, {"channels": {"telegram": {"botToken": "t"}}}, "channels.telegram"),
    (
        {"session": {"threadBindings": {"ttlHours": 3}}},
        {"session": {"threadBindings": {"idleHours": 3}}},
        "session.threadBindings.idleHours",
    ),
    *(
        (
            {
                "session": {
                    "sendPolicy": {
                        "rules": [{"action": "deny", "match": {old: "discord", "chatType": "room"}}]
                    }
                }
            },
            {
                "session": {
                    "sendPolicy": {
                        "rules": [{"action": "deny", "match": {"channel": "discord", "chatType": "channel"}}]
                    }
                }
            },
            f"match.{old} is called",
        )
        for old in ("surface", "provider", "lastProvider")
    ),
]


@pytest.mark.parametrize(("old", "now", "said"), OLD)
def test_an_old_spelling_means_what_the_new_one_means(
    old: dict[str, Any], now: dict[str, Any], said: str
) -> None:
    loaded = load_config(old)

    assert loaded.config == load_config(now).config
    assert any(said in notice for notice in loaded.notices)


def test_what_the_old_routing_said_of_other_things_is_accepted_with_a_notice() -> None:
    assert load_config({"routing": {"queue": {}, "groupChat": {}, "allowFrom": ["*"]}}).notices == (
        "not used here: routing.groupChat, routing.queue",
    )


@pytest.mark.parametrize(
    "both",
    [
        {"agent": {"sandbox": {"mode": "all"}}, "agents": {"defaults": {"sandbox": {"mode": "off"}}}},
        {"routing": {"agentToAgent": {"enabled": False}}, "tools": {"agentToAgent": {"enabled": True}}},
        {
            "session": {
                "sendPolicy": {"rules": [{"action": "deny", "match": {"surface": "a", "channel": "b"}}]}
            }
        },
    ],
)
def test_an_old_and_a_new_spelling_that_disagree_are_refused(both: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        load_config(both)


def test_an_old_and_a_new_spelling_add_up_where_they_do_not_disagree() -> None:
    config = load_config(
        {"agent": {"sandbox": {"mode": "all"}}, "agents": {"defaults": {"timeoutSeconds": 7}}}
    ).config

    assert config.agents.defaults.sandbox.mode == "all"
    assert config.agents.defaults.timeout_seconds == 7


def test_an_unknown_key_in_an_old_place_is_refused_by_its_new_name() -> None:
    with pytest.raises(ConfigError, match=r"agents\.defaults\.sandbox\.mod"):
        load_config({"agent": {"sandbox": {"mod": "all"}}})


@pytest.mark.parametrize("dialect", ["channel", "provider", "surface"])
def test_rows_can_be_asked_for_in_each_dialect(dialect: str) -> None:
    assert load_config({"session": {"dialect": dialect}}).config.session.dialect == dialect
