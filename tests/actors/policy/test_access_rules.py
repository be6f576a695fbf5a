"""Who may see and reach which session, compared with an oracle of its own over every combination there is."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.config import Visibility, load_config
from intersession_actors.policy import (
    AccessSettings,
    Allowed,
    Forbidden,
    NotVisible,
    Operation,
    Requester,
    Target,
    access_settings,
    judge,
    may_act_as,
    not_visible,
    reach_of,
)
from intersession_events.keys import SessionKey

CHILD_ID, OTHER_CHILD_ID = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97", "7a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
ME = SessionKey.parse("agent:main:discord:group:42")
LEVELS: tuple[Visibility, ...] = ("self", "tree", "agent", "all")
ALLOW: tuple[tuple[str, ...] | None, ...] = (None, (), ("*",), ("main",), ("ops",), ("m*", "OPS"))

# relation -> key, exists, spawned by the requester (directly or not)
RELATIONS = {
    "self": (ME, True, False),
    "child": (SessionKey.subagent("main", CHILD_ID), True, True),
    "child of another agent": (SessionKey.subagent("ops", CHILD_ID), True, True),
    "sibling": (SessionKey.subagent("main", OTHER_CHILD_ID), True, False),
    "main of the agent": (SessionKey.main("main"), True, False),
    "absent of the agent": (SessionKey.named("main", "absent"), False, False),
    "another agent's": (SessionKey.main("ops"), True, False),
    "absent of another agent": (SessionKey.named("ops", "absent"), False, False),
}


def requester(*, sandboxed: bool = False) -> Requester:
    return Requester(key=ME, agent_id="main", sandboxed=sandboxed)


OPERATOR = Requester(key=None, agent_id="main")


def oracle(
    relation: str,
    level: str,
    *,
    sandboxed: bool,
    clamp: bool,
    enabled: bool,
    both_allowed: bool,
    by_key: bool,
) -> str:
    """The clauses, as a table of words: VIS-2, VIS-5, HIST-6. Shares nothing with the code."""
    if sandboxed and clamp and level in ("agent", "all"):
        level = "tree"
    if relation == "self":
        return "allowed"
    if relation.startswith("child") and level != "self":
        return "allowed"
    other = relation in ("another agent's", "absent of another agent", "child of another agent")
    if other:
        if level == "all" and enabled and both_allowed:
            return "not visible" if relation.startswith("absent") else "allowed"
        return "forbidden" if by_key else "not visible"
    if level in ("agent", "all") and not relation.startswith("absent"):
        return "allowed"
    return "not visible"


WORDS = {Allowed: "allowed", Forbidden: "forbidden", NotVisible: "not visible"}


@pytest.mark.clause("X1", "VIS-1", "VIS-2", "VIS-3", "VIS-5", "HIST-6")
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_combination_is_judged_as_the_clauses_say(relation: str) -> None:
    key, exists, in_tree = RELATIONS[relation]
    everything = product(
        LEVELS, (False, True), (False, True), (False, True), ALLOW, get_args(Operation), (False, True)
    )
    for level, sandboxed, clamp, enabled, allow, operation, by_key in everything:
        settings = AccessSettings(
            visibility=level, agent_to_agent=enabled, allow=allow, sandboxed_see="spawned" if clamp else "all"
        )
        target = Target(given="typed", key=key, exists=exists, in_tree=in_tree, by_key=by_key)

        verdict = judge(requester(sandboxed=sandboxed), target, operation, settings)

        expected = oracle(
            relation,
            level,
            sandboxed=sandboxed,
            clamp=clamp,
            enabled=enabled,
            both_allowed=allow in (None, ("*",), ("m*", "OPS")),
            by_key=by_key,
        )
        assert WORDS[type(verdict)] == expected, (
            relation,
            level,
            sandboxed,
            clamp,
            enabled,
            allow,
            operation,
            by_key,
        )


@pytest.mark.clause("VIS-2", "VIS-6")
@pytest.mark.parametrize("relation", RELATIONS)
def test_each_level_contains_the_one_before_it(relation: str) -> None:
    key, exists, in_tree = RELATIONS[relation]
    target = Target(given="typed", key=key, exists=exists, in_tree=in_tree)
    for sandboxed, enabled, allow in product((False, True), (False, True), ALLOW):
        seen = [
            isinstance(
                judge(
                    requester(sandboxed=sandboxed),
                    target,
                    "list",
                    AccessSettings(visibility=level, agent_to_agent=enabled, allow=allow),
                ),
                Allowed,
            )
            for level in LEVELS
        ]
        assert seen == sorted(seen)


@pytest.mark.clause("HIST-6", "X2")
@given(
    st.builds(
        AccessSettings,
        visibility=st.sampled_from(LEVELS),
        agent_to_agent=st.booleans(),
        allow=st.sampled_from(ALLOW),
    ),
    st.booleans(),
    st.booleans(),
    st.text(max_size=20),
)
def test_absent_and_invisible_sessions_get_the_same_answer(
    settings: AccessSettings, sandboxed: bool, by_key: bool, typed: str
) -> None:
    for key in (SessionKey.named("main", "x"), SessionKey.named("ops", "x")):
        there, absent = (
            judge(
                requester(sandboxed=sandboxed),
                Target(given=typed, key=key, exists=exists, by_key=by_key),
                "history",
                settings,
            )
            for exists in (True, False)
        )
        assert isinstance(there, Allowed) or there == absent


@pytest.mark.clause("HIST-6")
def test_what_a_text_did_not_resolve_to_is_not_visible_in_the_words_it_was_typed() -> None:
    for who in (requester(), OPERATOR):
        verdict = judge(
            who, Target(given=" No\nOne ", key=None, exists=False), "send", AccessSettings(visibility="all")
        )

        assert verdict == NotVisible(error="session not visible:  No\nOne ")
    assert not_visible("x") == "session not visible: x"


@pytest.mark.clause("HIST-6")
@pytest.mark.parametrize(
    ("settings", "sandboxed", "closed_by"),
    [
        (AccessSettings(), False, ("tools.sessions.visibility", "tools.agentToAgent.enabled")),
        (AccessSettings(visibility="all"), False, ("tools.agentToAgent.enabled",)),
        (AccessSettings(visibility="agent", agent_to_agent=True), False, ("tools.sessions.visibility",)),
        (
            AccessSettings(visibility="all", agent_to_agent=True, allow=()),
            False,
            ("tools.agentToAgent.allow",),
        ),
        (
            AccessSettings(visibility="all", agent_to_agent=True, allow=("main",)),
            False,
            ("tools.agentToAgent.allow",),
        ),
        (
            AccessSettings(visibility="all", agent_to_agent=True, allow=("ops",)),
            False,
            ("tools.agentToAgent.allow",),
        ),
        (
            AccessSettings(visibility="self", allow=("nobody",)),
            False,
            ("tools.sessions.visibility", "tools.agentToAgent.enabled", "tools.agentToAgent.allow"),
        ),
        (
            AccessSettings(visibility="all", agent_to_agent=True),
            True,
            ("agents.defaults.sandbox.sessionToolsVisibility",),
        ),
    ],
)
def test_a_closed_door_names_every_setting_that_closes_it(
    settings: AccessSettings, sandboxed: bool, closed_by: tuple[str, ...]
) -> None:
    target = Target(given="agent:ops:main", key=SessionKey.main("ops"), exists=True)

    verdict = judge(requester(sandboxed=sandboxed), target, "send", settings)

    assert isinstance(verdict, Forbidden)
    assert verdict.settings == closed_by
    assert verdict.code == "forbidden"
    assert all(setting in verdict.error for setting in closed_by)
    assert verdict.error.startswith("sessionKey: ")


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_operator_sees_all_there_is(relation: str) -> None:
    key, exists, _ = RELATIONS[relation]

    verdict = judge(
        OPERATOR, Target(given="x", key=key, exists=exists), "history", AccessSettings(visibility="self")
    )

    assert isinstance(verdict, Allowed) is exists


@pytest.mark.clause("VIS-3", "LIST-2")
def test_a_list_shows_exactly_the_rows_that_the_verdict_allows() -> None:
    for level, sandboxed, enabled, allow in product(LEVELS, (False, True), (False, True), ALLOW):
        settings = AccessSettings(visibility=level, agent_to_agent=enabled, allow=allow)
        reach = reach_of(requester(sandboxed=sandboxed), settings)
        for key, _, in_tree in RELATIONS.values():
            target = Target(given="x", key=key, exists=True, in_tree=in_tree)
            allowed = isinstance(judge(requester(sandboxed=sandboxed), target, "list", settings), Allowed)
            assert reach.sees(key=str(key), agent_id=key.agent_id, in_tree=in_tree) is allowed


@pytest.mark.clause("VIS-5")
def test_the_settings_come_from_the_configuration_and_the_agents_own_sandbox() -> None:
    config = load_config(
        {
            "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True, "allow": ["a"]}},
            "agents": {
                "defaults": {"sandbox": {"sessionToolsVisibility": "all"}},
                "list": [{"id": "a"}, {"id": "b", "sandbox": {"sessionToolsVisibility": "spawned"}}],
            },
        }
    ).config

    assert access_settings(config, "a") == AccessSettings(
        visibility="all", agent_to_agent=True, allow=("a",), sandboxed_see="all"
    )
    assert access_settings(config, "b").sandboxed_see == "spawned"
    assert access_settings(config, "stranger").sandboxed_see == "all"


@pytest.mark.clause("X14")
def test_what_is_missing_in_the_configuration_is_the_narrow_choice() -> None:
    assert access_settings(load_config().config, "main") == AccessSettings(
        visibility="tree", agent_to_agent=False, allow=None, sandboxed_see="spawned"
    )


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize(
    ("patterns", "may"),
    [
        ((), False),
        (("*",), True),
        (("agent:main:*",), True),
        (("agent:ops:*",), False),
        (("agent:main:discord:group:42",), True),
    ],
)
def test_a_credential_acts_only_as_sessions_that_its_globs_match(
    patterns: tuple[str, ...], may: bool
) -> None:
    assert may_act_as(patterns, ME) is may
