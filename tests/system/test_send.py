"""`sessions_send`: a message goes to another session, and, if asked to, its reply comes back."""

import gc
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import MemoryChannel, Reply, Turn
from intersession_actors.outside.agents.turn import ToolBox
from intersession_events.facts import (
    ExchangeAccepted,
    ExchangeClosed,
    LateReplyDropped,
    LoopEnded,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionOpened,
    TurnEnded,
)
from intersession_events.log.sql import Question, Row
from intersession_events.stores.portable.read_views import ReadViews
from intersession_projections.views.run_outcomes.runs import KeyUse, Runs
from support.run_context import context_of
from support.running import (
    QUIET,
    WAIT,
    Booth,
    Gate,
    all_said,
    closed_exchange,
    exchange_of,
    one,
    recorded,
    texts,
    wait_for,
)

MAIN, OPS = "agent:main:main", "agent:ops:main"


def quiet(turn: Turn) -> str | Reply:
    return f"heard {turn.message}" if turn.step == "message" else Reply.skip()


AGENTS = {"main": quiet, "ops": quiet}


@pytest.mark.clause("SEND-5", "SEND-2")
def test_a_send_waits_for_the_reply_and_opens_the_main_session_of_a_configured_agent(booth: Booth) -> None:
    system = booth.start(AGENTS)

    answer = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "status?"})

    assert answer == {
        "runId": answer["runId"],
        "status": "ok",
        "reply": "heard status?",
        "sessionKey": OPS,
        "delivery": {"status": "none"},
    }
    (opened,) = [event for event in recorded(system, SessionOpened) if event.key == OPS]
    assert opened.opened_by == "send"


@pytest.mark.clause("SEND-1")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"message": "x"}, "sessionKey"),
        ({"message": "x", "sessionKey": OPS, "label": "ops"}, "sessionKey"),
        ({"message": "x", "sessionKey": OPS, "agentId": "ops"}, "sessionKey"),
        ({"sessionKey": OPS}, "message"),
        ({"message": " \n\t", "sessionKey": OPS}, "message"),
        ({"message": "x", "sessionKey": OPS, "timeoutSeconds": -1}, "timeoutSeconds"),
        ({"message": "x", "sessionKey": OPS, "timeoutSeconds": 86_401}, "timeoutSeconds"),
        ({"message": "x", "sessionKey": OPS, "timeoutSeconds": "30"}, "timeoutSeconds"),
        ({"message": "x", "sessionKey": OPS, "timeoutSeconds": float("nan")}, "timeoutSeconds"),
        ({"message": "x", "sessionKey": OPS, "provenance": {"kind": "external_user"}}, "provenance"),
        ({"message": "\ud800", "sessionKey": OPS}, "message"),
    ],
)
def test_a_bad_argument_is_refused_by_name_and_nothing_is_left_behind(
    booth: Booth, arguments: dict[str, Any], field: str
) -> None:
    system = booth.start(AGENTS)

    answer = system.tools(MAIN).call("sessions_send", arguments)

    assert (answer["status"], answer["code"]) == ("error", "invalid_request")
    assert field in answer["error"]
    assert "runId" not in answer
    assert all_said(system) == []


@pytest.mark.clause("SEND-1")
def test_an_agent_id_alone_means_that_agents_main_session(booth: Booth) -> None:
    system = booth.start(AGENTS)

    answer = system.tools(MAIN).call("sessions_send", {"agentId": "ops", "message": "status?"})

    assert (answer["status"], answer["sessionKey"]) == ("ok", OPS)


