"""After the reply: the two go on talking, then the target tells its channel."""

from collections.abc import Callable
from typing import Any

import pytest

from intersession import DeliveryRefused, MemoryChannel, Outbound, Reply, Turn
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    ExchangeAccepted,
    ExchangeClosed,
    LoopEnded,
    RunQueued,
    SendRefused,
    TurnEnded,
    TurnRequested,
    Usage,
)
from support.fakes import ManualClock
from support.running import (
    Booth,
    Gate,
    closed_exchange,
    exchange_of,
    one,
    pass_time,
    recorded,
    wait_for,
    wait_for_number,
)

MAIN, OPS = "agent:main:main", "agent:ops:main"
ROOM = "agent:ops:telegram:group:-5"


def talkative(turn: Turn) -> str | Reply:
    return f"{turn.agent_id}:{turn.step}" if turn.step != "announce" else Reply.skip()


def announcing(text: str) -> Callable[[Turn], str | Reply]:
    def agent(turn: Turn) -> str | Reply:
        match turn.step:
            case "message" | "compaction":
                return "reply"
            case "reply":
                return Reply.skip()
            case "announce":
                return text

    return agent


def open_room(system: Any, agent_id: str = "ops") -> str:
    """Open a group session with a route."""
    answer = system.inbound(
        channel="telegram",
        chat_id="-5",
        text="hi",
        sender="p",
        chat_type="group",
        agent_id=agent_id,
        deliver=False,
    )
    return str(answer["sessionKey"])


def send(system: Any, key: str = OPS, sender: str | None = MAIN, **given: Any) -> dict[str, Any]:
    answer: dict[str, Any] = system.tools(sender).call(
        "sessions_send", {"sessionKey": key, "message": "status?", **given}
    )
    return answer


# --- one decision, one event


@pytest.mark.clause("LOOP-1", "ANN-1", "O2")
def test_what_one_decision_says_of_an_exchange_is_one_event(booth: Booth) -> None:
    """A turn wrote what it had come to, and what was asked for next, as two events."""
    agent = announcing("all is well")
    system = booth.start({"main": talkative, "ops": agent}, {"telegram": MemoryChannel()})
    room = open_room(system)
    run_id = send(system, room)["runId"]
    wait_for(system, ExchangeClosed)
    own = system.log.stream(exchange_of(system, run_id))

    assert [[part.kind for part in event.parts()] for event in own] == [
        ["exchange_accepted"],
        ["turn_ended", "turn_requested"],
        ["turn_ended", "turn_requested"],
        ["turn_ended", "loop_ended", "announce_requested"],
        ["announce_decided"],
        ["exchange_closed"],
    ]
    assert all(event.decision for event in own)


# --- the loop


@pytest.mark.clause("LOOP-1", "LOOP-2", "LOOP-3", "LOOP-6")
def test_the_loop_alternates_in_both_sessions_until_its_last_turn(booth: Booth) -> None:
    turns: list[Turn] = []

    def heard(turn: Turn) -> str | Reply:
        turns.append(turn)
        return talkative(turn)

    telegram = MemoryChannel()
    system = booth.start({"main": heard, "ops": heard}, {"telegram": telegram})
    room = open_room(system)

    events = closed_exchange(system, send(system, room)["runId"])

    replies = [event for event in events if isinstance(event, TurnEnded) and event.turn]
    assert [(event.turn, event.speaker, event.text) for event in replies] == [
        (1, MAIN, "main:reply"),
        (2, room, "ops:reply"),
        (3, MAIN, "main:reply"),
        (4, room, "ops:reply"),
        (5, MAIN, "main:reply"),
    ]
    assert one(events, LoopEnded) == LoopEnded(
        reason="turn_limit", turns=5, limit="session.agentToAgent.maxPingPongTurns"
    )
    log = list(system.log.all())  # each behind its cause, at no earlier time (B16)
    places = {item.id: item.position for item in log}
    assert all(places[item.causation] < item.position for item in log if item.causation in places)
    assert [item.time for item in log] == sorted(item.time for item in log)
    loop = [turn for turn in turns if turn.step == "reply"]
    assert [turn.message for turn in loop] == ["ops:message", *["main:reply", "ops:reply"] * 2]
    for number, turn in enumerate(loop, start=1):
        other = room if turn.session_key == MAIN else MAIN
        assert turn.asked.provenance is not None
        assert turn.asked.provenance.kind == "inter_session"
        assert turn.asked.provenance.source_session_key == other
        assert turn.asked.provenance.turn == number
        assert f"turn {number} of 5" in turn.context
        assert "REPLY_SKIP" in turn.context
        assert MAIN in turn.context
        assert room in turn.context
    assert telegram.delivered == (), "nothing goes out during the loop, and the announce was skipped"


