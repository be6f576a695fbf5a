"""`sessions_spawn`: a sub-agent in a session of its own, and what is told of it afterwards."""

from typing import Any

import pytest

from intersession import MemoryChannel, Reply, Turn
from intersession_events.facts import (
    AnnounceDecided,
    ChildArchived,
    ChildEnded,
    ResultHanded,
    RunFailed,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    SpawnAccepted,
    SpawnClosed,
)
from support.fakes import ManualClock
from support.running import (
    WAIT,
    Booth,
    Gate,
    closed_spawn,
    one,
    pass_time,
    pass_time_until,
    recorded,
    texts,
    wait_for,
)

MAIN = "agent:main:main"
MINUTE = 60_000


def worker(turn: Turn) -> str | Reply:
    match turn.step:
        case "message" if ":subagent:" in turn.session_key:
            return f"did {turn.message}"
        case "message" | "compaction":
            return f"read {turn.message}"
        case "reply":
            return Reply.skip()
        case "announce":
            return "It is done."


def with_route(
    booth: Booth, *configs: dict[str, Any], agent: Any = worker, **given: Any
) -> tuple[Any, MemoryChannel]:
    telegram = MemoryChannel()
    system = booth.start({"main": agent, "ops": agent}, {"telegram": telegram}, *configs, **given)
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", deliver=False)
    return system, telegram


def spawn(system: Any, sender: str | None = MAIN, **given: Any) -> dict[str, Any]:
    answer: dict[str, Any] = system.tools(sender).call("sessions_spawn", {"task": "count", **given})
    return answer


@pytest.mark.clause("SPAWN-1", "SPAWN-6", "PROV-2")
def test_a_spawn_answers_at_once_with_the_childs_key(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("done")

    system, _ = with_route(booth, agent=slow)

    answer = spawn(system, label="counter")

    turn = gate.reached()
    child = answer["childSessionKey"]
    assert answer == {"status": "accepted", "runId": turn.run_id, "childSessionKey": child, "mode": "run"}
    assert child.startswith("agent:main:subagent:")
    assert (turn.session_key, turn.message) == (child, "count")
    assert turn.asked.provenance is not None
    assert (turn.asked.provenance.kind, turn.asked.provenance.source_tool) == (
        "inter_session",
        "sessions_spawn",
    )
    opened = next(event for event in recorded(system, SessionOpened) if event.key == child)
    assert (opened.opened_by, opened.spawned_by, opened.spawn_depth, opened.label) == (
        "spawn",
        MAIN,
        1,
        "counter",
    )
    gate.open()
    assert system.gateway.call("agent.wait", {"runId": answer["runId"]})["reply"] == "done"


@pytest.mark.clause("SPAWN-1")
@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ({"task": " "}, "invalid_request", "task"),
        ({"taks": "x"}, "invalid_request", "taks"),
        ({"mode": "session"}, "invalid_request", "mode"),
        ({"cleanup": "burn"}, "invalid_request", "cleanup"),
        ({"runTimeoutSeconds": -1}, "invalid_request", "runTimeoutSeconds"),
        ({"spawnedBy": "agent:ops:main"}, "invalid_request", "spawnedBy"),
        ({"thread": True}, "no_threads", "thread"),
        ({"runtime": "acp"}, "not_supported", "runtime"),
        ({"attachments": [{"name": "a", "content": "b"}]}, "forbidden", "tools.sessions_spawn.attachments"),
        ({"thinking": "deeply"}, "invalid_thinking", "high"),
        ({"sandbox": "require"}, "sandbox_required", "sandbox"),
    ],
)
def test_a_spawn_that_can_not_be_is_refused_and_leaves_nothing_behind(
    booth: Booth, arguments: dict[str, Any], code: str, named: str
) -> None:
    system, _ = with_route(booth)
    before = len(recorded(system, SessionOpened))

    answer = spawn(system, **arguments)

    assert answer["code"] == code
    assert named in answer["error"]
    assert "runId" not in answer
    assert len(recorded(system, SessionOpened)) == before
    assert recorded(system, SpawnAccepted) == []


@pytest.mark.clause("SPAWN-4")
def test_an_invalid_model_names_the_valid_ones(booth: Booth) -> None:
    system, _ = with_route(booth, {"agents": {"defaults": {"models": {"open/a": {}, "open/b": {}}}}})

    answer = spawn(system, model="open/z")
    fine = spawn(system, model="open/b")

    assert answer["code"] == "invalid_model"
    assert "open/a" in answer["error"]
    assert fine["status"] == "accepted"
    assert recorded(system, SpawnAccepted)[0].model == "open/b"


