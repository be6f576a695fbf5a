"""Explanations name when things were and how long they lasted, and judge no rule by a clock that was set (WHY-2)."""

from typing import Any

import pytest

from intersession import DeliveryRefused, MemoryChannel, Outbound, Turn
from intersession_actors.hindsight.explaining.explanation import Explanation
from intersession_events import facts
from support.explained import explained
from support.fakes import ManualClock
from support.running import Booth, Gate, closed_spawn, pass_time_until, wait_for

MAIN, RESEARCH = "agent:main:main", "agent:research:main"
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def given(explanation: Explanation) -> dict[str, tuple[Any, str | None]]:
    return {one.name: (one.value, one.unit) for one in explanation.inputs}


def between(explanation: Explanation, first: str, last: str) -> int:
    """Return how long after one time another is, in ms."""
    times = given(explanation)
    return int(times[last][0] - times[first][0])


@pytest.mark.clause("WHY-2", "LOOP-7")
def test_an_answer_that_came_too_late_says_by_how_much(log_url: str) -> None:
    """It named two times in milliseconds since 1970, and of the second attempt those of the first."""
    clock, gate = ManualClock(), Gate()
    limit = {"agents": {"defaults": {"timeoutSeconds": 60}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": gate.stop}, {"t": MemoryChannel()}, limit, clock=clock)
        system.inbound(channel="t", chat_id="1", sender="ada", text="well?", agent_id="main")
        gate.reached()
        pass_time_until(system, clock, MINUTE, facts.RunFailed)
        clock.advance(5_000)
        gate.open()
        wait_for(system, facts.LateReplyDropped)
        (failed,), (late,) = explained(system, facts.RunFailed), explained(system, facts.LateReplyDropped)

    assert given(failed)["started"][1] == "time"
    assert between(failed, "started", "ended") == given(failed)["took"][0] >= MINUTE
    assert given(failed)["took"][1] == "duration"
    assert given(late)["over"] == given(failed)["ended"]
    assert between(late, "over", "answered") == given(late)["tooLateBy"][0] >= 5_000
    assert given(late)["tooLateBy"][1] == "duration"
    assert "ended" not in given(late)


@pytest.mark.clause("WHY-2", "SPAWN-11")
def test_the_archiving_of_a_kept_sub_agent_names_how_long_it_was_kept_and_who_set_that(log_url: str) -> None:
    clock = ManualClock()
    settings = {"agents": {"defaults": {"subagents": {"archiveAfterMinutes": 5}}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda turn: turn.step}, None, settings, clock=clock)
        system.gateway.call("sessions.patch", {"key": MAIN, "label": "asks"})
        spawned = system.tools(MAIN).call("sessions_spawn", {"task": "count"})
        closed_spawn(system, spawned.get("runId", ""))
        pass_time_until(system, clock, 5 * MINUTE, facts.ChildArchived)
        wait_for(system, facts.SessionArchived)
        found = [*explained(system, facts.ChildArchived), *explained(system, facts.SessionArchived)]

    assert [one.code for one in found] == ["expired", "expired"]
    for one in found:
        inputs = given(one)
        assert inputs["session"] == (spawned.get("childSessionKey"), None)
        assert inputs["agents.defaults.subagents.archiveAfterMinutes"] == (5, None)
        assert inputs["keptFor"][0] >= 5 * MINUTE
        assert inputs["keptFor"][1] == "duration"
        (setting,) = [each for each in one.inputs if each.name.endswith("archiveAfterMinutes")]
        assert (setting.set_by, setting.position) == ("configuration", 2)


@pytest.mark.clause("WHY-2", "SPAWN-11", "GATE-2")
def test_an_archiving_names_what_it_was_about(log_url: str) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda turn: turn.step})
        system.gateway.call("sessions.patch", {"key": "agent:main:other", "label": "there"})
        system.gateway.call("sessions.patch", {"key": MAIN, "label": "asks"})
        spawned = system.tools(MAIN).call("sessions_spawn", {"task": "count", "cleanup": "delete"})
        wait_for(system, facts.SessionArchived)
        system.gateway.call("sessions.delete", {"key": "agent:main:other"})
        cleaned, deleted = explained(system, facts.SessionArchived)

    assert (cleaned.code, deleted.code) == ("cleanup", "deleted")
    assert given(cleaned)["cleanup"] == ("delete", None)
    assert given(cleaned)["session"] == (spawned.get("childSessionKey"), None)
    assert given(deleted) == {"session": ("agent:main:other", None), "by": ("operator", None)}