@pytest.mark.clause("LOOP-2")
@pytest.mark.parametrize(("turns", "asked"), [(0, 0), (1, 1), (2, 2), (9, 5), (-1, 0)])
def test_the_number_of_turns_is_a_setting_and_clamped(booth: Booth, turns: int, asked: int) -> None:
    system = booth.start(
        {"main": talkative, "ops": talkative},
        None,
        {"session": {"agentToAgent": {"maxPingPongTurns": turns}}},
    )

    events = closed_exchange(system, send(system)["runId"])

    assert one(events, LoopEnded).turns == asked
    assert bool(system.notices) is (turns not in range(6))


@pytest.mark.clause("LOOP-2")
def test_the_skip_word_ends_the_loop_and_the_target_is_still_asked_to_announce(booth: Booth) -> None:
    def asker(_turn: Turn) -> str:
        return " REPLY_SKIP\n"

    system = booth.start({"main": asker, "ops": talkative})

    events = closed_exchange(system, send(system)["runId"])

    assert one(events, LoopEnded).reason == "reply_skip"
    assert one(events, AnnounceRequested).speaker == OPS


@pytest.mark.clause("LOOP-2")
def test_a_turn_that_fails_ends_the_loop_with_its_error(booth: Booth) -> None:
    def asker(_turn: Turn) -> str:
        raise RuntimeError("no more")

    system = booth.start({"main": asker, "ops": talkative})

    ended = one(closed_exchange(system, send(system)["runId"]), LoopEnded)

    assert (ended.reason, ended.turns) == ("turn_failed", 1)
    assert ended.note == "backend: RuntimeError: no more"


@pytest.mark.clause("LOOP-7", "LOOP-2")
def test_a_turn_has_its_own_time_limit(booth: Booth) -> None:
    gate, clock = Gate(), ManualClock()

    asker = gate.saying("too late")

    limit = {"session": {"agentToAgent": {"turnTimeoutSeconds": 7}}}
    system = booth.start({"main": asker, "ops": talkative}, None, limit, clock=clock)

    run_id = send(system)["runId"]
    turn = gate.reached()
    pass_time(system, clock, 7_000)
    events = closed_exchange(system, run_id)
    gate.open()

    assert one(events, LoopEnded).reason == "turn_timeout"
    assert turn.deadline is not None


@pytest.mark.clause("LOOP-4")
def test_the_operator_gets_no_loop_but_the_target_announces(booth: Booth) -> None:
    system = booth.start({"main": talkative, "ops": talkative})

    events = closed_exchange(system, send(system, sender=None)["runId"])

    assert one(events, LoopEnded) == LoopEnded(reason="no_requester", turns=0)
    assert one(events, AnnounceRequested).speaker == OPS


@pytest.mark.clause("LOOP-4")
@pytest.mark.parametrize(("kinds", "sender"), [(["cron"], "agent:main:cron:job1"), (["group"], ROOM)])
def test_one_way_kinds_have_no_loop(booth: Booth, kinds: list[str], sender: str) -> None:
    system = booth.start(
        {"main": talkative, "ops": talkative}, None, {"session": {"agentToAgent": {"oneWay": kinds}}}
    )

    target = MAIN if sender == ROOM else OPS
    events = closed_exchange(system, send(system, target, sender)["runId"])

    assert one(events, LoopEnded) == LoopEnded(reason="one_way", turns=0)


@pytest.mark.clause("KEY-9", "LOOP-4")
def test_a_requester_without_an_agent_ends_the_loop(booth: Booth) -> None:
    config = {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}
    system = booth.start({"ops": talkative}, None, config)

    ended = one(closed_exchange(system, send(system)["runId"]), LoopEnded)

    assert (ended.reason, ended.note) == ("no_agent", MAIN)