@pytest.mark.clause("SPAWN-2")
def test_only_allowed_agents_are_started_and_the_refusal_lists_them(booth: Booth) -> None:
    config = {
        "agents": {
            "list": [{"id": "main", "subagents": {"allowAgents": ["ops"]}}, {"id": "ops"}, {"id": "hr"}]
        }
    }
    system, _ = with_route(booth, config)

    allowed = spawn(system, agentId="ops")
    refused = spawn(system, agentId="hr")
    own = spawn(system, "agent:ops:main", agentId="main")
    listed = system.tools(MAIN).call("agents_list")

    assert allowed["childSessionKey"].startswith("agent:ops:subagent:")
    assert (refused["status"], refused["code"]) == ("forbidden", "agent_not_allowed")
    assert "main, ops" in refused["error"]
    assert own["code"] == "agent_not_allowed"
    assert listed["requester"] == "main"
    assert [agent["id"] for agent in listed["agents"]] == ["main", "ops"]


@pytest.mark.clause("POL-3")
@pytest.mark.parametrize(
    ("policy", "asked", "denied"),
    [
        ({"default": "deny"}, {}, True),
        ({"rules": [{"action": "deny", "match": {}}]}, {}, True),
        ({"rules": [{"action": "deny", "match": {"keyPrefix": "subagent:"}}]}, {}, True),
        ({"rules": [{"action": "deny", "match": {"rawKeyPrefix": "agent:ops:"}}]}, {"agentId": "ops"}, True),
        # The child has no channel yet: a rule for the requester's channel neither allows nor denies it.
        ({"default": "deny", "rules": [{"action": "allow", "match": {"channel": "telegram"}}]}, {}, True),
        ({"rules": [{"action": "deny", "match": {"channel": "telegram"}}]}, {}, False),
        ({"rules": [{"action": "deny", "match": {"rawKeyPrefix": "agent:main:telegram:"}}]}, {}, False),
        (
            {"default": "deny", "rules": [{"action": "allow", "match": {"keyPrefix": "subagent:"}}]},
            {},
            False,
        ),
    ],
)
def test_the_send_policy_is_asked_for_the_child(
    booth: Booth, policy: dict[str, Any], asked: dict[str, Any], denied: bool
) -> None:
    allowing = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
    system, _ = with_route(booth, allowing, {"session": {"sendPolicy": policy}})

    answer = spawn(system, **asked)

    if denied:
        assert (answer["status"], answer["code"]) == ("error", "policy_denied")
        assert "session.sendPolicy" in answer["error"]
    else:
        assert answer["status"] == "accepted"
    assert len(recorded(system, SpawnAccepted)) == (0 if denied else 1)


@pytest.mark.clause("SPAWN-3", "SPAWN-7")
def test_a_sub_agent_has_no_session_tools_and_can_not_spawn(booth: Booth) -> None:
    seen: dict[str, Any] = {}

    def curious(turn: Turn) -> str | Reply:
        if ":subagent:" in turn.session_key and turn.step == "message":
            seen["schemas"] = turn.tools.schemas("openai")
            seen["spawn"] = turn.tools.call("sessions_spawn", {"task": "more"})
            seen["list"] = turn.tools.call("sessions_list", {})
        return worker(turn)

    allowing = {"tools": {"subagents": {"tools": {"alsoAllow": ["sessions_list", "sessions_spawn"]}}}}
    system, _ = with_route(booth, allowing, agent=curious)
    closed_spawn(system, spawn(system)["runId"])
    child = recorded(system, SpawnAccepted)[0].child
    outside = system.tools(child).call("sessions_spawn", {"task": "more"})

    assert [schema["function"]["name"] for schema in seen["schemas"]] == ["sessions_list"]
    assert seen["list"]["count"] >= 1
    assert seen["spawn"]["status"] in {"error", "forbidden"}
    assert outside["status"] in {"error", "forbidden"}
    assert len(recorded(system, SpawnAccepted)) == 1


@pytest.mark.clause("SPAWN-7")
def test_without_settings_a_sub_agent_has_none_of_the_session_tools(booth: Booth) -> None:
    names: list[Any] = []

    def curious(turn: Turn) -> str | Reply:
        if ":subagent:" in turn.session_key:
            names.extend(turn.tools.schemas("openai"))
        return worker(turn)

    system, _ = with_route(booth, agent=curious)
    closed_spawn(system, spawn(system)["runId"])

    assert names == []


