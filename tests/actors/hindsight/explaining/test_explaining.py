"""Ends, refusals and texts that reached nobody are explained by the rules that were asked (WHY-2)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from intersession import DeliveryInDoubt, DeliveryRefused, MemoryChannel, SendAnswer, SessionSystem, Turn
from intersession_actors.hindsight.explaining.explained import Explaining
from intersession_actors.hindsight.explaining.explanation import Explanation
from intersession_actors.hindsight.explaining.rules.ends import (
    ARCHIVALS,
    CLOSES,
    LOOP_ENDS,
    SILENCES,
    UNBINDINGS,
)
from intersession_actors.hindsight.explaining.rules.failures import FAILURES
from intersession_actors.hindsight.explaining.rules.refusals import REFUSALS
from intersession_actors.rules.errors import RefusalCode
from intersession_events import facts
from intersession_events.log.recorded import parts_in
from support.explained import explained
from support.golden_logs import GoldenLog
from support.running import Booth, Gate, all_said, merged, wait_for, wait_for_number
from support.story import Story

MAIN, RESEARCH = "agent:main:main", "agent:research:main"
TABLES: list[tuple[Mapping[Any, Any], tuple[str, ...]]] = [
    (LOOP_ENDS, get_args(facts.LoopEnd)),
    (CLOSES, (*get_args(facts.CloseReason), *get_args(facts.SpawnClose))),
    (FAILURES, get_args(facts.FailureCode)),
    (ARCHIVALS, get_args(facts.ArchiveReason)),
    (UNBINDINGS, get_args(facts.UnbindReason)),
    (REFUSALS, get_args(RefusalCode)),
    (
        SILENCES,
        ("text", "announce_skip", "no_text", "run_failed", "not_routed", "child_failed", "limit", "dropped"),
    ),
]


def given(explanation: Explanation) -> dict[str, tuple[Any, str]]:
    return {one.name: (one.value, one.set_by) for one in explanation.inputs}


def others(explanation: Explanation) -> list[tuple[str | None, str | None]]:
    return [(one.setting, one.verdict) for one in explanation.instead]


def send(system: SessionSystem, message: str = "well?") -> SendAnswer:
    asked = {"agentId": "research", "message": message, "timeoutSeconds": 20}
    return system.tools(MAIN).call("sessions_send", asked)


def asking(turn: Turn) -> str:
    return "I see." if turn.step == "reply" else "asking"


@pytest.mark.clause("WHY-2")
@pytest.mark.parametrize(("table", "codes"), TABLES)
def test_every_code_has_a_rule_with_a_clause(table: Mapping[str, Any], codes: tuple[str, ...]) -> None:
    assert table.keys() == set(codes)
    for rule in table.values():
        assert rule.clause.partition("-")[0].isupper()
        assert rule.says


@pytest.mark.clause("WHY-2")
def test_a_loop_that_an_agent_ended_says_what_it_answered_and_what_would_have_gone_on(log_url: str) -> None:
    def research(turn: Turn) -> str:
        return "REPLY_SKIP" if turn.step == "reply" else "yes"

    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": research})
        send(system)
        wait_for(system, facts.ExchangeClosed)

        (loop,) = explained(system, facts.LoopEnded)

    assert (loop.code, loop.rule, loop.as_decided) == ("reply_skip", "LOOP-2", True)
    assert given(loop)["reply"] == ("REPLY_SKIP", "agent")
    assert given(loop)["session.agentToAgent.maxPingPongTurns"] == (5, "default")
    assert others(loop) == [(None, "turn_requested")]


@pytest.mark.clause("WHY-2")
def test_where_two_things_stood_in_the_way_both_are_named(log_url: str) -> None:
    def research(turn: Turn) -> str:
        return "REPLY_SKIP" if turn.step == "reply" else "yes"

    limited = {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": research}, None, limited)
        send(system)
        wait_for(system, facts.ExchangeClosed)

        (loop,) = explained(system, facts.LoopEnded)

    assert (loop.code, loop.as_decided) == ("reply_skip", True)
    assert others(loop) == [
        (None, "turn_limit"),
        ("session.agentToAgent.maxPingPongTurns", "turn_requested"),
    ]


@pytest.mark.clause("WHY-2")
def test_a_loop_that_a_limit_ended_names_the_setting_who_set_it_and_the_next_turn(log_url: str) -> None:
    limited = {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": lambda _: "more"}, None, limited)
        send(system)
        wait_for(system, facts.ExchangeClosed)
        (loaded,) = [item for item in system.log.all() if isinstance(item.event, facts.ConfigLoaded)]

        (loop,) = explained(system, facts.LoopEnded)

    (setting,) = [one for one in loop.inputs if one.name == "session.agentToAgent.maxPingPongTurns"]
    assert (loop.code, loop.as_decided) == ("turn_limit", True)
    assert (setting.value, setting.set_by, setting.position) == (2, "configuration", loaded.position)
    assert ("session.agentToAgent.maxPingPongTurns", "turn_requested") in others(loop)


@pytest.mark.clause("WHY-2")
@pytest.mark.parametrize(
    ("config", "reason", "setting"),
    [
        ({"session": {"agentToAgent": {"oneWay": ["main"]}}}, "one_way", "session.agentToAgent.oneWay"),
        (
            {"session": {"agentToAgent": {"limits": {"runs": 1}}}},
            "run_limit",
            "session.agentToAgent.limits.runs",
        ),
    ],
)
def test_a_loop_that_a_setting_forbade_says_which(
    log_url: str, config: dict[str, Any], reason: str, setting: str
) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": lambda _: "more"}, None, config)
        send(system)
        wait_for(system, facts.ExchangeClosed)

        (loop,) = explained(system, facts.LoopEnded)

    assert (loop.code, loop.as_decided) == (reason, True)
    assert (setting, "turn_requested") in others(loop)


@pytest.mark.clause("WHY-2")
@pytest.mark.parametrize(
    ("answers", "code", "instead"),
    [("ANNOUNCE_SKIP", "announce_skip", "announced"), ("", "no_text", "announced")],
)
def test_a_silent_announce_is_the_agents_word(log_url: str, answers: str, code: str, instead: str) -> None:
    def research(turn: Turn) -> str:
        return answers if turn.step == "announce" else "yes"

    quiet = {"session": {"agentToAgent": {"maxPingPongTurns": 0}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": research}, None, quiet)
        send(system)
        wait_for(system, facts.ExchangeClosed)

        (announce,) = explained(system, facts.AnnounceDecided)
        (closed,) = explained(system, facts.ExchangeClosed)

    assert (announce.code, announce.rule, announce.as_decided) == (code, "ANN-1", True)
    assert (None, instead) in others(announce)
    assert (closed.code, closed.as_decided) == ("silent", True)
    assert (None, "no_route") in others(closed)


@pytest.mark.clause("WHY-2")
def test_an_announce_with_nowhere_to_go_says_that_there_was_no_route(log_url: str) -> None:
    quiet = {"session": {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": lambda _: "yes"}, None, quiet)
        send(system)
        wait_for(system, facts.ExchangeClosed)

        (announce,) = explained(system, facts.AnnounceDecided)
        (closed,) = explained(system, facts.ExchangeClosed)

    assert (announce.code, announce.rule) == ("not_routed", "ANN-2")
    assert ("session.agentToAgent.announce", "announce_requested") in others(announce)
    assert given(closed)["route"] == (None, "session")
    assert closed.code == "no_route"


@pytest.mark.clause("WHY-2")
def test_a_request_whose_run_failed_or_said_nothing_says_so(log_url: str) -> None:
    def research(turn: Turn) -> str:
        if "break" in turn.message:
            raise RuntimeError("broken")
        return ""

    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": research})
        send(system, "break")
        send(system, "nothing")

        (run,) = explained(system, facts.RunFailed)
        closed = explained(system, facts.ExchangeClosed)

    assert (run.code, run.rule) == ("backend", "SEND-7")
    assert [(one.code, one.as_decided) for one in closed] == [("run_failed", True), ("no_reply", True)]
    assert all((None, "turn_requested") in others(one) for one in closed)


@pytest.mark.clause("WHY-2")
def test_a_closed_door_names_what_would_open_it(log_url: str) -> None:
    with SessionSystem(log_url, agents={"main": asking, "research": asking}) as system:
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main", wait=20)
        assert send(system)["code"] == "forbidden"
        assert (
            system.tools(MAIN).call("sessions_history", {"sessionKey": "nobody-here"})["code"]
            == "not_visible"
        )
        wait_for_number(system, facts.AccessRecorded, 2)

        forbidden, absent = explained(system, facts.AccessRecorded)

    assert (forbidden.code, forbidden.rule, forbidden.as_decided) == ("forbidden", "HIST-6", True)
    assert given(forbidden)["tools.sessions.visibility"] == ("tree", "default")
    (opening,) = forbidden.instead
    assert opening.change == "tools.sessions.visibility is all and tools.agentToAgent.enabled is true"
    assert opening.verdict == "allowed"
    assert (absent.code, absent.as_decided) == ("not_visible", True)
    assert absent.instead[0].verdict is None


@pytest.mark.clause("WHY-2")
def test_a_refusal_of_the_send_policy_names_the_rule_and_what_would_lift_it(log_url: str) -> None:
    denied = {
        "session": {"sendPolicy": {"rules": [{"action": "deny", "match": {"keyPrefix": "agent:research:"}}]}}
    }

    def main(turn: Turn) -> str:
        turn.tools.call("sessions_send", {"agentId": "research", "sessionKey": None, "message": "hm?"})
        return "tried"

    with Booth(log_url) as booth:
        system = booth.start({"main": main, "research": asking}, None, denied)
        system.inbound(channel="t", chat_id="2", sender="ada", text="hi", agent_id="research", wait=20)
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main", wait=20)
        answered = [item for item in all_said(system) if item.message.role == "toolResult"]
        assert answered

        refused = [one for one in explained(system, facts.MessageRecorded) if one.about == "refusal"]
        wait_for(system, facts.DeliveryDenied)
        (undelivered, *_rest) = explained(system, facts.DeliveryDenied)

    assert [one.code for one in refused] == ["policy_denied"]
    assert refused[0].rule == "SEND-12"
    assert (undelivered.code, undelivered.rule, undelivered.as_decided) == ("denied", "ANN-4", True)
    assert ("session.sendPolicy.rules[0]", "allow") in others(undelivered)
    assert ("sendPolicy", "allow") in others(undelivered)


@pytest.mark.clause("WHY-2")
def test_a_guard_that_refused_says_what_was_used_and_what_is_allowed(log_url: str) -> None:
    def main(turn: Turn) -> str:
        return str(
            turn.tools.call("sessions_send", {"agentId": "research", "message": "on", "timeoutSeconds": 20})
        )

    def research(turn: Turn) -> str:
        if turn.step != "message":
            return "ANNOUNCE_SKIP"
        return str(
            turn.tools.call("sessions_send", {"agentId": "ops", "message": "on", "timeoutSeconds": 20})
        )

    short = {"session": {"agentToAgent": {"maxPingPongTurns": 0, "limits": {"hops": 1}}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": main, "research": research, "ops": asking}, None, short)
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main", wait=20)

        (guard,) = explained(system, facts.SendRefused)
        (answered,) = [one for one in explained(system, facts.MessageRecorded) if one.code == "limit"]

    assert (guard.code, guard.rule) == ("limit", "LOOP-5")
    assert given(guard)["session.agentToAgent.limits.hops"] == (1, "configuration")
    assert given(guard)["session.agentToAgent.limits.hops.used"] == (1, "log")
    assert (guard.instead[0].setting, guard.instead[0].value) == ("session.agentToAgent.limits.hops", 2)
    assert answered.rule == "LOOP-5"


@pytest.mark.clause("WHY-2")
def test_a_text_that_reached_nobody_says_why(log_url: str) -> None:
    def refuses(_: object) -> None:
        raise DeliveryRefused("no such chat")

    def doubts(_: object) -> None:
        raise DeliveryInDoubt("cut off")

    with Booth(log_url) as booth:
        channels = {"refuses": refuses, "doubts": doubts, "fine": MemoryChannel()}
        system = booth.start({"main": asking, "ops": asking}, channels)
        for name in ("refuses", "doubts", "nowhere"):
            system.inbound(channel=name, chat_id="1", sender="ada", text="hi", agent_id="ops", wait=20)
        wait_for(system, facts.DeliveryUnknown)
        wait_for(system, facts.DeliveryFailed)
        wait_for(system, facts.DeliveryDecided, lambda event: event.route.channel == "nowhere")

        (failed,) = explained(system, facts.DeliveryFailed)
        (unknown,) = explained(system, facts.DeliveryUnknown)
        (waiting,) = explained(system, facts.DeliveryDecided)

    assert (failed.code, failed.rule) == ("failed", "ANN-3")
    assert "no such chat" in failed.text
    assert unknown.code == "unknown"
    assert (waiting.code, given(waiting)["route"][0]) == ("waits_for_channel", "nowhere:1")


@pytest.mark.clause("WHY-2")
def test_a_spawn_is_explained_by_its_own_rules(log_url: str) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda turn: "ANNOUNCE_SKIP" if turn.step == "announce" else "done"})
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main", wait=20)
        system.tools(MAIN).call("sessions_spawn", {"task": "count"})
        wait_for(system, facts.SpawnClosed)

        (announce,) = explained(system, facts.AnnounceDecided)
        (closed,) = explained(system, facts.SpawnClosed)

    assert (announce.code, announce.as_decided) == ("announce_skip", True)
    assert [(one.change, one.verdict) for one in announce.instead] == [("another answer", "text")]
    assert (closed.code, closed.as_decided) == ("silent", True)
    assert [(one.change, one.verdict) for one in closed.instead] == [("another answer", "announce_decided")]


@pytest.mark.clause("WHY-2", "SPAWN-9")
def test_a_result_that_was_handed_over_says_what_would_have_announced_it(log_url: str) -> None:
    """What would have changed the end of a spawn was one sentence for all there is (issue 10)."""
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "done"})
        system.tools(MAIN).call("sessions_spawn", {"task": "count"})
        wait_for(system, facts.SpawnClosed)
        (closed,) = explained(system, facts.SpawnClosed)
        (announce,) = explained(system, facts.AnnounceDecided)

    assert (closed.code, closed.as_decided) == ("handed_over", True)
    assert [(one.change, one.verdict) for one in closed.instead] == [
        ("the agent answers ANNOUNCE_SKIP", "silent"),
        (f"{MAIN} has a route when the spawn is accepted: a person has spoken to it", "announce_decided"),
    ]
    assert [(one.change, one.verdict) for one in announce.instead] == [
        ("the agent answers ANNOUNCE_SKIP", "announce_skip")
    ]


@pytest.mark.clause("WHY-2", "SPAWN-11")
def test_a_spawn_is_explained_as_well_when_its_child_has_been_archived_and_its_files_are_gone(
    log_url: str, tmp_path: Path
) -> None:
    """Once a child was archived, today's rules were said to decide otherwise: its archiving was taken for their word."""
    files = {
        "agents": {"defaults": {"workspace": str(tmp_path)}},
        "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
    }
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "done"}, None, files)
        asked = {"task": "count", "cleanup": "delete", "attachments": [{"name": "a.txt", "content": "1 2 3"}]}
        system.tools(MAIN).call("sessions_spawn", asked)
        wait_for(system, facts.ChildArchived)
        wait_for(system, facts.AttachmentsRemoved)
        (closed,) = explained(system, facts.SpawnClosed)
        (announce,) = explained(system, facts.AnnounceDecided)

    assert (announce.as_decided, closed.as_decided) == (True, True)
    assert ("the agent answers ANNOUNCE_SKIP", "silent") in [
        (one.change, one.verdict) for one in closed.instead
    ]


