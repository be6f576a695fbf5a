"""Who may see and reach which session, compared with an oracle of its own over every combination there is."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.config.tools import Visibility
from intersession_actors.rules.policy.access import (
    Operation,
    Requester,
    SeeSession,
    Sight,
    closed,
    judge_access,
    may_act_as,
    not_visible,
    reach_of,
    sight_of,
)
from intersession_events.basics.keys.key import SessionKey

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


MINE = str(ME)


def main_of(agent_id: str) -> Requester:
    return Requester(key=SessionKey.main(agent_id), agent_id=agent_id)


def code_of(asked: SeeSession, sight: Sight) -> str:
    denial = judge_access(asked, sight)
    return "allowed" if denial is None else denial.code


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
            return "not_visible" if relation.startswith("absent") else "allowed"
        return "forbidden" if by_key else "not_visible"
    if level in ("agent", "all") and not relation.startswith("absent"):
        return "allowed"
    return "not_visible"


@pytest.mark.clause("X1", "VIS-1", "VIS-2", "VIS-3", "VIS-5", "HIST-6")
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_combination_is_judged_as_the_clauses_say(relation: str) -> None:
    key, exists, in_tree = RELATIONS[relation]
    everything = product(
        LEVELS, (False, True), (False, True), (False, True), ALLOW, get_args(Operation), (False, True)
    )
    for level, sandboxed, clamp, enabled, allow, operation, by_key in everything:
        sight = Sight(
            requester=MINE,
            sandboxed=sandboxed,
            visibility=level,
            agent_to_agent=enabled,
            allow=allow,
            sandboxed_see="spawned" if clamp else "all",
            exists=exists,
            in_tree=in_tree,
        )

        code = code_of(SeeSession(operation=operation, key=str(key), by_key=by_key), sight)

        expected = oracle(
            relation,
            level,
            sandboxed=sandboxed,
            clamp=clamp,
            enabled=enabled,
            both_allowed=allow in (None, ("*",), ("m*", "OPS")),
            by_key=by_key,
        )
        assert code == expected, (
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
    asked = SeeSession(operation="list", key=str(key))
    for sandboxed, enabled, allow in product((False, True), (False, True), ALLOW):
        sight = Sight(
            requester=MINE,
            sandboxed=sandboxed,
            agent_to_agent=enabled,
            allow=allow,
            exists=exists,
            in_tree=in_tree,
        )
        seen = [code_of(asked, replace(sight, visibility=level)) == "allowed" for level in LEVELS]
        assert seen == sorted(seen)


@pytest.mark.clause("HIST-6", "X2")
@given(
    st.builds(
        Sight,
        requester=st.just(MINE),
        visibility=st.sampled_from(LEVELS),
        agent_to_agent=st.booleans(),
        allow=st.sampled_from(ALLOW),
        sandboxed=st.booleans(),
    ),
    st.booleans(),
)
def test_absent_and_invisible_sessions_get_the_same_answer(sight: Sight, by_key: bool) -> None:
    for key in (SessionKey.named("main", "x"), SessionKey.named("ops", "x")):
        asked = SeeSession(operation="history", key=str(key), by_key=by_key)
        there, absent = (judge_access(asked, replace(sight, exists=exists)) for exists in (True, False))
        assert there is None or there == absent


@pytest.mark.clause("HIST-6")
def test_what_a_text_did_not_resolve_to_is_not_visible_in_the_words_it_was_typed() -> None:
    for who in (MINE, None):
        assert code_of(SeeSession(), Sight(requester=who, visibility="all")) == "not_visible"
    assert not_visible(" No\nOne ") == "session not visible:  No\nOne "


@pytest.mark.clause("SEND-1", "KEY-5")
def test_what_is_seen_is_not_always_reached() -> None:
    own = SessionKey.named("main", "x")
    asked, sight = SeeSession(key=str(own), by_key=False), Sight(requester=MINE, visibility="agent")

    assert code_of(asked, sight) == "allowed"
    assert code_of(asked, replace(sight, labelled=2)) == "ambiguous_label"
    assert code_of(SeeSession(key=MINE), sight) == "allowed"
    assert code_of(SeeSession(key=MINE, other=True), sight) == "self_send"
    assert code_of(asked, replace(sight, earlier=True)) == "old_generation"
    assert code_of(replace(asked, operation="history"), replace(sight, earlier=True)) == "allowed"
    assert code_of(asked, replace(sight, visibility="self", earlier=True)) == "not_visible"


@pytest.mark.clause("HIST-6")
@pytest.mark.parametrize(
    ("settings", "sandboxed", "closed_by"),
    [
        (Sight(), False, ("tools.sessions.visibility", "tools.agentToAgent.enabled")),
        (Sight(visibility="all"), False, ("tools.agentToAgent.enabled",)),
        (Sight(visibility="agent", agent_to_agent=True), False, ("tools.sessions.visibility",)),
        (
            Sight(visibility="all", agent_to_agent=True, allow=()),
            False,
            ("tools.agentToAgent.allow",),
        ),
        (
            Sight(visibility="all", agent_to_agent=True, allow=("main",)),
            False,
            ("tools.agentToAgent.allow",),
        ),
        (
            Sight(visibility="all", agent_to_agent=True, allow=("ops",)),
            False,
            ("tools.agentToAgent.allow",),
        ),
        (
            Sight(visibility="self", allow=("nobody",)),
            False,
            ("tools.sessions.visibility", "tools.agentToAgent.enabled", "tools.agentToAgent.allow"),
        ),
        (
            Sight(visibility="all", agent_to_agent=True),
            True,
            ("agents.defaults.sandbox.sessionToolsVisibility",),
        ),
    ],
)
def test_a_closed_door_names_every_setting_that_closes_it(
    settings: Sight, sandboxed: bool, closed_by: tuple[str, ...]
) -> None:
    asked, sight = SeeSession(key="agent:ops:main"), replace(settings, requester=MINE, sandboxed=sandboxed)

    assert judge_access(asked, sight) == ("forbidden", closed_by)
    assert all(setting in closed(asked, sight) for setting in closed_by)


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_operator_sees_all_there_is(relation: str) -> None:
    key, exists, _ = RELATIONS[relation]
    asked = SeeSession(operation="history", key=str(key))

    assert (code_of(asked, Sight(visibility="self", exists=exists)) == "allowed") is exists


@pytest.mark.clause("VIS-3", "LIST-2")
def test_a_list_shows_exactly_the_rows_that_the_verdict_allows() -> None:
    for level, sandboxed, enabled, allow in product(LEVELS, (False, True), (False, True), ALLOW):
        sight = Sight(
            requester=MINE, sandboxed=sandboxed, visibility=level, agent_to_agent=enabled, allow=allow
        )
        reach = reach_of(sight)
        for key, _, in_tree in RELATIONS.values():
            asked = SeeSession(operation="list", key=str(key))
            allowed = code_of(asked, replace(sight, in_tree=in_tree)) == "allowed"
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

    assert sight_of(config, main_of("a")) == Sight(
        requester="agent:a:main",
        visibility="all",
        agent_to_agent=True,
        allow=("a",),
        sandboxed_see="all",
    )
    assert sight_of(config, main_of("b")).sandboxed_see == "spawned"
    assert sight_of(config, main_of("stranger")).sandboxed_see == "all"


@pytest.mark.clause("X14")
def test_what_is_missing_in_the_configuration_is_the_narrow_choice() -> None:
    assert sight_of(load_config().config, main_of("main")) == Sight(
        requester="agent:main:main",
        visibility="tree",
        agent_to_agent=False,
        allow=None,
        sandboxed_see="spawned",
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