@pytest.mark.clause("SPAWN-3")
def test_at_most_so_many_children_run_at_once(booth: Booth) -> None:
    gate = Gate()
    system, telegram = with_route(
        booth,
        {"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 2}}}},
        agent=gate.before(worker, "message"),
    )
    first = spawn(system)
    spawn(system)

    refused = spawn(system)
    gate.open()
    closed_spawn(system, first["runId"])
    telegram.wait_for(2, timeout=WAIT)

    assert (refused["status"], refused["code"]) == ("forbidden", "spawn_limit")
    assert "maxChildrenPerAgent" in refused["error"]
    assert spawn(system)["status"] == "accepted"


@pytest.mark.clause("SPAWN-8")
def test_the_run_timeout_counts_from_the_start_of_the_run(booth: Booth) -> None:
    gate = Gate()
    clock = ManualClock()
    system, telegram = with_route(booth, agent=gate.saying("too late"), clock=clock)
    answer = spawn(system, runTimeoutSeconds=30)
    turn = gate.reached()
    started = wait_for(system, RunStarted, lambda event: event.run_id == answer["runId"])
    assert turn.deadline == started.deadline_ms == clock.now_ms() + 30_000

    pass_time(system, clock, 30_000)
    events = closed_spawn(system, answer["runId"])
    gate.open()

    assert one(events, ChildEnded).status == "timeout"
    (out,) = telegram.delivered
    assert out.text.startswith("Status: timeout\nResult: (no output)\nNotes: timeout")
    assert system.gateway.call("agent.wait", {"runId": answer["runId"]})["status"] == "timeout"


@pytest.mark.clause("SPAWN-8")
def test_what_a_run_waited_before_it_started_is_not_of_its_time(booth: Booth) -> None:
    """Its agent comes long after the spawn was accepted; a second before its time is over, it still runs."""
    gate, clock = Gate(), ManualClock()
    system = booth.start({"main": worker}, clock=clock)
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "here"})
    allowed = {
        "agents": {
            "list": [{"id": "main", "default": True, "subagents": {"allowAgents": ["late"]}}, {"id": "late"}]
        }
    }
    system.close()
    system = booth.start({"main": worker}, None, allowed, clock=clock)
    answer = spawn(system, agentId="late", runTimeoutSeconds=30)
    accepted = clock.now_ms()
    pass_time(system, clock, 10 * MINUTE)
    system.register_agent("late", gate.saying("too late"))

    turn = gate.reached()
    assert turn.deadline == accepted + 10 * MINUTE + 30_000
    pass_time(system, clock, 29_999)
    assert (
        system.gateway.call("agent.wait", {"runId": answer["runId"], "timeoutMs": 0})["status"] == "timeout"
    )
    assert recorded(system, ChildEnded) == []
    pass_time(system, clock, 1)
    events = closed_spawn(system, answer["runId"])
    gate.open()

    assert one(events, ChildEnded).status == "timeout"
    (ended,) = [event for event in recorded(system, RunFailed) if event.run_id == answer["runId"]]
    assert ended.code == "timeout"


@pytest.mark.clause("SPAWN-9", "SPAWN-10")
def test_the_announce_is_posted_to_the_requesters_route(booth: Booth) -> None:
    system, telegram = with_route(booth)

    events = closed_spawn(system, spawn(system)["runId"])

    accepted = one(events, SpawnAccepted)
    assert one(events, SpawnClosed).reason == "announced"
    (out,) = telegram.delivered
    lines = out.text.split("\n")
    assert out.to == "42"
    assert lines == ["Status: success", "Result: It is done.", "Notes: (none)"]
    stats = one(events, AnnounceDecided).stats
    assert stats is not None
    assert accepted.child in stats
    assert accepted.child_session_id in stats


@pytest.mark.clause("SPAWN-9")
def test_the_announce_word_keeps_it_silent(booth: Booth) -> None:
    def silent(turn: Turn) -> str | Reply:
        return Reply.skip() if turn.step == "announce" else worker(turn)

    system, telegram = with_route(booth, agent=silent)

    events = closed_spawn(system, spawn(system)["runId"])

    assert one(events, SpawnClosed).reason == "silent"
    assert telegram.delivered == ()


@pytest.mark.clause("SPAWN-9", "PROV-2")
@pytest.mark.parametrize("opened", [True, False])
def test_without_a_route_the_result_is_a_message_to_the_requester_once(booth: Booth, *, opened: bool) -> None:
    system = booth.start({"main": worker})
    if opened:
        system.gateway.call("sessions.patch", {"key": MAIN, "label": "no route"})

    answer = spawn(system)
    events = closed_spawn(system, answer["runId"])

    handed = one(events, ResultHanded)
    assert one(events, SpawnClosed).reason == "handed_over"
    reply = system.gateway.call("agent.wait", {"runId": handed.run_id})["reply"]
    assert reply.startswith("read Status: success")
    history = system.tools(MAIN).call("sessions_history", {"sessionKey": MAIN})
    (message, _answer) = history["messages"]
    assert message["provenance"]["kind"] == "inter_session"
    assert message["provenance"]["sourceTool"] == "sessions_spawn"
    assert message["provenance"]["sourceSessionKey"] == answer["childSessionKey"]