@pytest.mark.clause("WHY-2", "LOOP-5")
def test_the_last_run_that_a_chain_may_have_is_not_counted_against_itself(log_url: str) -> None:
    """The run that a decision asks for stood before it in the append, and was counted: a limit seemed to be reached."""
    with Booth(log_url) as booth:
        limits = {"session": {"agentToAgent": {"limits": {"runs": 3}}}}
        system = booth.start({"main": lambda _: "done"}, None, limits)
        system.tools(MAIN).call("sessions_spawn", {"task": "count"})  # a run, its announce, and the result's
        wait_for(system, facts.SpawnClosed)
        (closed,) = explained(system, facts.SpawnClosed)

    assert (closed.code, closed.as_decided) == ("handed_over", True)


@pytest.mark.clause("WHY-2")
def test_what_was_decided_on_words_that_are_erased_is_not_decided_again(log_url: str) -> None:
    """Without the words that it was made on, a decision came out otherwise, and the rules were said to be others."""
    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": lambda _: "REPLY_SKIP, or not"})
        send(system)
        wait_for(system, facts.ExchangeClosed)
        system.gateway.call("sessions.erase", {"key": RESEARCH, "reason": "asked for"})
        loops = explained(system, facts.LoopEnded)

    assert [(one.code, one.as_decided) for one in loops] == [("turn_limit", None)]


