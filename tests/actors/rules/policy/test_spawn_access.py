"""May this session start that sub-agent, and with what?"""

import json
from typing import Any

import msgspec
import pytest

from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.spawning import (
    THINKING_LEVELS,
    Nursery,
    SpawnAllowed,
    SpawnRefused,
    SpawnWish,
    StartSubagent,
    agents_list,
    judge_spawn,
)
from intersession_actors.rules.policy.windows import find_model, model_names
from intersession_events.basics.keys.key import SessionKey

CHILD = SessionKey.subagent("main", "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97")
MAIN = Requester(key=SessionKey.main("main"), agent_id="main")
OPERATOR = Requester(key=None, agent_id="main")


def config(main: dict[str, Any] | None = None, **defaults: Any) -> Config:
    listed = [
        {"id": "main", **(main or {})},
        {"id": "research", "name": "Research"},
        {"id": "ops", "name": " "},
    ]
    return load_config({"agents": {"defaults": defaults, "list": listed}}).config


def allowed(config: Config, requester: Requester = MAIN, running: int = 0, **wish: Any) -> SpawnAllowed:
    verdict = judge_spawn(config, requester, SpawnWish(**wish), running=running)
    assert isinstance(verdict, SpawnAllowed), verdict
    return verdict


def refused(config: Config, requester: Requester = MAIN, running: int = 0, **wish: Any) -> SpawnRefused:
    verdict = judge_spawn(config, requester, SpawnWish(**wish), running=running)
    assert isinstance(verdict, SpawnRefused), verdict
    return verdict


@pytest.mark.clause("SPAWN-1")
def test_a_bare_spawn_starts_the_requesters_own_agent_with_the_defaults() -> None:
    assert allowed(config()) == SpawnAllowed(
        agent_id="main",
        depth=1,
        sandboxed=False,
        mode="run",
        model=None,
        thinking=None,
        run_timeout_ms=0,
        archive_after_ms=3_600_000,
        judged=Judgement(StartSubagent(), Nursery(requester="agent:main:main", own="main")),
    )


@pytest.mark.clause("SPAWN-1", "SPAWN-11")
def test_the_mode_follows_the_thread_and_decides_what_is_archived() -> None:
    assert allowed(config(), thread=True).mode == "session"
    assert allowed(config(), thread=True).archive_after_ms == 0
    assert allowed(config(), cleanup="delete").archive_after_ms == 0
    assert refused(config(), mode="session").code == "invalid_request"
    assert refused(config(), thread=True, cleanup="delete").code == "invalid_request"


@pytest.mark.clause("SPAWN-1", "SPAWN-8")
def test_the_run_timeout_is_the_asked_one_else_the_configured_one() -> None:
    quick = config(subagents={"runTimeoutSeconds": 90})

    assert allowed(quick).run_timeout_ms == 90_000
    assert allowed(quick, run_timeout_seconds=0).run_timeout_ms == 0
    assert allowed(quick, run_timeout_seconds=0.5).run_timeout_ms == 500


@pytest.mark.clause("SPAWN-2")
@pytest.mark.parametrize(
    ("allow", "wanted", "may"),
    [
        (None, "main", True),
        (None, "ops", False),
        (["research"], "research", True),
        (["Research"], "RESEARCH ", True),
        (["research"], "ops", False),
        (["research"], "main", True),
        ([], "ops", False),
        (["*"], "ops", True),
        (["*"], "stranger", False),
        (["stranger"], "stranger", False),
    ],
)
def test_other_agents_start_only_where_they_are_allowed_and_configured(
    allow: list[str] | None, wanted: str, may: bool
) -> None:
    given = config({} if allow is None else {"subagents": {"allowAgents": allow}})

    if may:
        assert allowed(given, agent_id=wanted).agent_id == wanted.strip().lower()
    else:
        verdict = refused(given, agent_id=wanted)
        assert (verdict.status, verdict.code) == ("forbidden", "agent_not_allowed")
        assert "main" in verdict.error
        assert wanted not in verdict.error.split("use one of")[1].split(" (")[0].split(", ")