@pytest.mark.clause("SPAWN-9", "LOOP-7")
@pytest.mark.parametrize(("configured", "limit_ms"), [({}, 600_000), ({"timeoutSeconds": 900}, 900_000)])
def test_the_run_on_a_result_has_the_time_of_a_run_and_the_announce_that_of_a_turn(
    booth: Booth, configured: dict[str, Any], limit_ms: int
) -> None:
    """Before: the requester had the 60 seconds of a turn to work on the result."""
    system = booth.start({"main": worker}, {}, {"agents": {"defaults": configured}})

    handed = one(closed_spawn(system, spawn(system)["runId"]), ResultHanded)
    system.gateway.call("agent.wait", {"runId": handed.run_id})

    runs = recorded(system, RunQueued)
    assert next(run for run in runs if run.run_id == handed.run_id).timeout_ms == limit_ms
    assert next(run for run in runs if run.step == "announce").timeout_ms == 60_000


@pytest.mark.clause("SPAWN-9")
def test_a_spawn_of_the_operator_has_nobody_to_tell(booth: Booth) -> None:
    system = booth.start({"main": worker})

    events = closed_spawn(system, spawn(system, None)["runId"])

    assert one(events, SpawnClosed).reason == "no_route"
    text = one(events, AnnounceDecided).text
    assert text is not None
    assert "It is done." in text


@pytest.mark.clause("SPAWN-10")
def test_a_child_that_broke_is_announced_with_its_error(booth: Booth) -> None:
    def broken(turn: Turn) -> str:
        raise ValueError(f"no {turn.message}")

    system, telegram = with_route(booth, agent=broken)

    events = closed_spawn(system, spawn(system)["runId"])

    assert one(events, ChildEnded).status == "error"
    (out,) = telegram.delivered
    assert (
        out.text
        == "Status: error\nResult: (no output)\nNotes: the sub-agent failed; the operator can see why"
    )
    assert one(events, ChildEnded).error == "backend: ValueError: no count"
    assert [event.step for event in recorded(system, RunQueued)] == ["message"], "it is not asked again"


@pytest.mark.clause("SPAWN-10")
def test_an_announce_has_its_details_where_the_operator_wants_them_shown(booth: Booth) -> None:
    """Before: the announce of a sub-agent put paths into people's chats."""

    def broken(turn: Turn) -> str:
        raise ValueError(f"no {turn.message}")

    shown: dict[str, Any] = {"agents": {"defaults": {"subagents": {"announceDetails": True}}}}
    system, telegram = with_route(booth, shown, agent=broken)

    accepted = one(closed_spawn(system, spawn(system)["runId"]), SpawnAccepted)

    (out,) = telegram.delivered
    assert out.text.startswith(
        "Status: error\nResult: (no output)\nNotes: backend: ValueError: no count\nStats: "
    )
    assert accepted.child_session_id in out.text


@pytest.mark.clause("SPAWN-10")
def test_an_empty_reply_is_stood_in_for_by_the_last_tool_result(booth: Booth) -> None:
    def handy(turn: Turn) -> str | None:
        if turn.step == "message":
            call = turn.record_call("shell", {"command": "ls | wc -l"})
            turn.record_result(call, "shell", "17 files")
        return None

    system, telegram = with_route(booth, agent=handy)

    closed_spawn(system, spawn(system)["runId"])

    (out,) = telegram.delivered
    assert "Result: 17 files" in out.text


@pytest.mark.clause("SPAWN-11", "HIST-7")
def test_cleanup_delete_archives_when_the_announce_is_final(booth: Booth) -> None:
    system, _ = with_route(booth)

    answer = spawn(system, cleanup="delete")
    child = answer["childSessionKey"]
    closed_spawn(system, answer["runId"])
    wait_for(system, ChildArchived)

    order = [item.topic for item in system.log.all()]
    assert order.index("spawn_closed.1") < order.index("session_archived.1")
    archived = recorded(system, SessionArchived)[0]
    assert archived.reason == "cleanup"
    keys = [row["key"] for row in system.tools().call("sessions_list")["sessions"]]
    assert child not in keys
    by_key = system.tools(MAIN).call("sessions_history", {"sessionKey": child})
    by_id = system.tools(MAIN).call("sessions_history", {"sessionKey": archived.session_id})
    sent = system.tools(MAIN).call("sessions_send", {"sessionKey": archived.session_id, "message": "x"})
    assert by_key["code"] == "not_visible"
    assert ("assistant", "did count") in texts(by_id)
    assert sent["status"] == "error"


