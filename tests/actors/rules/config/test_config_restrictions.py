"""No restriction of a configuration is dropped: what nothing here reads is refused, or listed as harmless (CFG-1)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.config.tools import TOOL_NAMES
from intersession_actors.rules.config.unused import IGNORED, OF_CHANNELS, REFUSED
from intersession_actors.rules.errors import ConfigError
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.spawning import SpawnRefused, SpawnWish, judge_spawn
from intersession_events.basics.keys.key import SessionKey
from support.paths import DOCS

PAGE = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
CHANNELS = "anywhere below channels.<name>"


def rows(heading: str) -> Iterator[tuple[str, str]]:
    """Yield place and key of each row of a table of the reference."""
    part = PAGE.partition(f"### {heading}\n")[2].partition("\n#")[0]
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) < 3 or cells[0] in {"where", "---"}:
            continue
        for place in cells[0].replace("`", "").split(", "):
            for key in re.findall(r"`([^`]+)`", cells[1]):
                yield ("" if place == "the top" else place, key)


def placed(place: str, key: str, value: Any) -> dict[str, Any]:
    """Return a configuration with a key at a place of the table."""
    here: Any = {key: value}
    if place == "cron.jobs.*":
        here |= {"schedule": {"kind": "every", "everyMs": 60_000}, "payload": {"message": "hello"}}
    for part in reversed([part for part in place.replace("*", "telegram").split(".") if part]):
        here = {"list": [{"id": "a", **here}]} if part == "list[]" else {part: here}
    return here  # type: ignore[no-any-return]


def refusal(config: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(config)
    return caught.value


def test_the_reference_lists_every_ignored_key_and_no_other() -> None:
    assert sorted(rows("Ignored")) == sorted((place, key) for place, keys in IGNORED.items() for key in keys)


def test_the_reference_lists_every_refused_key_and_no_other() -> None:
    told = sorted(rows("Refused"))

    known = [(place, key) for place, keys in REFUSED.items() for key in keys]
    assert told == sorted(known + [(CHANNELS, key) for key in OF_CHANNELS])


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(("place", "key"), sorted(set(rows("Ignored"))), ids=".".join)
def test_an_ignored_key_is_taken_with_a_notice(place: str, key: str) -> None:
    notices = load_config(placed(place, key, {"any": ["thing"]})).notices

    assert len(notices) == 1
    assert key in notices[0]


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(
    ("place", "key"), sorted(row for row in set(rows("Refused")) if row[0] != CHANNELS), ids=".".join
)
def test_a_key_that_restricts_stops_the_start_and_says_what_to_do(place: str, key: str) -> None:
    value = {"enabled": True, "mode": "enforce", "allowedAgents": ["x"], "deny": ["sessions_send"]}
    value |= {"text": False, "visibleReplies": "message_tool"}
    error = refusal(placed(place, key, value))

    assert error.path.endswith(f"{place.replace('*', 'telegram').replace('[]', '[0]')}.{key}".lstrip("."))
    assert "nothing here would; take it out" in str(error)


@pytest.mark.parametrize(
    "config",
    [
        {"tools": {"byProvider": {}, "toolsBySender": {"*": {"deny": []}}}},
        {"agents": {"defaults": {"sandbox": {"workspaceAccess": "rw", "docker": {}}}}},
        {"acp": {"enabled": True, "backend": "x"}, "bindings": [], "proxy": {"enabled": False}},
        {"session": {"maintenance": {"mode": "warn", "pruneAfter": "30d"}}},
        {"session": {"threadBindings": {"spawnAcpSessions": True}}},
        {"gateway": {"tls": {"enabled": False}}, "logging": {"redactPatterns": []}},
        {"channels": {"telegram": {"allowFrom": ["*"], "dmPolicy": "open", "requireMention": False}}},
        {"channels": {"x": {"group": "a", "toolkit": 1, "allow": True}}},
    ],
)
def test_a_value_that_restricts_nothing_is_taken(config: dict[str, Any]) -> None:
    load_config(config)


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"channels": {"telegram": {"allowFrom": ["tg:1"]}}}, "channels.telegram.allowFrom"),
        ({"whatsapp": {"allowFrom": ["+49"]}}, "channels.whatsapp.allowFrom"),
        ({"routing": {"allowFrom": ["+49"]}}, "routing.allowFrom"),
        ({"routing": {"bindings": [{"agentId": "a", "match": {"channel": "x"}}]}}, "bindings"),
        (
            {"channels": {"x": {"accounts": {"a": {"groups": {"1": {"tools": {"deny": ["x"]}}}}}}}},
            "channels.x.accounts.a.groups",
        ),
        ({"channels": {"x": {"spaces": [{"toolsBySender": {"u": {"deny": ["x"]}}}]}}}, "toolsBySender"),
        ({"channels": {"x": {"allow_from": ["1"]}}}, "channels.x.allow_from"),
        ({"channels": {"x": {"dmpolcy": "pairing"}}}, "channels.x.dmpolcy"),
        ({"channels": {"x": {"enable": False}}}, "channels.x.enable"),
        ({"channels": {"x": {"threadbindings": {"enabled": False}}}}, "channels.x.threadbindings"),
        ({"tools": {"byprovider": {"x": {"deny": ["y"]}}}}, "tools.byprovider"),
        ({"agents": {"defaults": {"tools": {"deny": ["sessions_send"]}}}}, "agents.defaults.tools"),
        ({"agents": {"defaults": {"subagents": {"requireAgentID": True}}}}, "requireAgentID"),
    ],
)
def test_a_restriction_is_refused_wherever_it_stands_and_misspelt(config: dict[str, Any], path: str) -> None:
    assert path in [problem.path[-len(path) :] for problem in refusal(config).problems]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"tools": {"deny": ["sesions_send"]}}, "tools.deny[0]"),
        ({"tools": {"deny": ["x", "session_list"]}}, "tools.deny[1]"),
        ({"tools": {"deny": ["group:session"]}}, "tools.deny[0]"),
        ({"tools": {"subagents": {"tools": {"deny": ["sesions_*"]}}}}, "tools.subagents.tools.deny[0]"),
        ({"tools": {"sandbox": {"tools": {"deny": ["agent_list"]}}}}, "tools.sandbox.tools.deny[0]"),
        ({"gateway": {"tools": {"deny": ["session_history"]}}}, "gateway.tools.deny[0]"),
        (
            {"agents": {"list": [{"id": "a", "tools": {"deny": ["sessions-send"]}}]}},
            "agents.list[0].tools.deny[0]",
        ),
    ],
)
def test_a_tool_that_is_denied_by_a_misspelt_name_is_refused(config: dict[str, Any], path: str) -> None:
    error = refusal(config)

    assert error.path == path
    assert "denies nothing; did you mean " in str(error)


def test_what_a_log_has_recorded_of_such_a_name_is_still_read() -> None:
    config = load_config({"tools": {"deny": ["sesions_send"]}}, literal=True).config

    assert config.tools.deny == ("sesions_send",)


def test_tools_of_others_can_be_denied() -> None:
    load_config({"tools": {"deny": ["exec", "browser", "group:web", "sessions_*", "Sessions_Send", "*"]}})


def test_the_names_that_settings_are_compared_with_are_those_of_the_tools() -> None:
    assert {*TOOL_NAMES} == {*TOOLS, "session_status"}


@pytest.mark.clause("SPAWN-2")
@pytest.mark.parametrize(
    ("default", "own", "needed"),
    [(True, None, True), (False, True, True), (True, False, False), (False, None, False)],
)
def test_an_agent_may_have_to_name_the_agent_that_it_starts(
    *, default: bool, own: bool | None, needed: bool
) -> None:
    subagents = {} if own is None else {"requireAgentId": own}
    agents = {
        "defaults": {"subagents": {"requireAgentId": default}},
        "list": [{"id": "a", "subagents": subagents}],
    }
    config = load_config({"agents": agents}).config
    requester = Requester(key=SessionKey.main("a"), agent_id="a")

    unnamed = judge_spawn(config, requester, SpawnWish())
    named = judge_spawn(config, requester, SpawnWish(agent_id="a"))

    assert isinstance(unnamed, SpawnRefused) is needed
    assert not isinstance(named, SpawnRefused)
    if isinstance(unnamed, SpawnRefused):
        assert unnamed.code == "agent_not_allowed"
        assert "agentId: has to be given" in unnamed.error