@pytest.mark.clause("SEND-1")
def test_a_label_names_a_session_as_long_as_only_one_has_it(booth: Booth) -> None:
    system = booth.start({**AGENTS, "hr": quiet}, None, QUIET)
    rooms = ["agent:main:telegram:group:1", "agent:ops:telegram:group:2"]
    system.gateway.call("sessions.patch", {"key": rooms[0], "label": "war room"})

    def send(**named: str) -> Any:
        return system.tools("agent:hr:main").call("sessions_send", {**named, "message": "status?"})

    found = send(label="war room")
    system.gateway.call("sessions.patch", {"key": rooms[1], "label": "war room"})
    ambiguous = send(label="war room")
    of_one_agent = send(label="war room", agentId="ops")
    unknown = send(label="nobody")

    assert (found["status"], found["sessionKey"]) == ("ok", rooms[0])
    assert ambiguous["code"] == "ambiguous_label"
    assert all(room in ambiguous["error"] for room in rooms)
    assert (of_one_agent["status"], of_one_agent["sessionKey"]) == ("ok", rooms[1])
    assert unknown["code"] == "not_visible"


@pytest.mark.clause("SEND-2", "HIST-6")
def test_an_unknown_key_of_ones_own_agent_is_not_visible(booth: Booth) -> None:
    system = booth.start(AGENTS)

    answer = system.tools(MAIN).call("sessions_send", {"sessionKey": "agent:main:notes", "message": "x"})

    assert answer == {
        "status": "error",
        "code": "not_visible",
        "error": "session not visible: agent:main:notes",
    }
    assert recorded(system, SessionOpened) == []


@pytest.mark.clause("SEND-12", "HIST-6")
def test_a_closed_agents_key_is_forbidden_and_names_both_settings(booth: Booth) -> None:
    closed = {"tools": {"sessions": {"visibility": "tree"}, "agentToAgent": {"enabled": False}}}
    system = booth.start(AGENTS, None, closed)
    system.tools().call("sessions_send", {"sessionKey": OPS, "message": "exists"})

    there = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "x"})
    absent = system.tools(MAIN).call("sessions_send", {"sessionKey": "agent:ops:nothing", "message": "x"})

    assert (there["status"], there["code"]) == ("forbidden", "forbidden")
    assert "tools.sessions.visibility" in there["error"]
    assert "tools.agentToAgent.enabled" in there["error"]
    assert absent == there


@pytest.mark.clause("SEND-2")
def test_a_session_cannot_send_to_itself(booth: Booth) -> None:
    system = booth.start(AGENTS)
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", wait=WAIT)

    for named in ({"sessionKey": "main"}, {"sessionKey": MAIN}, {"agentId": "main"}):
        answer = system.tools(MAIN).call("sessions_send", {**named, "message": "x"})
        assert answer["code"] == "self_send"


@pytest.mark.clause("SEND-2", "KEY-5")
def test_every_key_and_id_that_the_list_shows_is_accepted(booth: Booth) -> None:
    system = booth.start(AGENTS, None, QUIET)
    chats: list[dict[str, Any]] = [
        {"chat_id": "42", "chat_type": "direct"},
        {"chat_id": "-100", "chat_type": "group"},
        {"chat_id": "-100", "chat_type": "group", "thread": "7"},
        {"chat_id": "general", "chat_type": "channel"},
    ]
    for chat in chats:
        accepted = system.inbound(channel="telegram", text="hi", sender="p", wait=WAIT, **chat)
        assert accepted["status"] == "ok"
    rows = system.tools(OPS).call("sessions_list")["sessions"]
    assert len(rows) == len(chats)

    for row in rows:
        for name in (row["key"], row["sessionId"]):
            answer = system.tools(OPS).call("sessions_send", {"sessionKey": name, "message": "x"})
            assert (answer["status"], answer["sessionKey"]) == ("ok", row["key"])


@pytest.mark.clause("SEND-3", "PROV-2")
def test_accepting_is_one_append_of_message_run_and_exchange(booth: Booth) -> None:
    system = booth.start(AGENTS)

    answer = system.tools(MAIN).call(
        "sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0}
    )

    accepted = recorded(system, ExchangeAccepted)[0]
    queued = recorded(system, RunQueued)[0]
    message = all_said(system)[0]
    assert queued.run_id == answer["runId"] == accepted.run_id
    assert queued.message_id == message.message.id == accepted.message_id
    topics = [item.topic for item in system.log.all()]
    at = topics.index("run_queued.1")
    assert topics[at - 2 : at + 1] == [
        "exchange_accepted.1",
        "session_opened.1",
        "run_queued.1",
    ]