@pytest.mark.clause("SPAWN-11")
def test_a_kept_child_is_archived_some_time_after_its_run(booth: Booth) -> None:
    clock = ManualClock()
    system, _ = with_route(
        booth, {"agents": {"defaults": {"subagents": {"archiveAfterMinutes": 10}}}}, clock=clock
    )
    answer = spawn(system)
    closed_spawn(system, answer["runId"])

    pass_time(system, clock, 10 * MINUTE - 1)
    there = system.tools(MAIN).call("sessions_history", {"sessionKey": answer["childSessionKey"]})
    pass_time(system, clock, 1)
    archived = wait_for(system, ChildArchived)

    assert ("assistant", "did count") in texts(there)
    assert archived.reason == "expired"


@pytest.mark.clause("SPAWN-11", "P9")
def test_an_archiving_that_was_missed_while_down_is_done_at_start(booth: Booth) -> None:
    clock = ManualClock()
    system, _ = with_route(booth, clock=clock)
    answer = spawn(system)
    closed_spawn(system, answer["runId"])
    system.close()

    clock.advance(60 * MINUTE)
    again, _ = with_route(booth, clock=clock)

    assert wait_for(again, ChildArchived).child == answer["childSessionKey"]


@pytest.mark.clause("SPAWN-11")
def test_a_child_with_work_to_do_is_left_alone(booth: Booth) -> None:
    clock, gate = ManualClock(), Gate()

    def slow(turn: Turn) -> str | Reply:
        if turn.message == "more":
            gate.stop(turn)
        return worker(turn)

    system, _ = with_route(booth, agent=slow, clock=clock)
    answer = spawn(system)
    child = answer["childSessionKey"]
    closed_spawn(system, answer["runId"])
    system.gateway.call(
        "agent", {"sessionKey": child, "message": "more", "idempotencyKey": "k", "timeout": 0}
    )
    gate.reached()

    pass_time(system, clock, 61 * MINUTE)
    still = system.tools().call("sessions_send", {"sessionKey": child, "message": "x", "timeoutSeconds": 0})
    gate.open()
    system.gateway.call("agent.wait", {"runId": still["runId"]})
    assert recorded(system, ChildArchived) == []

    assert pass_time_until(system, clock, MINUTE, ChildArchived).child == child


@pytest.mark.clause("SPAWN-6", "SEND-11")
def test_the_same_key_is_the_same_child(booth: Booth) -> None:
    system, _ = with_route(booth)

    answers = [spawn(system, idempotencyKey="k") for _ in range(3)]
    other = spawn(system, idempotencyKey="k", task="something else")

    assert answers[0] == answers[1] == answers[2]
    assert other["code"] == "idempotency_conflict"
    assert len(recorded(system, SpawnAccepted)) == 1


@pytest.mark.clause("SPAWN-5")
def test_a_sandboxed_session_starts_only_sandboxed_children(booth: Booth) -> None:
    config = {
        "agents": {
            "list": [
                {"id": "main", "sandbox": {"mode": "all"}, "subagents": {"allowAgents": ["*"]}},
                {"id": "ops"},
            ]
        }
    }
    system, _ = with_route(booth, config)

    inside = spawn(system)
    outside = spawn(system, agentId="ops")

    assert inside["status"] == "accepted"
    assert (outside["status"], outside["code"]) == ("forbidden", "sandbox_inherit")
    opened = next(
        event for event in recorded(system, SessionOpened) if event.key == inside["childSessionKey"]
    )
    assert opened.sandboxed


@pytest.mark.clause("VIS-2")
def test_a_requester_sees_its_tree_and_nobody_elses(booth: Booth) -> None:
    system, _ = with_route(booth, {"tools": {"sessions": {"visibility": "tree"}}})
    answer = spawn(system)
    closed_spawn(system, answer["runId"])

    mine = system.tools(MAIN).call("sessions_history", {"sessionKey": answer["childSessionKey"]})
    theirs = system.tools("agent:main:notes").call(
        "sessions_history", {"sessionKey": answer["childSessionKey"]}
    )

    assert ("user", "count") in texts(mine)
    assert theirs["code"] == "not_visible"