@pytest.mark.clause("SPAWN-2")
def test_the_operator_starts_any_configured_agent() -> None:
    assert allowed(config(), OPERATOR, agent_id="ops").agent_id == "ops"
    assert refused(config(), OPERATOR, agent_id="stranger").code == "agent_not_allowed"


@pytest.mark.parametrize("agent_id", ["Worker\u212a", "", "a b", "../x", "a" * 600])
def test_an_agent_id_that_is_none_is_refused_as_a_request(agent_id: str) -> None:
    verdict = refused(config({"subagents": {"allowAgents": ["*"]}}), agent_id=agent_id)

    assert (verdict.status, verdict.code) == ("error", "invalid_request")


@pytest.mark.clause("SPAWN-2")
def test_the_list_of_agents_begins_with_the_requester_and_goes_on_by_id() -> None:
    listed = agents_list(config({"subagents": {"allowAgents": ["research", "absent"]}}), "main")

    assert json.loads(msgspec.json.encode(listed)) == {
        "requester": "main",
        "allowAny": False,
        "agents": [
            {"id": "main", "configured": True},
            {"id": "absent", "configured": False},
            {"id": "research", "configured": True, "name": "Research"},
        ],
    }


@pytest.mark.clause("SPAWN-2")
def test_who_may_start_any_agent_is_shown_all_configured_ones() -> None:
    listed = agents_list(config({"subagents": {"allowAgents": ["*"]}}), "main")

    assert listed.allow_any
    assert [agent.id for agent in listed.agents] == ["main", "ops", "research"]
    assert agents_list(config(), None) == listed
    assert [agent.id for agent in agents_list(config(), "ops").agents] == ["ops"]


@pytest.mark.clause("SPAWN-3")
@pytest.mark.parametrize(("most", "depth", "may"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False)])
def test_sub_agents_start_none_unless_the_depth_allows_it(most: int, depth: int, may: bool) -> None:
    requester = Requester(key=CHILD if depth else SessionKey.main("main"), agent_id="main", spawn_depth=depth)
    given = config(subagents={"maxSpawnDepth": most})

    if may:
        assert allowed(given, requester).depth == depth + 1
    else:
        verdict = refused(given, requester)
        assert (verdict.status, verdict.code) == ("forbidden", "subagent_spawn")
        assert "maxSpawnDepth" in verdict.error


@pytest.mark.clause("SPAWN-3")
def test_a_sub_agent_whose_depth_was_not_recorded_is_one_all_the_same() -> None:
    assert refused(config(), Requester(key=CHILD, agent_id="main")).code == "subagent_spawn"


@pytest.mark.clause("SPAWN-3", "L2")
def test_one_child_more_than_the_setting_is_forbidden() -> None:
    given = config(subagents={"maxChildrenPerAgent": 2})

    assert allowed(given, running=1).depth == 1
    verdict = refused(given, running=2)
    assert (verdict.status, verdict.code) == ("forbidden", "spawn_limit")
    assert "maxChildrenPerAgent is 2" in verdict.error
    assert refused(config(), running=5).code == "spawn_limit"


@pytest.mark.clause("SPAWN-5")
@pytest.mark.parametrize(
    ("mode", "sandboxed", "asked", "code"),
    [
        ("off", False, "inherit", None),
        ("off", True, "inherit", "sandbox_inherit"),
        ("off", True, "require", "sandbox_inherit"),
        ("off", False, "require", "sandbox_required"),
        ("non-main", True, "inherit", None),
        ("all", False, "require", None),
    ],
)
def test_a_sandbox_is_not_left_by_starting_somebody_outside(
    mode: str, sandboxed: bool, asked: str, code: str | None
) -> None:
    requester = msgspec.structs.replace(MAIN, sandboxed=sandboxed)
    given = config(sandbox={"mode": mode})

    if code is None:
        assert allowed(given, requester, sandbox=asked).sandboxed is (mode != "off")
    else:
        assert refused(given, requester, sandbox=asked).code == code


@pytest.mark.clause("SPAWN-4")
@pytest.mark.parametrize("level", THINKING_LEVELS)
def test_each_thinking_level_is_taken(level: str) -> None:
    assert allowed(config(), thinking=level).thinking == level