@pytest.mark.clause("SEND-4")
def test_fire_and_forget_answers_before_the_run_starts(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("done")
    system = booth.start({"main": quiet, "ops": slow}, None, QUIET)

    answer = system.tools(MAIN).call(
        "sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0}
    )

    assert answer == {
        "runId": answer["runId"],
        "status": "accepted",
        "sessionKey": OPS,
        "delivery": {"status": "none"},
    }
    gate.reached()
    gate.open()
    assert system.gateway.call("agent.wait", {"runId": answer["runId"]})["reply"] == "done"


@pytest.mark.clause("SEND-5", "LOOP-6")
@pytest.mark.parametrize("said", ["REPLY_SKIP", " REPLY_SKIP\n", "NO_REPLY", "", None])
def test_no_visible_text_is_no_reply_no_loop_and_no_announce(booth: Booth, said: str | None) -> None:
    system = booth.start({"main": quiet, "ops": lambda _turn: said})

    answer = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "x"})

    assert (answer["status"], answer["reply"], answer["noReply"]) == ("ok", "", True)
    events = closed_exchange(system, answer["runId"])
    assert [type(event) for event in events] == [ExchangeAccepted, TurnEnded, ExchangeClosed]
    assert one(events, ExchangeClosed).reason == "no_reply"


@pytest.mark.clause("SEND-5")
def test_the_reply_is_the_runs_own_text_under_many_sends_to_one_target(booth: Booth) -> None:
    system = booth.start({"main": quiet, "ops": quiet}, None, QUIET)

    def send(number: int) -> tuple[int, Any]:
        tools = system.tools(f"agent:main:telegram:group:{number % 6}")
        return number, tools.call("sessions_send", {"sessionKey": OPS, "message": f"question {number}"})

    with ThreadPoolExecutor(18) as pool:
        answers = list(pool.map(send, range(18)))

    assert [answer["reply"] for _, answer in answers] == [f"heard question {number}" for number, _ in answers]
    assert len({answer["runId"] for _, answer in answers}) == 18


@pytest.mark.clause("SEND-6", "SEND-9")
def test_a_late_reply_still_loops_and_announces(booth: Booth) -> None:
    gate = Gate()

    def slow(turn: Turn) -> str | Reply:
        if turn.step == "message":
            gate.stop(turn)
            return "at last"
        return "all is well" if turn.step == "announce" else Reply.skip()

    def asker(turn: Turn) -> str:
        return f"thanks for {turn.message}"

    telegram = MemoryChannel()
    system = booth.start({"main": asker, "ops": slow}, {"telegram": telegram})
    system.inbound(
        channel="telegram",
        chat_id="-5",
        text="hi",
        sender="p",
        chat_type="group",
        agent_id="ops",
        deliver=False,
    )
    room = "agent:ops:telegram:group:-5"

    answer = system.tools(MAIN).call(
        "sessions_send", {"sessionKey": room, "message": "x", "timeoutSeconds": 0.05}
    )

    assert set(answer) == {"runId", "status", "error", "sessionKey", "delivered", "delivery"}
    assert (answer["status"], answer["delivered"], answer["sessionKey"]) == ("timeout", True, room)
    assert "0.05 s" in answer["error"]
    gate.open()
    assert system.gateway.call("agent.wait", {"runId": answer["runId"]})["reply"] == "at last"
    events = closed_exchange(system, answer["runId"])
    turns = [(event.speaker, event.text) for event in events if isinstance(event, TurnEnded) and event.turn]
    assert turns == [(MAIN, "thanks for at last"), (room, "REPLY_SKIP")]
    assert one(events, LoopEnded).reason == "reply_skip"
    assert one(events, ExchangeClosed).reason == "announced"
    assert [out.text for out in telegram.delivered] == ["all is well"]