@pytest.mark.clause("WHY-2", "SPAWN-12")
def test_the_end_of_a_binding_names_the_thread_and_the_time_without_a_word(log_url: str) -> None:
    clock, channel = ManualClock(), MemoryChannel(idempotent=True)
    channel.threads = lambda _: "t1"
    config: dict[str, Any] = {"session": {"threadBindings": {"idleHours": 2}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda turn: turn.step}, {"d": channel}, config, clock=clock)
        system.inbound(channel="d", chat_id="4", chat_type="group", text="hi", sender="p", deliver=False)
        asked = {"task": "count", "thread": True}
        spawned = system.tools("agent:main:d:group:4").call("sessions_spawn", asked)
        closed_spawn(system, spawned.get("runId", ""))
        pass_time_until(system, clock, 2 * HOUR, facts.ThreadUnbound)
        (unbound,) = explained(system, facts.ThreadUnbound)

    assert (unbound.code, unbound.rule) == ("idle", "SPAWN-12")
    assert given(unbound)["thread"] == ("d:4#t1", None)
    assert given(unbound)["session.threadBindings.idleHours"] == (2, None)
    assert given(unbound)["idleFor"][0] >= 2 * HOUR
    assert given(unbound)["idleFor"][1] == "duration"


@pytest.mark.clause("WHY-2", "LOOP-5", "L8")
@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_clock_that_was_set_is_no_other_rule(log_url: str, step: int) -> None:
    """The log's time was a day ahead, and the rules of today were said to find the chain too old."""
    clock = ManualClock()
    limited = {"session": {"agentToAgent": {"limits": {"wallSeconds": 600}}}}

    def research(turn: Turn) -> str:
        if turn.step == "reply":
            clock.set_wall(clock.now_ms() + step)
            return "REPLY_SKIP"
        return "yes"

    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "I see.", "research": research}, None, limited, clock=clock)
        asked = {"agentId": "research", "message": "well?", "timeoutSeconds": 20}
        system.tools(MAIN).call("sessions_send", asked)
        wait_for(system, facts.ExchangeClosed)
        found = [*explained(system, facts.LoopEnded), *explained(system, facts.AnnounceDecided)]
        found += explained(system, facts.ExchangeClosed)

    assert found
    assert {one.as_decided for one in found} <= {True}
    assert not any(name.endswith(".used") for one in found for name in given(one))


@pytest.mark.clause("WHY-2", "LOOP-5")
def test_a_chain_that_was_too_old_is_said_to_have_been(log_url: str) -> None:
    clock = ManualClock()
    limited = {"session": {"agentToAgent": {"limits": {"wallSeconds": 600}}}}

    def research(_: Turn) -> str:
        clock.advance(700_000)
        return "yes"

    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "I see.", "research": research}, None, limited, clock=clock)
        asked = {"agentId": "research", "message": "well?", "timeoutSeconds": 20}
        system.tools(MAIN).call("sessions_send", asked)
        wait_for(system, facts.ExchangeClosed)
        (loop,) = explained(system, facts.LoopEnded)

    assert (loop.code, loop.as_decided) == ("wall_limit", True)
    assert given(loop)["session.agentToAgent.limits.wallSeconds.used"] == (700, None)
    assert [one.setting for one in loop.instead] == ["session.agentToAgent.limits.wallSeconds"]


@pytest.mark.clause("WHY-2", "ANN-3")
def test_a_text_that_was_given_up_says_how_just_it_is_tried_again(log_url: str) -> None:
    def closed(_: Outbound) -> None:
        raise DeliveryRefused("this room is closed")

    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "hello"}, {"t": closed})
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main", wait=20)
        wait_for(system, facts.DeliveryFailed)
        (failed,) = explained(system, facts.DeliveryFailed)
        delivery = system.debug.deliveries()["deliveries"][0]["id"]

    assert [one.change for one in failed.instead] == [
        f"a channel that takes it; `intersession deliveries retry {delivery}` tries once more"
    ]


@pytest.mark.clause("WHY-2", "ANN-1")
def test_another_answer_than_to_keep_silent_is_announced_where_there_is_somewhere(log_url: str) -> None:
    """It was said to lead nowhere, though the session had a route: no delivery had been decided, as there was no text."""
    with Booth(log_url) as booth:
        agents = {"main": lambda _: "REPLY_SKIP", "research": lambda _: "ANNOUNCE_SKIP"}
        system = booth.start(agents, {"t": MemoryChannel()})
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="research", wait=20)
        system.tools(MAIN).call(
            "sessions_send", {"agentId": "research", "message": "?", "timeoutSeconds": 20}
        )
        wait_for(system, facts.ExchangeClosed)
        (closed,) = explained(system, facts.ExchangeClosed)

    assert (closed.code, closed.as_decided) == ("silent", True)
    assert [one.verdict for one in closed.instead] == ["announce_decided"]
