"""What a configuration means, what it refuses, and what it says about it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.config.settings import Settings
from intersession_actors.rules.errors import ConfigError
from intersession_events.facts import ExchangeSettings, Limits
from support.paths import DATA

SAMPLES = sorted((DATA / "openclaw_configs").glob("*.json"))


def at(path: str, value: Any) -> dict[str, Any]:
    """Return {"a": {"b": value}} for "a.b"."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value  # type: ignore[no-any-return]


def refused(source: Any, **more: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(source, **more)
    return caught.value


def notices(source: Any) -> tuple[str, ...]:
    return load_config(source).notices


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_configurations_of_the_original_load_with_one_notice_for_what_means_nothing_here(path: Path) -> None:
    config, said = load_config(path)

    assert [agent.id for agent in config.agents.list] == ["main", "research", "ops"]
    assert config.default_agent == "main"
    assert config.session.agent_to_agent.max_ping_pong_turns == 5
    assert len(said) == 1
    assert "plugins" in said[0]
    assert "agents.defaults.heartbeat" in said[0]
    assert "gateway.mode" in said[0]


def test_samples_keep_what_decides_who_sees_whom() -> None:
    seen = {path.stem: load_config(path).config for path in SAMPLES}

    assert seen["base"].tools.agent_to_agent.allow == ("main*", "research", "ops")
    assert seen["global"].session.scope == "global"
    assert seen["restricted"].tools.sessions.visibility == "tree"
    assert seen["restricted"].tools.agent_to_agent.enabled is False


@pytest.mark.clause("CFG-1")
def test_nothing_given_gives_the_defaults_of_the_original() -> None:
    config, said = load_config()

    assert said == ()
    assert config == Config()
    assert config.tools.sessions.visibility == "tree"
    assert config.tools.agent_to_agent.enabled is False
    assert config.tools.agent_to_agent.allow is None
    assert config.tools.sessions_spawn.attachments.enabled is False
    assert config.session.main_key == "main"
    assert config.session.dm_scope == "main"
    assert config.agents.defaults.sandbox.session_tools_visibility == "spawned"
    assert config.run_timeout_ms() == 600_000
    assert config.agents.defaults.subagents.archive_after_minutes == 60
    assert config.gateway.host == "127.0.0.1"
    assert config.session.exchange == ExchangeSettings(max_turns=5, turn_timeout_ms=60_000, limits=Limits())


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(
    ("source", "path", "hint"),
    [
        (at("tools.sessions.visibilty", "all"), "tools.sessions.visibilty", "did you mean visibility?"),
        (at("tools.agenttoagent", {}), "tools.agenttoagent", "did you mean agentToAgent?"),
        ({"sesion": {}}, "sesion", "did you mean session?"),
        (at("session.agentToAgent.limits.hop", 3), "session.agentToAgent.limits.hop", "did you mean hops?"),
        (
            {"agents": {"list": [{"id": "a"}, {"id": "b", "nmae": "B"}]}},
            "agents.list[1].nmae",
            "did you mean name?",
        ),
        (
            at("channels.discord.threadBindings.idleHour", 1),
            "channels.discord.threadBindings.idleHour",
            "idleHours",
        ),
        ({"spawnedBy": "x"}, "spawnedBy", "known here: "),
    ],
)
def test_an_unknown_key_is_refused_with_its_path_and_a_likely_name(source: Any, path: str, hint: str) -> None:
    error = refused(source)

    assert error.path == path
    assert hint in str(error)


@pytest.mark.clause("CFG-1", "VIS-1", "X14")
@pytest.mark.parametrize("value", ["ALL ", "al1", "All", "", None, 0, True, [], {}, ["all"]])
def test_a_visibility_that_is_none_stops_the_start_and_names_those_there_are(value: Any) -> None:
    error = refused(at("tools.sessions.visibility", value))

    assert error.path == "tools.sessions.visibility"
    assert "allowed: self, tree, agent, all" in str(error)


def fields_below(shape: type[Settings], path: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for field in msgspec.structs.fields(shape):
        here = f"{path}.{field.encode_name}" if path else field.encode_name
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            found += fields_below(field.type, here)
        else:
            found.append((here, field.type))
    return found


FLAGS = [
    path
    for path, kind in fields_below(Config)
    if ("Literal" in str(kind) and not str(kind).startswith("dict")) or kind is bool
]


@pytest.mark.clause("X14")
@pytest.mark.parametrize("path", FLAGS)
@pytest.mark.parametrize("value", [None, "al1", "TRUE", "no such thing", 7, {}, ["x"]])
def test_every_choice_and_flag_refuses_null_and_what_is_misspelt(path: str, value: Any) -> None:
    assert refused(at(path, value)).path.startswith(path)


@pytest.mark.clause("CFG-1")
def test_every_problem_is_named_at_once() -> None:
    error = refused({"sesion": 1, "tools": {"sessions": {"visibility": 0}}, "runs": {"poolSize": "8"}})

    assert {problem.path for problem in error.problems} == {
        "sesion",
        "tools.sessions.visibility",
        "runs.poolSize",
    }
    assert str(error).count("\n") == 2


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("agents.defaults.timeoutSeconds", -1, ">= 0"),
        ("agents.defaults.timeoutSeconds", 1e12, "<="),
        ("agents.defaults.timeoutSeconds", "600", "expected a number, got a string"),
        ("agents.defaults.subagents.maxSpawnDepth", 6, "<= 5"),
        ("agents.defaults.subagents.maxSpawnDepth", 0, ">= 1"),
        ("agents.defaults.subagents.maxChildrenPerAgent", 2.5, "whole number"),
        ("tools.agentToAgent.allow", "main", "expected a list, got a string"),
        ("tools.agentToAgent.enabled", 1, "expected true or false"),
        ("session", [], "expected an object, got a list"),
        ("channels", {"discord": 3}, "expected an object"),
        ("gateway.port", 65_536, "<= 65535"),
        ("runs.replyMaxBytes", 2**60, "too large"),
        ("store", "", "length >= 1"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_expected(path: str, value: Any, said: str) -> None:
    error = refused(at(path, value))

    assert error.path.startswith(path)
    assert said in str(error)


@pytest.mark.clause("LOOP-2")
@pytest.mark.parametrize(
    ("given_turns", "used"), [(999, 5), (6, 5), (5.9, 5), (2.5, 2), (-3, 0), (-0.5, 0), (10**15, 5)]
)
def test_too_many_or_half_turns_are_brought_into_range_with_a_notice(given_turns: float, used: int) -> None:
    config, said = load_config(at("session.agentToAgent.maxPingPongTurns", given_turns))

    assert config.session.agent_to_agent.max_ping_pong_turns == used
    assert f"{used} is used" in said[0]


@pytest.mark.clause("LOOP-2")
@pytest.mark.parametrize("turns", [0, 3, 5, 5.0])
def test_turns_in_range_need_no_notice(turns: float) -> None:
    config, said = load_config(at("session.agentToAgent.maxPingPongTurns", turns))

    assert config.session.agent_to_agent.max_ping_pong_turns == int(turns)
    assert said == ()


@pytest.mark.clause("LOOP-2")
@pytest.mark.parametrize("turns", [True, "3", None, [3], float("nan"), float("inf")])
def test_turns_that_are_no_number_are_refused(turns: Any) -> None:
    assert (
        refused(at("session.agentToAgent.maxPingPongTurns", turns)).path
        == "session.agentToAgent.maxPingPongTurns"
    )


@pytest.mark.clause("POL-1")
@pytest.mark.parametrize("name", ["keyPrefix", "rawKeyPrefix"])
@pytest.mark.parametrize(
    "prefix",
    [
        "agent:main:main",
        "main",
        "agent:main:discord:group:42",
        "discord:group:42",
        "cron:nightly",
        "node-kitchen",
        "agent:ops:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97",
        "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97",
        "agent:main:notes",
        "AGENT:Main:MAIN",
    ],
)
def test_a_send_rule_about_one_session_is_refused(name: str, prefix: str) -> None:
    rules = [{"action": "deny", "match": {name: prefix}}]

    error = refused(at("session.sendPolicy.rules", rules))

    assert error.path == f"session.sendPolicy.rules[0].match.{name}"


@pytest.mark.clause("POL-1")
@pytest.mark.parametrize(
    "prefix", ["cron:", "agent:main:", "agent:main:discord:", "discord:group:", "subagent", "tele"]
)
def test_a_send_rule_about_a_family_of_sessions_is_taken(prefix: str) -> None:
    loaded = load_config(at("session.sendPolicy.rules", [{"action": "deny", "match": {"keyPrefix": prefix}}]))

    (rule,) = loaded.config.session.send_policy.rules
    assert (rule.action, rule.match.key_prefix) == ("deny", prefix)


def test_an_agent_to_agent_list_that_lets_nobody_in_is_said() -> None:
    assert notices(at("tools.agentToAgent", {"enabled": True, "allow": []}))
    assert not notices(at("tools.agentToAgent", {"enabled": True, "allow": ["*"]}))


@pytest.mark.clause("SPAWN-3")
def test_a_spawn_depth_beyond_one_is_said() -> None:
    assert "maxSpawnDepth" in notices(at("agents.defaults.subagents.maxSpawnDepth", 2))[0]
    assert not notices(at("agents.defaults.subagents.maxSpawnDepth", 1))


@pytest.mark.parametrize(
    ("agents", "default"),
    [
        ([], "main"),
        ([{"id": "b"}, {"id": "a"}], "b"),
        ([{"id": "b"}, {"id": "a", "default": True}, {"id": "c", "default": True}], "a"),
    ],
)
@pytest.mark.clause("KEY-2")
def test_the_default_agent_is_the_marked_one_else_the_first_else_main(
    agents: list[Any], default: str
) -> None:
    assert load_config(at("agents.list", agents)).config.default_agent == default


def test_agents_that_a_host_registered_need_not_be_listed() -> None:
    config = load_config(at("agents.list", [{"id": "ops", "name": "Ops"}])).config.with_agents(["ops", "bob"])

    assert config.agent_ids == ("ops", "bob")
    assert config.agent("ops").name == "Ops"
    assert config.agent("nobody").name is None


@pytest.mark.parametrize("agent_id", ["a b", "-a", "\u017fub", "", "a" * 65, "agent:x"])
def test_an_agent_id_that_no_key_could_hold_is_refused(agent_id: str) -> None:
    assert refused(at("agents.list", [{"id": agent_id}])).path == "agents.list[0].id"


def test_an_agent_registered_under_an_impossible_id_is_refused() -> None:
    with pytest.raises(ConfigError, match="'Ops Team' is no agent id"):
        Config().with_agents(["ops", "Ops Team"])


def test_an_agent_id_in_capitals_is_written_small_with_a_notice() -> None:
    config, said = load_config(at("agents.list", [{"id": "Ops"}]))

    assert config.agent_ids == ("ops",)
    assert "'Ops' is written 'ops'" in said[0]


def test_two_agents_of_one_id_are_refused() -> None:
    assert refused(at("agents.list", [{"id": "a"}, {"id": "A"}])).path == "agents.list[1].id"


@pytest.mark.parametrize("main_key", ["global", "a:b", "Main Key", "subagent", "cron", ""])
def test_a_main_key_that_could_be_read_as_something_else_is_refused(main_key: str) -> None:
    assert refused(at("session.mainKey", main_key)).path == "session.mainKey"


@pytest.mark.clause("SPAWN-5")
@pytest.mark.parametrize(
    ("mode", "own", "main", "other"),
    [
        ("off", None, False, False),
        ("non-main", None, False, True),
        ("all", None, True, True),
        ("all", "off", False, False),
    ],
)
def test_the_sandbox_mode_of_the_agent_counts_else_the_default_one(
    mode: str, own: str | None, *, main: bool, other: bool
) -> None:
    listed = {"id": "a", "sandbox": {"mode": own} if own else {}}
    config = load_config({"agents": {"defaults": {"sandbox": {"mode": mode}}, "list": [listed]}}).config

    assert config.sandboxed("a", main=True) is main
    assert config.sandboxed("a", main=False) is other


@pytest.mark.clause("SPAWN-12")
def test_a_channel_says_for_itself_what_it_does_with_threads() -> None:
    config = load_config(
        {
            "session": {"threadBindings": {"enabled": True, "idleHours": 24}},
            "channels": {
                "discord": {"threadBindings": {"idleHours": 1, "spawnSubagentSessions": True}, "guilds": {}}
            },
        }
    ).config

    assert config.thread_bindings("discord").idle_hours == 1
    assert config.thread_bindings("discord").enabled is True
    assert config.thread_bindings("discord").spawn_subagent_sessions is True
    assert config.thread_bindings("telegram").idle_hours == 24


@pytest.mark.clause("X11")
def test_no_secret_is_in_what_is_recorded_shown_or_refused() -> None:
    canary = "c4nary"
    source = {
        "store": f"postgresql://bot:{canary}@db/log?password={canary}",
        "gateway": {"auth": {"token": canary, "credentials": [{"name": "ci", "token": canary + "2"}]}},
        "models": {
            "providers": {"x": {"apiKey": canary, "headers": {"X-Key": canary}, "models": [{"id": "m"}]}}
        },
        "channels": {"hook": {"url": f"https://hooks.example/{canary}", "accounts": [{"bot": canary}]}},
    }
    config = load_config(source).config

    shown = config.redacted() + repr(config) + repr(config.gateway) + repr(config.models) + config.digest()
    assert canary not in shown
    assert "postgresql://<hidden>@db/log" in shown
    assert json.loads(config.redacted())["models"]["providers"]["x"]["models"] == [{"id": "m"}]
    again = {"gateway": {"auth": {"token": canary, "mode": canary[:0] or "none"}}}
    assert canary not in str(refused(again))


def test_the_digest_tells_two_configurations_apart_and_stays_the_same_for_one() -> None:
    one, other = load_config().config, load_config(at("session.mainKey", "home")).config

    assert one.digest() == Config().digest()
    assert one.digest() != other.digest()
    assert len(one.digest()) == 64


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_configuration_given_again_is_the_same(path: Path) -> None:
    config = load_config(path).config

    assert load_config(config).config == config
    assert load_config(config).notices == ()


def test_a_configuration_made_by_hand_is_checked_too() -> None:
    odd = msgspec.structs.replace(
        Config(), session=msgspec.structs.replace(Config().session, scope="everything")
    )

    assert refused(odd).path == "session.scope"


def test_environment_variables_are_filled_in_as_the_original_does() -> None:
    source = {
        "gateway": {"auth": {"token": "${TOKEN}"}},
        "channels": {"x": {"a": "p-${TOKEN}", "b": "$${TOKEN} $HOME"}},
    }

    config = load_config(source, variables={"TOKEN": "t0"}).config

    assert config.gateway.auth.secret == "t0"
    assert config.channels["x"] == {"a": "p-t0", "b": "${TOKEN} $HOME"}


def test_what_was_filled_in_once_is_not_filled_in_again() -> None:
    escaped = load_config({"runs": {"failureText": "$${TOKEN}"}}).config
    assert load_config(escaped, variables={}).config.runs.failure_text == "${TOKEN}"
    recorded = {"runs": {"failureText": "${TOKEN}"}}
    assert load_config(recorded, variables={"TOKEN": "t0"}, literal=True).config == escaped


@pytest.mark.parametrize("variables", [{}, {"TOKEN": ""}])
def test_a_variable_that_is_not_set_is_refused_and_never_becomes_a_token(variables: dict[str, str]) -> None:
    assert refused(at("gateway.auth.token", "${TOKEN}"), variables=variables).path == "gateway.auth.token"


@pytest.mark.parametrize("mode", ["none", "trusted-proxy", "off"])
def test_the_gateway_can_not_be_left_open(mode: str) -> None:
    assert refused(at("gateway.auth.mode", mode)).path == "gateway.auth.mode"


def test_credentials_have_names_and_tokens_of_their_own_and_act_as_nobody_by_default() -> None:
    one = {"name": "ci", "token": "a"}

    auth = load_config(at("gateway.auth.credentials", [one])).config.gateway.auth
    assert auth.credentials[0].act_as == ()
    assert auth.credentials[0].scopes == ("operator.read",)
    assert refused(at("gateway.auth.credentials", [one, one | {"token": "b"}])).path.endswith("[1].name")
    assert refused(at("gateway.auth.credentials", [one, one | {"name": "cd"}])).path.endswith("[1].token")
    assert (
        refused(at("gateway.auth.credentials", [{"name": "ci"}])).path == "gateway.auth.credentials[0].token"
    )


@pytest.mark.parametrize(
    ("gateway", "host"),
    [
        ({}, "127.0.0.1"),
        ({"bind": "loopback"}, "127.0.0.1"),
        ({"bind": "auto"}, "127.0.0.1"),
        ({"bind": "lan"}, "0.0.0.0"),  # noqa: S104 - nothing is bound
        ({"bind": "custom", "customBindHost": "192.168.1.5"}, "192.168.1.5"),
    ],
)
def test_a_gateway_listens_on_this_machine_alone_unless_told_otherwise(
    gateway: dict[str, str], host: str
) -> None:
    assert load_config({"gateway": gateway}).config.gateway.host == host


def test_other_files_are_not_taken_in_silently() -> None:
    assert refused({"$include": "more.json"}).path == "$include"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["session", "tools", "agents", "list", "id", "sandbox", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("session", "tools", "agents", "channels", "gateway", "models", "routing", "agent", "runs", "x"),
            JSON,
        ),
    )
)
def test_whatever_is_given_is_loaded_or_refused_and_nothing_else(source: dict[str, Any]) -> None:
    try:
        config, _ = load_config(source, variables={})
    except ConfigError:
        return
    assert load_config(config).config == config
    assert json.loads(config.redacted())