@pytest.mark.clause("SPAWN-4")
@pytest.mark.parametrize("level", ["", "High", "ultra", "hi\u0261h"])
def test_another_thinking_level_is_refused_and_those_there_are_named(level: str) -> None:
    verdict = refused(config(), thinking=level)

    assert (verdict.status, verdict.code) == ("error", "invalid_thinking")
    assert ", ".join(THINKING_LEVELS) in verdict.error


MODELS = {
    "providers": {
        "fake": {"models": [{"id": "fake-1"}, {"id": "both"}]},
        "other": {"models": [{"id": "both"}]},
    }
}


@pytest.mark.clause("SPAWN-4")
@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("fake/fake-1", "fake/fake-1"),
        ("fake-1", "fake/fake-1"),
        ("both", None),
        ("fake/none", None),
        ("", None),
    ],
)
def test_a_model_is_one_that_a_provider_serves(text: str, means: str | None) -> None:
    served = load_config({"models": MODELS}).config

    assert find_model(served, text) == means
    if means is None:
        verdict = refused(served, model=text)
        assert (verdict.status, verdict.code) == ("error", "invalid_model")
        assert "fake/both, fake/fake-1, other/both" in verdict.error
    else:
        assert allowed(served, model=text).model == means


@pytest.mark.clause("SPAWN-4")
def test_a_list_of_models_is_all_there_is_beside_the_configured_defaults() -> None:
    given = load_config(
        {
            "models": MODELS,
            "agents": {
                "defaults": {
                    "models": {"big/one": {"alias": "big"}, "big/two": {}},
                    "model": {"primary": "small/one", "fallbacks": ["small/two"]},
                }
            },
        }
    ).config

    assert model_names(given) == ("big/one", "big/two", "small/one", "small/two")
    assert find_model(given, "big") == "big/one"
    assert find_model(given, "fake/fake-1") is None


@pytest.mark.clause("SPAWN-4")
def test_where_no_models_are_configured_any_name_is_one() -> None:
    assert allowed(config(), model="x/y").model == "x/y"
    assert refused(config(), model=" ").code == "invalid_model"


@pytest.mark.clause("SPAWN-4")
def test_the_model_is_the_asked_one_else_that_of_the_nearest_setting() -> None:
    layers: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"model": "d"}),
        ({"model": {"primary": "c"}}, {"model": "d"}),
        ({"model": "c"}, {"model": "d", "subagents": {"model": "b"}}),
        ({"model": "c", "subagents": {"model": "a"}}, {"model": "d", "subagents": {"model": "b"}}),
    ]

    assert [allowed(config(main, **defaults)).model for main, defaults in layers] == ["d", "c", "b", "a"]
    assert allowed(config(*layers[3][:1], **layers[3][1]), model="x").model == "x"


@pytest.mark.clause("CHILD-6")
@pytest.mark.parametrize(
    ("reach", "wanted"),
    [
        ({"enabled": True}, ()),
        ({"enabled": True, "allow": ["main", "ops"]}, ()),
        ({"enabled": True, "allow": ["main"]}, ("tools.agentToAgent.allow",)),
        ({"enabled": False}, ("tools.agentToAgent.enabled",)),
    ],
)
def test_transcript_goes_to_another_agent_only_where_both_may_reach_each_other(
    reach: dict[str, Any], wanted: tuple[str, ...]
) -> None:
    staff = [{"id": "main", "subagents": {"allowAgents": ["ops"]}}, {"id": "ops"}]
    config = load_config({"agents": {"list": staff}, "tools": {"agentToAgent": reach}}).config

    verdicts = [
        judge_spawn(config, MAIN, SpawnWish(agent_id=agent, context="fork"), running=0)
        for agent in ("ops", "main", None)
    ]

    assert [isinstance(verdict, SpawnRefused) for verdict in verdicts] == [bool(wanted), False, False]
    if isinstance(verdicts[0], SpawnRefused):
        assert verdicts[0].code == "forbidden"
        assert all(setting in verdicts[0].error for setting in wanted)
