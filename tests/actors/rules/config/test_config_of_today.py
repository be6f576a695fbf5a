"""A configuration of OpenClaw 2026.9.6: each key of its schema is read, translated, named as without effect, or refused (CFG-1, CFG-2)."""

import json
import re
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.config.settings import Settings
from intersession_actors.rules.config.unused import IGNORED, OF_CHANNELS, REFUSED
from intersession_actors.rules.errors import ConfigError
from support.openclaw.settings import Tree, keys_of, names_in
from support.openclaw.sqlite_state import RECORDED
from support.paths import DATA, DOCS

KEYS: Tree = json.loads((DATA / "openclaw_keys" / "2026.9.6.json").read_text(encoding="utf-8"))
TRANSLATED = {
    "agents.entries",
    "agents.defaults.compaction.enabled",
    "agents.defaults.systemAgent",
    "cron.skipMissedJobs",
    "session.threadBindings.spawnSessions",
}
HARMLESS_IN_CHANNELS = {
    # What of a chat's messages is read, or trusted, by a bot that is not here: the host's own code decides that.
    *("allowBots", "allowIn", "denyIn", "ignoreAttachments", "ignoreStories", "userTokenReadOnly"),
    *(
        "autoJoinAllowlist",
        "groupInviteAllowlist",
        "allowedSourceIps",
        "mediaAllowHosts",
        "mediaAuthAllowHosts",
    ),
    *("trustedLocalFileRoots", "dangerouslyAllowInheritedWebhookPath", "dangerouslyAllowNameMatching"),
    *("dangerouslyAllowPrivateNetwork", "reactionAllowlist", "block"),
    # Of voices and welcome cards.
    *("allowModelId", "allowNormalization", "allowProvider", "allowSeed", "allowText", "allowVoice"),
    *("allowVoiceSettings", "banner", "consultPolicy", "fallbackPolicy", "errorPolicy"),
    # Approvals of commands, which are not run here; a stored version; a page's rights in a document store.
    *("approvers", "execApprovals", "policyVersion", "permissions"),
    # Of `tools`, `dm` and `mentionPatterns`, each judged where it stands.
    *("allow", "alsoAllow", "deny", "policy"),
}


def shapes(expected: Any) -> Iterator[tuple[str, type[Settings]]]:
    """Yield (what follows the place, shape) of each object that a setting can be, or have in it."""
    origin, arguments = get_origin(expected), get_args(expected)
    if isinstance(expected, type) and issubclass(expected, Settings):
        yield "", expected
    elif origin in (Union, types.UnionType):
        for choice in arguments:
            yield from shapes(choice)
    elif origin is tuple:
        yield from (("[]" + place, shape) for place, shape in shapes(arguments[0]))
    elif origin is dict:
        yield from ((".*" + place, shape) for place, shape in shapes(arguments[1]))
    elif origin is not None and origin is not Literal:
        for inner in arguments:
            yield from shapes(inner)