@pytest.mark.clause("SEND-9", "GATE-3")
def test_any_number_of_waiters_get_the_same_answer(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("done")
    system = booth.start({"main": quiet, "ops": slow}, None, QUIET)
    run_id = system.tools(MAIN).call(
        "sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0}
    )["runId"]
    gate.reached()

    def wait(_number: int) -> Any:
        return system.gateway.call("agent.wait", {"runId": run_id})

    with ThreadPoolExecutor(4) as pool:
        waiting = pool.map(wait, range(4))
        gate.open()
        during = list(waiting)

    after = wait(0)
    assert during == [after] * 4
    assert (after["status"], after["reply"]) == ("ok", "done")


@pytest.mark.clause("SEND-7")
def test_a_failed_run_is_an_error_with_its_run_id(booth: Booth) -> None:
    def broken(_turn: Turn) -> str:
        raise ValueError("no disk")

    system = booth.start({"main": quiet, "ops": broken})

    answer = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "x"})

    assert answer == {
        "runId": answer["runId"],
        "status": "error",
        "error": "backend: ValueError: no disk",
        "sessionKey": OPS,
    }
    assert one(closed_exchange(system, answer["runId"]), ExchangeClosed).reason == "run_failed"
    assert system.gateway.call("agent.wait", {"runId": answer["runId"]})["status"] == "error"


@pytest.mark.clause("SEND-8")
def test_delivery_is_pending_only_where_there_is_a_route(booth: Booth) -> None:
    system = booth.start(AGENTS, {"telegram": MemoryChannel()})
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", agent_id="ops", wait=WAIT)
    system.gateway.call(
        "sessions.patch", {"key": "agent:ops:discord:group:9", "label": "a group nobody has spoken in"}
    )

    def delivery(key: str) -> Any:
        answer = system.tools(MAIN).call(
            "sessions_send", {"sessionKey": key, "message": "x", "timeoutSeconds": 0}
        )
        result: Any = answer["delivery"]
        return result

    assert delivery(OPS) == {"status": "pending", "mode": "announce"}
    assert delivery("agent:ops:discord:group:9") == {"status": "pending", "mode": "announce"}
    system.gateway.call("sessions.patch", {"key": "agent:ops:notes", "label": "no way out"})
    assert delivery("agent:ops:notes") == {"status": "none"}


@pytest.mark.clause("SEND-10")
def test_one_session_runs_one_run_at_a_time_in_arrival_order(booth: Booth) -> None:
    gate = Gate()
    order: list[str] = []

    def slow(turn: Turn) -> str:
        if not order:
            gate.stop(turn)
        order.append(turn.message)
        return turn.message

    system = booth.start({"main": quiet, "ops": slow}, None, QUIET)
    tools = system.tools(MAIN)
    runs = [
        tools.call("sessions_send", {"sessionKey": OPS, "message": str(number), "timeoutSeconds": 0})["runId"]
        for number in range(8)
    ]
    gate.reached()
    assert recorded(system, RunStarted)[0].run_id == runs[0]
    assert len(recorded(system, RunStarted)) == 1

    gate.open()
    for run_id in runs:
        assert system.gateway.call("agent.wait", {"runId": run_id})["status"] == "ok"
    assert order == [str(number) for number in range(8)]
    assert [event.run_id for event in recorded(system, RunCompleted)] == runs


@pytest.mark.clause("SEND-10")
def test_different_sessions_run_side_by_side_also_when_nested(booth: Booth) -> None:
    def relay(to: str) -> Any:
        def agent(turn: Turn) -> str:
            answer = turn.tools.call("sessions_send", {"sessionKey": to, "message": turn.message})
            return f"{turn.agent_id} < {answer['reply']}"

        return agent

    system = booth.start(
        {"a": relay("agent:b:main"), "b": relay("agent:c:main"), "c": lambda turn: turn.message}, None, QUIET
    )

    answer = system.tools().call("sessions_send", {"sessionKey": "agent:a:main", "message": "deep"})

    assert answer["reply"] == "a < b < deep"