@pytest.mark.clause("KEY-9")
def test_runs_of_an_agent_that_is_not_there_are_parked_until_it_is(booth: Booth) -> None:
    config = {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}
    system = booth.start({"main": talkative}, None, config)
    run_id = send(system, timeoutSeconds=0)["runId"]
    parked = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})
    sent = send(system, timeoutSeconds=0.01, message="and?")
    (row,) = [row for row in system.tools().call("sessions_list")["sessions"] if row["key"] == OPS]

    system.register_agent("ops", talkative)

    assert (parked["status"], parked["runState"]) == ("timeout", "queued")
    for answer in (parked, sent):  # it does not go on, as both said once
        assert "the run waits until somebody registers its agent 'ops'" in answer["error"]
    assert row["runState"] == "queued"
    assert system.gateway.call("agent.wait", {"runId": run_id})["reply"] == "ops:message"


def test_registering_an_agent_again_leaves_its_running_turns_alone(booth: Booth) -> None:
    gate = Gate()
    first = gate.saying("from the first")
    system = booth.start({"main": talkative, "ops": first})
    run_id = send(system, timeoutSeconds=0)["runId"]
    gate.reached()

    system.register_agent("ops", talkative)
    system.gateway.call("chat.inject", {"sessionKey": OPS, "message": "the actor has been told, in order"})
    gate.open()

    waited = system.gateway.call("agent.wait", {"runId": run_id})
    assert waited["reply"] == "from the first"


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize(
    ("limits", "reason", "setting"),
    [
        ({"runs": 3}, "run_limit", "session.agentToAgent.limits.runs"),
        ({"tokens": 250}, "token_limit", "session.agentToAgent.limits.tokens"),
        ({"costMicros": 25}, "cost_limit", "session.agentToAgent.limits.costMicros"),
    ],
)
def test_a_guard_over_the_chain_ends_the_loop_and_is_named(
    booth: Booth, limits: dict[str, int], reason: str, setting: str
) -> None:
    def spending(turn: Turn) -> Reply:
        return Reply(f"{turn.step}", usage=Usage(total_tokens=100, cost_micros=10))

    system = booth.start(
        {"main": spending, "ops": spending}, None, {"session": {"agentToAgent": {"limits": limits}}}
    )

    ended = one(closed_exchange(system, send(system)["runId"]), LoopEnded)

    assert (ended.reason, ended.limit, ended.turns) == (reason, setting, 2)


@pytest.mark.clause("LOOP-5")
def test_the_wall_clock_of_a_chain_is_a_guard(booth: Booth) -> None:
    clock = ManualClock()

    def slow(turn: Turn) -> str:
        clock.advance(40_000)
        return turn.step

    system = booth.start(
        {"main": slow, "ops": slow},
        None,
        {"session": {"agentToAgent": {"limits": {"wallSeconds": 60}, "turnTimeoutSeconds": 0}}},
        clock=clock,
    )

    ended = one(closed_exchange(system, send(system)["runId"]), LoopEnded)

    assert (ended.reason, ended.turns) == ("wall_limit", 1)


@pytest.mark.clause("LOOP-5", "L2")
def test_a_chain_that_goes_round_is_refused_at_its_hops_and_the_sender_is_told(booth: Booth) -> None:
    answers: list[Any] = []

    def on(to: str) -> Callable[[Turn], str | Reply]:
        def agent(turn: Turn) -> str | Reply:
            if turn.step != "message":
                return Reply.skip()
            answers.append(
                turn.tools.call(
                    "sessions_send", {"sessionKey": to, "message": turn.message, "timeoutSeconds": 0}
                )
            )
            return "sent on"

        return agent

    system = booth.start(
        {"a": on("agent:b:main"), "b": on("agent:c:main"), "c": on("agent:a:main")},
        None,
        {"session": {"agentToAgent": {"limits": {"hops": 4, "revisits": 0}}}},
    )

    send(system, "agent:a:main", None)
    refused = wait_for(system, SendRefused)

    assert (refused.limit, refused.value) == ("session.agentToAgent.limits.hops", 4)
    wait_for_number(system, ExchangeClosed, 4)
    # Whoever was accepted may hear of it after the next one was refused.
    *accepted, last = sorted(answers, key=lambda answer: str(answer["status"]))
    assert [answer["status"] for answer in accepted] == ["accepted"] * 3
    assert last["code"] == "limit"
    assert "session.agentToAgent.limits.hops" in last["error"]
    assert [event.hops for event in recorded(system, ExchangeAccepted)] == [1, 2, 3, 4]