SPAWN_REFUSALS: list[tuple[dict[str, Any], dict[str, Any], str, list[tuple[str | None, str | None]]]] = [
    (
        {},
        {"agentId": "research"},
        "agent_not_allowed",
        [(None, "allowed"), ("agents.defaults.subagents.allowAgents", "allowed")],
    ),
    ({}, {"agentId": "nobody"}, "agent_not_allowed", [(None, "allowed")]),
    (
        {},
        {"agentId": "research", "sandbox": "require"},
        "agent_not_allowed",
        [(None, "sandbox_required"), ("agents.defaults.subagents.allowAgents", "sandbox_required")],
    ),
    (
        {},
        {"sandbox": "require"},
        "sandbox_required",
        [(None, "allowed"), ("agents.defaults.sandbox.mode", "allowed")],
    ),
    (
        {"agents": {"defaults": {"models": {"some/model": {}}}}},
        {"model": "no/model"},
        "invalid_model",
        [(None, "allowed")],
    ),
    (
        {"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 1}}}},
        {"task": "again"},
        "spawn_limit",
        [("agents.defaults.subagents.maxChildrenPerAgent", "allowed"), (None, "allowed")],
    ),
    (
        {
            "agents": {"defaults": {"subagents": {"allowAgents": ["research"]}}},
            "tools": {"agentToAgent": {"enabled": False}},
        },
        {"agentId": "research", "context": "fork"},
        "forbidden",
        [(None, "allowed"), (None, "allowed"), ("tools.agentToAgent.enabled", "allowed")],
    ),
    (
        {"session": {"sendPolicy": {"default": "deny"}}},
        {},
        "policy_denied",
        [("session.sendPolicy.default", "allow")],
    ),
    (
        {"session": {"sendPolicy": {"rules": [{"action": "deny", "match": {"keyPrefix": "subagent:"}}]}}},
        {},
        "policy_denied",
        [("session.sendPolicy.rules[0]", "allow")],
    ),
]


@pytest.mark.clause("WHY-2", "POL-3", "SPAWN-2", "SPAWN-3", "SPAWN-5", "CHILD-6")
def test_a_refused_spawn_names_one_thing_after_the_other_that_would_have_let_it(tmp_path: Path) -> None:
    """A refused spawn said one sentence, or that no setting would show that session (issue 10)."""
    listed = {"agents": {"list": [{"id": "main", "default": True}, {"id": "research"}]}}
    for number, (config, asked, code, instead) in enumerate(SPAWN_REFUSALS):
        gate = Gate()

        def main(turn: Turn, asked: dict[str, Any] = asked, gate: Gate = gate) -> str:
            if ":subagent:" in turn.session_key:
                gate.stop(turn)
                return "done"
            if "task" in asked:
                turn.tools.call("sessions_spawn", {"task": "first"})
            turn.tools.call("sessions_spawn", {"task": "count", **asked})
            return "asked"

        with SessionSystem(
            tmp_path / f"{number}.db",
            agents={"main": main, "research": main},
            channels={"t": MemoryChannel()},
            config=merged(listed, config),
        ) as system:
            system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main", wait=20)
            (found,) = explained(system, facts.MessageRecorded)
            gate.open()
        assert (found.code, found.as_decided, others(found)) == (code, True, instead), code
        assert all(one.change for one in found.instead)


@pytest.mark.clause("WHY-2")
def test_what_an_import_shows_is_not_decided_again(tmp_path: Path) -> None:
    path = GoldenLog("0.1.0", "base").unpack(tmp_path)
    with SessionSystem(f"sqlite:///{path}", agents={"main": asking}) as system:
        loops = explained(system, facts.LoopEnded)

    assert loops
    assert {one.as_decided for one in loops} == {None}


@pytest.mark.clause("WHY-2")
def test_who_may_not_see_everything_is_told_the_rule_alone(log_url: str) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": asking, "research": lambda _: "more"})
        send(system)
        wait_for(system, facts.ExchangeClosed)
        explaining = Explaining(system.service.reader, secretly=True)
        (item,) = [item for item in parts_in(system.log.all()) if isinstance(item.event, facts.LoopEnded)]

        (loop,) = explaining.of(item)

    assert (loop.code, loop.rule) == ("turn_limit", "LOOP-2")
    assert (loop.text, loop.inputs, loop.instead, loop.as_decided) == ("", (), (), None)


@pytest.mark.clause("WHY-2")
def test_of_many_attempts_at_one_text_the_last_is_explained() -> None:
    story, route = Story(), facts.Route(channel="telegram", to="42")
    for name in ("d1", "d2"):
        story.put(
            f"delivery:{name}",
            facts.DeliveryDecided(
                delivery_id=name, session_key=MAIN, route=route, text="done", key=name, purpose="announce"
            ),
            *(
                facts.DeliveryFailed(delivery_id=name, attempt=attempt, error="down", retry_at_ms=9)
                for attempt in (1, 2, 3)
            ),
        )
    events = list(story.log.all())
    explaining = Explaining(story.reader())

    found = [given(one)["attempt"][0] for one in explaining.of_all(events)]
    assert found == [3, 3]
    assert [given(one)["attempt"][0] for one in explaining.of(events[1])] == [1]  # who asks for it is told
    story.close()