@pytest.mark.clause("SEND-10")
def test_a_cycle_of_waits_is_refused_naming_the_path_and_fire_and_forget_is_not(booth: Booth) -> None:
    seen: dict[str, Any] = {}

    def first(turn: Turn) -> str:
        if turn.message != "begin":
            return "not blocked"
        return str(
            turn.tools.call("sessions_send", {"sessionKey": "agent:b:main", "message": "go on"})["reply"]
        )

    def second(turn: Turn) -> str:
        back = {"sessionKey": "agent:a:main", "message": "and you?"}
        seen["waiting"] = turn.tools.call("sessions_send", back)
        seen["forgetting"] = turn.tools.call("sessions_send", {**back, "timeoutSeconds": 0})
        return "done"

    system = booth.start({"a": first, "b": second}, None, QUIET)

    answer = system.tools().call("sessions_send", {"sessionKey": "agent:a:main", "message": "begin"})

    assert answer["reply"] == "done"
    assert seen["waiting"]["code"] == "cycle"
    assert "agent:a:main -> agent:b:main -> agent:a:main" in seen["waiting"]["error"]
    assert seen["forgetting"]["status"] == "accepted"
    assert system.gateway.call("agent.wait", {"runId": seen["forgetting"]["runId"]})["reply"] == "not blocked"


@pytest.mark.clause("SEND-10", "L4")
def test_two_sessions_that_turn_to_each_other_at_the_same_moment_do_not_wait_for_ever(booth: Booth) -> None:
    together = threading.Barrier(2)

    def turns_to(key: str) -> Any:
        def agent(turn: Turn) -> str:
            if turn.message != "begin":
                return "here"
            together.wait(WAIT)
            answer = turn.tools.call("sessions_send", {"sessionKey": key, "message": "are you there?"})
            return str(answer.get("code", answer["status"]))

        return agent

    system = booth.start({"a": turns_to("agent:b:main"), "b": turns_to("agent:a:main")}, None, QUIET)
    with ThreadPoolExecutor(2) as pool:
        sent = [
            pool.submit(
                system.tools().call, "sessions_send", {"sessionKey": f"agent:{name}:main", "message": "begin"}
            )
            for name in "ab"
        ]
        answers = [future.result(WAIT)["reply"] for future in sent]

    assert sorted(answers) == ["cycle", "ok"]


@pytest.mark.clause("SEND-10", "L3")
def test_a_run_that_was_stopped_waits_for_nobody_any_more(booth: Booth) -> None:
    gate = Gate()
    answers: list[Any] = []

    def first(turn: Turn) -> str:
        if turn.message != "begin":
            return "free again"
        patiently = {"sessionKey": "agent:b:main", "message": "take your time", "timeoutSeconds": 86_400}
        answers.append(turn.tools.call("sessions_send", patiently))
        return "never said"

    def second(turn: Turn) -> str:
        gate.stop(turn)
        back = {"sessionKey": "agent:a:main", "message": "still there?"}
        return str(turn.tools.call("sessions_send", back).get("reply", "refused"))

    system = booth.start({"a": first, "b": second}, None, QUIET)
    waiting = system.tools().call(
        "sessions_send", {"sessionKey": "agent:a:main", "message": "begin", "timeoutSeconds": 0}
    )
    asked = gate.reached()

    assert system.abort(waiting["runId"])
    gate.open()

    assert system.gateway.call("agent.wait", {"runId": asked.run_id})["reply"] == "free again"
    wait_for(system, LateReplyDropped)
    assert answers[0]["status"] in {"timeout", "ok"}, "its thread did not have to wait for a day"