@pytest.mark.clause("LOOP-5", "L2")
def test_a_chain_comes_back_to_a_session_only_so_often(booth: Booth) -> None:
    answers: list[Any] = []

    def to(key: str) -> Callable[[Turn], str | Reply]:
        def agent(turn: Turn) -> str | Reply:
            if turn.step == "message":
                answers.append(
                    turn.tools.call(
                        "sessions_send", {"sessionKey": key, "message": "and back", "timeoutSeconds": 0}
                    )
                )
            return Reply.skip() if turn.step != "message" else "sent on"

        return agent

    system = booth.start(
        {"a": to("agent:b:main"), "b": to("agent:a:main")},
        None,
        {"session": {"agentToAgent": {"limits": {"revisits": 2, "hops": 0}}}},
    )

    send(system, "agent:a:main", None)
    refused = wait_for(system, SendRefused)

    assert refused.limit == "session.agentToAgent.limits.revisits"
    assert refused.chain.count(refused.target) == 3


@pytest.mark.clause("LOOP-2", "POL-3")
def test_a_policy_that_denies_meanwhile_ends_the_loop(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": talkative, "ops": gate.before(talkative, "message")})
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "exists"})
    run_id = send(system, timeoutSeconds=0)["runId"]
    gate.reached()
    system.gateway.call("sessions.patch", {"key": MAIN, "sendPolicy": "deny"})
    gate.open()

    ended = one(closed_exchange(system, run_id), LoopEnded)

    assert ended.reason == "policy_denied"
    assert ended.note is not None
    assert "sendPolicy: deny" in ended.note


def test_a_requester_that_was_deleted_ends_the_loop_and_the_target_still_announces(booth: Booth) -> None:
    gate = Gate()
    telegram = MemoryChannel()
    system = booth.start({"main": talkative, "ops": gate.saying("words", "message")}, {"telegram": telegram})
    system.gateway.call("sessions.patch", {"key": "agent:main:notes", "label": "asks"})
    room = open_room(system)
    run_id = send(system, room, "agent:main:notes", timeoutSeconds=0)["runId"]
    gate.reached()
    system.gateway.call("sessions.delete", {"key": "agent:main:notes"})
    gate.open()

    events = closed_exchange(system, run_id)

    assert one(events, LoopEnded).reason == "requester_gone"
    assert one(events, ExchangeClosed).reason == "announced"
    assert [out.text for out in telegram.delivered] == ["words"]