def unknown(tree: Tree, shape: type[Settings], place: str) -> Iterator[str]:
    """Yield the keys of the original at a place, and in it, of which nothing is known here."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    for key, inner in tree.items():
        at = f"{place}.{key}".lstrip(".")
        if at in TRANSLATED or key in IGNORED.get(place, ()) or key in REFUSED.get(place, ()):
            continue
        if key not in fields:
            yield at
            continue
        for behind, below in shapes(fields[key].type):
            deeper = inner
            for part in re.findall(r"\[\]|\*", behind):
                deeper = deeper.get(part, {})
            yield from unknown(deeper, below, at + behind)


@pytest.mark.clause("CFG-1")
def test_of_each_key_of_the_schema_something_is_known() -> None:
    tree = {**KEYS, "channels": {}}
    tree["agents"] = {**tree["agents"], "list": {"[]": tree["agents"]["entries"]["*"]}}

    assert list(unknown(tree, Config, "")) == []


@pytest.mark.clause("CFG-1")
def test_a_key_that_nobody_judged_would_be_seen() -> None:
    tree: Tree = {"session": {"quietHours": {}}, "agents": {"list": {"[]": {"tools": {"hush": {}}}}}}

    assert list(unknown(tree, Config, "")) == ["session.quietHours", "agents.list[].tools.hush"]


@pytest.mark.clause("CFG-1")
def test_each_name_of_channels_that_sounds_like_a_restriction_was_judged() -> None:
    sounds = re.compile(
        r"allow|deny|policy|only|require|block|ban|restrict|ignore|approv|trusted|permission", re.IGNORECASE
    )
    told = {name for name in KEYS["channels"] if sounds.search(name)} - OF_CHANNELS.keys()

    assert told == HARMLESS_IN_CHANNELS
    assert OF_CHANNELS.keys() <= KEYS["channels"].keys()


@pytest.mark.clause("CFG-1")
def test_the_page_for_those_who_move_says_what_becomes_of_each_part() -> None:
    page = (DOCS / "howto" / "move-from-openclaw.md").read_text(encoding="utf-8")
    part = page.partition("## What becomes of each setting\n")[2].partition("\n## ")[0]

    assert sorted(
        re.findall(
            r"`([$\w]+)`", "\n".join(row.split("|")[1] for row in part.splitlines() if row.startswith("| `"))
        )
    ) == sorted(KEYS)


@pytest.mark.clause("CFG-2")
def test_a_configuration_that_the_original_wrote_loads() -> None:
    config, notices = load_config(RECORDED / "garden" / "openclaw.json")

    assert [(agent.id, agent.default) for agent in config.agents.list] == [
        ("main", True),
        ("research", False),
        ("ops", False),
    ]
    assert config.agents.list[0].subagents.allow_agents == ("research",)
    assert config.tools.agent_to_agent.allow == ("main", "research", "ops")
    assert notices[0] == "agents.entries.<id> is called agents.list[] here"


@pytest.mark.clause("CFG-2")
@pytest.mark.parametrize(
    ("today", "ours"),
    [
        (
            {"agents": {"entries": {"a": {"tools": {"deny": ["sessions_send"]}}, "b": {}}}},
            {"agents": {"list": [{"id": "a", "tools": {"deny": ["sessions_send"]}}, {"id": "b"}]}},
        ),
        (
            {"agents": {"entries": {"a": {}, "b": {}}, "defaults": {"systemAgent": {"agentId": "b"}}}},
            {"agents": {"list": [{"id": "a"}, {"id": "b", "default": True}]}},
        ),
        (
            {"agents": {"defaults": {"compaction": {"enabled": False}}}},
            {"agents": {"defaults": {"compaction": {"mode": "off"}}}},
        ),
        (
            {"session": {"threadBindings": {"enabled": True, "spawnSessions": False}}},
            {"session": {"threadBindings": {"enabled": True, "spawnSubagentSessions": False}}},
        ),
        (
            {"channels": {"x": {"threadBindings": {"spawnSessions": False}}}},
            {"channels": {"x": {"threadBindings": {"spawnSubagentSessions": False}}}},
        ),
        (
            {
                "cron": {
                    "skipMissedJobs": True,
                    "jobs": {
                        "a": {"schedule": {"kind": "every", "everyMs": 60000}, "payload": {"message": "x"}}
                    },
                }
            },
            {
                "cron": {
                    "jobs": {
                        "a": {
                            "schedule": {"kind": "every", "everyMs": 60000},
                            "payload": {"message": "x"},
                            "catchUp": "skip",
                        }
                    }
                }
            },
        ),
    ],
)
def test_what_is_called_otherwise_there_means_the_same(today: dict[str, Any], ours: dict[str, Any]) -> None:
    loaded = load_config(today)

    assert loaded.config == load_config(ours).config
    assert loaded.notices


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"accessGroups": {"friends": {"type": "static"}}}, "accessGroups"),
        ({"attachments": {"ttlHours": 24}}, "attachments"),
        ({"commands": {"text": False}}, "commands"),
        ({"messages": {"visibleReplies": "message_tool"}}, "messages.visibleReplies"),
        ({"messages": {"groupChat": {"visibleReplies": False}}}, "messages.groupChat"),
        (
            {"gateway": {"roles": {"default": "guest", "definitions": {"guest": {"scopes": []}}}}},
            "gateway.roles",
        ),
        ({"session": {"maintenance": {"pruneAfter": "30d"}}}, "session.maintenance"),
        (
            {"models": {"providers": {"p": {"request": {"proxy": {"mode": "env"}}}}}},
            "models.providers.p.request",
        ),
        ({"agents": {"entries": {"a": {"modelPolicy": {"allow": ["x/y"]}}}}}, "agents.list[0].modelPolicy"),
        ({"agents": {"entries": {"a": "x"}}}, "agents.entries.a"),
        ({"channels": {"slack": {"channels": {"C1": {"enabled": True}}}}}, "channels.slack.channels"),
        ({"channels": {"matrix": {"dm": {"policy": "allowlist"}}}}, "channels.matrix.dm"),
        (
            {"channels": {"slack": {"accounts": {"a": {"dm": {"groupEnabled": False}}}}}},
            "channels.slack.accounts.a.dm",
        ),
        (
            {"channels": {"defaults": {"contextVisibility": "allowlist"}}},
            "channels.defaults.contextVisibility",
        ),
        ({"channels": {"mattermost": {"chatmode": "oncall"}}}, "channels.mattermost.chatmode"),
        ({"channels": {"twitch": {"allowedRoles": ["moderator"]}}}, "channels.twitch.allowedRoles"),
        ({"channels": {"clickclack": {"toolsAllow": ["x"]}}}, "channels.clickclack.toolsAllow"),
    ],
)
def test_a_restriction_of_today_stops_the_start(config: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(config)

    assert path in [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize(
    "config",
    [
        {"commands": {"text": True, "native": "auto"}},
        {
            "messages": {
                "visibleReplies": "automatic",
                "groupChat": {"historyLimit": 5, "visibleReplies": True},
            }
        },
        {
            "models": {
                "providers": {"p": {"baseUrl": "http://x/v1", "request": {"allowPrivateNetwork": False}}}
            }
        },
        {
            "channels": {
                "x": {
                    "channel": "#general",
                    "dm": {"enabled": True, "policy": "open"},
                    "contextVisibility": "all",
                }
            }
        },
        {"channels": {"discord": {"actions": {"roles": False, "channels": True}, "allowBots": False}}},
        {
            "agents": {"ownership": "explicit"},
            "session": {"groupScope": "main", "sharing": {"drafts": False}},
        },
    ],
)
def test_a_value_of_today_that_restricts_nothing_is_taken(config: dict[str, Any]) -> None:
    load_config(config)


def test_a_schema_is_read_through_its_choices_lists_and_maps() -> None:
    leaf = {"type": "object", "properties": {"b": {}}}
    schema = {
        "properties": {
            "a": {"anyOf": [{"type": "string"}, leaf]},
            "list": {"items": leaf},
            "map": {"additionalProperties": leaf},
        }
    }

    assert keys_of(schema) == {"a": {"b": {}}, "list": {"[]": {"b": {}}}, "map": {"*": {"b": {}}}}
    assert names_in(keys_of(schema)) == {"a", "b", "list", "[]", "map", "*"}