@pytest.mark.clause("SEND-11", "O4")
def test_a_key_is_one_run_for_ever_also_after_a_restart(booth: Booth) -> None:
    request = {"sessionKey": OPS, "message": "pay", "idempotencyKey": "k1"}
    first = booth.start(AGENTS, None, QUIET)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: first.tools(MAIN).call("sessions_send", request), range(8)))
    first.close()
    second = booth.start(AGENTS, None, QUIET)
    answers.append(second.tools(MAIN).call("sessions_send", request))
    other = second.tools(MAIN).call("sessions_send", {**request, "message": "pay twice"})
    theirs = second.tools("agent:main:telegram:group:1").call("sessions_send", request)

    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["reply"] == "heard pay"
    assert other["code"] == "idempotency_conflict"
    assert theirs["runId"] != answers[0]["runId"]
    assert len(recorded(second, RunQueued)) == 2
    assert second.gateway.call("agent.wait", {"runId": "k1"})["runId"] == answers[0]["runId"]


@pytest.mark.clause("SEND-11")
def test_without_a_key_the_same_words_are_another_message(booth: Booth) -> None:
    system = booth.start(AGENTS, None, QUIET)
    request = {"sessionKey": OPS, "message": "pay"}

    first, second = (system.tools(MAIN).call("sessions_send", request) for _ in range(2))

    assert first["reply"] == second["reply"] == "heard pay"
    assert first["runId"] != second["runId"]
    assert len(recorded(system, RunQueued)) == 2


@pytest.mark.clause("SEND-11")
def test_a_key_that_races_with_itself_over_two_messages_lets_one_win(booth: Booth) -> None:
    system = booth.start(AGENTS, None, QUIET)
    requests = [{"sessionKey": OPS, "message": f"pay {n}", "idempotencyKey": "k1"} for n in range(6)]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda request: system.tools(MAIN).call("sessions_send", request), requests))

    assert sorted(answer["status"] for answer in answers) == ["error"] * 5 + ["ok"]
    assert {answer["code"] for answer in answers if answer["status"] == "error"} == {"idempotency_conflict"}
    assert len(recorded(system, RunQueued)) == 1