@pytest.mark.clause("SEND-7", "HIST-7")
def test_a_target_that_was_deleted_meanwhile_tells_the_waiter(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("never heard")
    system = booth.start({"main": talkative, "ops": slow})
    system.gateway.call("sessions.patch", {"key": "agent:ops:notes", "label": "target"})
    first = send(system, "agent:ops:notes", timeoutSeconds=0)["runId"]
    second = send(system, "agent:ops:notes", timeoutSeconds=0)["runId"]
    gate.reached()
    system.gateway.call("sessions.delete", {"key": "agent:ops:notes"})
    gate.open()

    running = system.gateway.call("agent.wait", {"runId": first})
    queued = system.gateway.call("agent.wait", {"runId": second})

    assert running["status"] == "aborted"
    assert queued["status"] == "error"
    assert queued["error"].startswith("target_gone")
    assert one(closed_exchange(system, second), ExchangeClosed).reason == "run_failed"


# --- the announce


@pytest.mark.clause("ANN-1")
def test_the_announce_turn_has_all_that_was_said_and_how_to_be_silent(booth: Booth) -> None:
    turns: list[Turn] = []

    def ops(turn: Turn) -> str | Reply:
        turns.append(turn)
        return {"message": "first answer", "reply": "last answer", "announce": "ANNOUNCE_SKIP"}[turn.step]

    def main(turn: Turn) -> str:
        return "and?" if "turn 1 of" in turn.context else "REPLY_SKIP"

    system = booth.start({"main": main, "ops": ops})
    open_room(system)

    events = closed_exchange(system, send(system, ROOM)["runId"])

    assert one(events, ExchangeClosed).reason == "silent"
    announce = turns[-1]
    assert (announce.step, announce.session_key) == ("announce", ROOM)
    for part in ("status?", "first answer", "last answer", MAIN, ROOM, "telegram", "ANNOUNCE_SKIP"):
        assert part in announce.context
    assert announce.asked.provenance is not None
    assert announce.asked.provenance.kind == "internal_system"


@pytest.mark.clause("ANN-1", "ANN-2")
def test_any_other_text_goes_to_the_targets_route(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": talkative, "ops": announcing("REPLY_SKIP")}, {"telegram": telegram})
    room = open_room(system)

    events = closed_exchange(system, send(system, room)["runId"])

    assert one(events, ExchangeClosed).reason == "announced"
    (out,) = telegram.delivered
    assert (out.channel, out.to, out.text) == ("telegram", "-5", "REPLY_SKIP")
    assert recorded(system, DeliveryDone)[0].receipt == '{"number":1}'


@pytest.mark.clause("ANN-2")
def test_the_route_is_the_one_there_was_when_the_send_was_accepted(booth: Booth) -> None:
    gate = Gate()

    def slow(turn: Turn) -> str | Reply:
        if turn.step == "message" and turn.message == "status?":
            gate.stop(turn)
        return "words" if turn.step != "reply" else Reply.skip()

    telegram, discord = MemoryChannel(), MemoryChannel()
    system = booth.start({"main": talkative, "ops": slow}, {"telegram": telegram, "discord": discord})
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", agent_id="ops", deliver=False)
    run_id = send(system, timeoutSeconds=0)["runId"]
    gate.reached()
    system.inbound(channel="discord", chat_id="9", text="moved", sender="p", agent_id="ops", deliver=False)
    gate.open()

    closed_exchange(system, run_id)

    assert [out.to for out in telegram.delivered] == ["42"]
    assert discord.delivered == ()


@pytest.mark.clause("ANN-2")
def test_a_group_without_any_message_has_its_key_as_route(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": talkative, "ops": announcing("words")}, {"telegram": telegram})
    key = "agent:ops:telegram:group:-7:topic:3"
    system.gateway.call("sessions.patch", {"key": key, "label": "nobody spoke here"})

    closed_exchange(system, send(system, key)["runId"])

    (out,) = telegram.delivered
    assert (out.to, out.thread) == ("-7", "3")


@pytest.mark.clause("ANN-2")
def test_without_a_route_the_text_is_recorded_and_webchat_gets_it_where_there_is_one(booth: Booth) -> None:
    agents = {"main": talkative, "ops": announcing("words")}
    first = booth.start(agents)
    events = closed_exchange(first, send(first)["runId"])
    assert one(events, AnnounceDecided).text == "words"
    assert one(events, ExchangeClosed).reason == "no_route"
    first.close()

    webchat = MemoryChannel()
    second = booth.start(agents, {"webchat": webchat})
    events = closed_exchange(second, send(second)["runId"])

    assert [out.text for out in webchat.delivered] == ["words"]
    assert one(events, ExchangeClosed).reason == "no_route"


@pytest.mark.clause("ANN-2")
def test_announce_routed_saves_the_turn_where_there_is_no_route(booth: Booth) -> None:
    routed = {"session": {"agentToAgent": {"announce": "routed", "maxPingPongTurns": 0}}}
    system = booth.start({"main": talkative, "ops": announcing("words")}, None, routed)

    events = closed_exchange(system, send(system)["runId"])

    assert one(events, AnnounceDecided).why == "not_routed"
    assert [event.step for event in recorded(system, RunQueued)] == ["message"]


@pytest.mark.clause("ANN-1", "LOOP-7")
def test_an_announce_turn_that_takes_too_long_is_given_up(booth: Booth) -> None:
    gate = Gate()
    quick = {"session": {"agentToAgent": {"maxPingPongTurns": 0, "turnTimeoutSeconds": 0.05}}}
    telegram = MemoryChannel()
    system = booth.start(
        {"main": talkative, "ops": gate.saying("words", "announce")}, {"telegram": telegram}, quick
    )
    room = open_room(system)

    events = closed_exchange(system, send(system, room)["runId"])
    gate.open()

    closed = one(events, ExchangeClosed)
    assert closed.reason == "announce_failed"
    assert closed.note is not None
    assert closed.note.startswith("timeout")
    assert telegram.delivered == ()


class Unsteady:
    """A channel that fails some times before it takes a text."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.keys: list[str] = []

    def __call__(self, outbound: Outbound) -> str:
        self.keys.append(outbound.key)
        if self.errors:
            raise self.errors.pop(0)
        return "taken"


@pytest.mark.clause("ANN-3", "A8")
def test_a_channel_that_fails_is_tried_again_under_the_same_key(booth: Booth) -> None:
    clock = ManualClock()
    channel = Unsteady(ConnectionError("down"), ConnectionError("still down"))
    system = booth.start({"main": talkative, "ops": announcing("words")}, {"telegram": channel}, clock=clock)
    room = open_room(system)
    answer = send(system, room)
    assert answer["status"] == "ok", "it does not wait for any delivery"

    for attempt in (1, 2):
        wait_for_number(system, DeliveryFailed, attempt)
        failed = recorded(system, DeliveryFailed)[-1]
        assert failed.retry_at_ms is not None
        pass_time(system, clock, failed.retry_at_ms - clock.now_ms())

    assert one(closed_exchange(system, answer["runId"]), ExchangeClosed).reason == "announced"
    assert len(channel.keys) == 3
    assert len(set(channel.keys)) == 1
    assert recorded(system, DeliveryDecided)[0].key == channel.keys[0]


@pytest.mark.clause("ANN-3")
def test_a_channel_that_refuses_is_not_asked_again(booth: Booth) -> None:
    channel = Unsteady(DeliveryRefused("blocked"))
    system = booth.start({"main": talkative, "ops": announcing("words")}, {"telegram": channel})
    room = open_room(system)

    closed = one(closed_exchange(system, send(system, room)["runId"]), ExchangeClosed)

    assert (closed.reason, closed.note) == ("announce_failed", "DeliveryRefused: blocked")
    assert len(channel.keys) == 1


@pytest.mark.clause("ANN-4", "POL-3")
def test_the_policy_is_asked_again_at_delivery(booth: Booth) -> None:
    gate = Gate()

    def slow(turn: Turn) -> str | Reply:
        if turn.step == "announce":
            gate.stop(turn)
        return "words" if turn.step != "reply" else Reply.skip()

    telegram = MemoryChannel()
    system = booth.start({"main": talkative, "ops": slow}, {"telegram": telegram})
    room = open_room(system)
    run_id = send(system, room)["runId"]
    gate.reached()
    system.gateway.call("sessions.patch", {"key": room, "sendPolicy": "deny"})
    gate.open()

    events = closed_exchange(system, run_id)

    assert one(events, ExchangeClosed).reason == "announce_denied"
    assert one(events, AnnounceDecided).text == "words"
    assert "sendPolicy: deny" in recorded(system, DeliveryDenied)[0].rule
    assert recorded(system, DeliveryStarted) == []
    assert telegram.delivered == ()


@pytest.mark.clause("PROV-2")
def test_provenance_reads_in_a_history_where_each_message_came_from(booth: Booth) -> None:
    system = booth.start({"main": talkative, "ops": announcing("words")}, {"telegram": MemoryChannel()})
    room = open_room(system)
    run_id = send(system, room)["runId"]
    closed_exchange(system, run_id)

    def kinds(key: str) -> list[tuple[str, Any, Any]]:
        messages = system.tools().call("sessions_history", {"sessionKey": key})["messages"]
        return [
            (
                message["provenance"]["kind"],
                message["provenance"].get("sourceSessionKey"),
                message["provenance"].get("turn"),
            )
            for message in messages
            if message["role"] == "user"
        ]

    assert kinds(room) == [
        ("external_user", None, None),
        ("inter_session", MAIN, 0),
        ("inter_session", MAIN, 2),
        ("internal_system", MAIN, None),
    ]
    assert kinds(MAIN) == [("inter_session", room, 1)]
    exchange_id = exchange_of(system, run_id).partition(":")[2]
    messages = system.tools().call("sessions_history", {"sessionKey": MAIN})["messages"]
    assert messages[0]["provenance"]["exchangeId"] == exchange_id
    assert len(recorded(system, TurnRequested)) == 2