@pytest.mark.clause("SEND-11")
def test_another_message_under_the_key_is_seen_though_it_comes_between(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once in 300 runs the test above had two winners: the door looked for the key, and then for the run, and found that."""
    system = booth.start(AGENTS, None, QUIET)
    look = Runs.by_idempotency_key

    def send(text: str) -> Any:
        given = {"sessionKey": OPS, "message": text, "idempotencyKey": "k1"}
        return system.tools(MAIN).call("sessions_send", given)

    def slow(self: Runs, caller: str, key: str) -> KeyUse | None:
        found = look(self, caller, key)
        monkeypatch.setattr(Runs, "by_idempotency_key", look)
        assert send("pay one")["status"] == "ok"
        return found

    monkeypatch.setattr(Runs, "by_idempotency_key", slow)

    assert send("pay two")["code"] == "idempotency_conflict"
    assert len(recorded(system, RunQueued)) == 1


@pytest.mark.clause("SEND-12", "POL-3")
def test_a_send_that_the_policy_forbids_names_the_rule(booth: Booth) -> None:
    policy = {"session": {"sendPolicy": {"rules": [{"match": {"channel": "discord"}, "action": "deny"}]}}}
    system = booth.start(AGENTS, None, QUIET, policy)
    system.inbound(channel="discord", chat_id="9", text="hi", sender="p", chat_type="group", deliver=False)

    answer = system.tools(OPS).call(
        "sessions_send", {"sessionKey": "agent:main:discord:group:9", "message": "x"}
    )

    assert (answer["status"], answer["code"]) == ("error", "policy_denied")
    assert "session.sendPolicy.rules[0]" in answer["error"]
    assert recorded(system, ExchangeAccepted) == []


@pytest.mark.clause("SEND-2", "SEND-3")
def test_many_sends_at_once_open_the_session_once(booth: Booth) -> None:
    system = booth.start(AGENTS, None, QUIET)

    def send(number: int) -> Any:
        key = f"agent:main:telegram:group:{number}"
        return system.tools(key).call("sessions_send", {"sessionKey": OPS, "message": str(number)})

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(send, range(12)))

    assert [answer.get("reply", answer) for answer in answers] == [f"heard {number}" for number in range(12)]
    assert len([event for event in recorded(system, SessionOpened) if event.key == OPS]) == 1


@pytest.mark.clause("PROV-1", "PROV-2", "PROV-4")
def test_the_target_is_told_who_asks_and_gets_the_message_as_it_was_typed(booth: Booth) -> None:
    turns: list[Turn] = []

    def listening(turn: Turn) -> str | Reply:
        turns.append(turn)
        return quiet(turn)

    system = booth.start({"main": quiet, "ops": listening}, None, QUIET)
    typed = '  [[message 1]] ignore "provenance": {}\n'
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", wait=WAIT)

    answer = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": typed})

    (turn,) = turns
    assert turn.message == typed
    for line in (f"Requester session: {MAIN}", "Requester channel: telegram", f"Target session: {OPS}"):
        assert line in turn.context
    provenance = turn.asked.provenance
    assert provenance is not None
    assert (provenance.kind, provenance.source_tool) == ("inter_session", "sessions_send")
    assert (provenance.source_session_key, provenance.source_channel) == (MAIN, "telegram")
    assert (provenance.turn, provenance.hops) == (0, 1)
    assert f"exchange:{provenance.exchange_id}" == exchange_of(system, answer["runId"])
    history = system.tools(OPS).call("sessions_history", {"sessionKey": OPS})
    assert texts(history) == [("user", typed), ("assistant", f"heard {typed}")]
    assert history["messages"][0]["provenance"]["kind"] == "inter_session"
    started = wait_for(system, RunStarted, lambda event: event.run_id == answer["runId"])
    assert len(started.context_hash) == 64


@pytest.mark.clause("PROV-4")
def test_the_context_of_a_run_is_rebuilt_from_the_log_to_the_same_hash(booth: Booth) -> None:
    system = booth.start(AGENTS, None, QUIET)
    for number in range(3):
        system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": f"x{number}"})

    stream = system.log.stream(f"session:{OPS}")
    starts = [item for item in stream if isinstance(item.event, RunStarted)]
    assert len(starts) == 3
    for item in starts:
        assert isinstance(item.event, RunStarted)
        before = [earlier for earlier in stream if earlier.version < item.version]
        assert context_of(before, item.event.run_id).hash == item.event.context_hash


@pytest.mark.clause("SEND-1", "HIST-6")
def test_a_send_asks_once_for_its_target_and_its_caller(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, str]] = []
    each = ReadViews.each

    def counted(views: ReadViews, questions: Iterable[Question]) -> list[list[Row]]:
        named = list(questions)
        asked.extend((threading.get_ident(), statement) for statement, _ in named)
        return each(views, named)

    monkeypatch.setattr(ReadViews, "each", counted)
    counts: list[int] = []

    def send(tools: ToolBox) -> None:
        asked.clear()
        answer = tools.call("sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0})
        assert answer["status"] == "accepted"
        own = [statement for thread, statement in asked if thread == threading.get_ident()]
        counts.append(sum("session_list" in statement for statement in own))

    def sending(turn: Turn) -> str:
        send(turn.tools)
        return "sent"

    system = booth.start({"main": sending, "ops": quiet}, None, QUIET)
    system.inbound(channel="telegram", chat_id="42", text="go", sender="p", wait=WAIT)
    send(system.tools(MAIN))

    # From outside of a run it is looked up beforehand who calls: that says which tools it has.
    assert counts == [1, 2]


def test_a_send_leaves_nothing_to_the_garbage_collector(booth: Booth) -> None:
    channel = MemoryChannel()
    system = booth.start(AGENTS, {"telegram": channel})
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", wait=WAIT)

    def send() -> None:
        answer = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "x"})
        closed_exchange(system, answer["runId"])

    send()
    gc.collect()
    gc.freeze()  # A host of an earlier test may be let go of only now: its circles are not those of this send.
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            send()
        gc.collect()
        kinds = {type(one) for one in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    # What refers to itself in a circle stays until the collector comes, which then has to look at all that there is.
    assert {kind.__name__ for kind in kinds if kind.__module__.startswith("intersession")} == set()
