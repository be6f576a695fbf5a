"""Many sessions at once: asleep and awake, waiting on each other, and one event that a view chokes on."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import MemoryChannel, Reply, SessionSystem, Turn, echo
from intersession_actors.rules.config.config import load_config
from intersession_events.basics import ids
from intersession_events.facts import (
    LoopEnded,
    RunCompleted,
    RunStarted,
    SessionOpened,
    SessionPatched,
)
from intersession_events.log.recorded import ANY_VERSION, Draft, Recorded, StreamAppend, parts_in
from intersession_events.log.sql import Sql
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.running import (
    QUIET,
    SEES_ALL,
    WAIT,
    Booth,
    Gate,
    all_said,
    closed_exchange,
    merged,
    one,
    recorded,
    wait_for_number,
)

MAIN, OPS = "agent:main:main", "agent:ops:main"


@pytest.mark.clause("KEY-9", "O1")
def test_sessions_fall_asleep_and_wake_and_lose_nothing(booth: Booth) -> None:
    """Idle for a millisecond is asleep, so that almost every message meets an actor that is just going."""
    sessions, rounds = 80, 3
    heard: dict[str, list[str]] = {}

    def noting(turn: Turn) -> str:
        heard.setdefault(turn.session_key, []).append(turn.message)
        return f"{len(turn.transcript)}"

    system = booth.start({"main": noting}, None, {"runs": {"idleSeconds": 0.001, "poolSize": 4}})

    def speak(number: int) -> list[str]:
        answers = [
            system.inbound(
                channel="telegram", chat_id=str(number), text=f"{turn}", sender="p", chat_type="group"
            )
            for turn in range(rounds)
        ]
        assert all(answer["status"] == "accepted" for answer in answers), answers
        return [answer["runId"] for answer in answers]

    with ThreadPoolExecutor(16) as pool:
        runs = [run_id for accepted in pool.map(speak, range(sessions)) for run_id in accepted]
    wait_for_number(system, RunCompleted, sessions * rounds)

    assert sorted(event.run_id for event in recorded(system, RunCompleted)) == sorted(runs)
    assert len(heard) == sessions
    assert all(texts == [str(turn) for turn in range(rounds)] for texts in heard.values())
    replies = [event.reply for event in recorded(system, RunCompleted, "session:agent:main:telegram:group:7")]
    assert replies == ["0", "2", "4"], "each run saw all that came before it"
    assert system.status()["degraded"] == {}


@pytest.mark.clause("KEY-9")
def test_a_session_that_fell_asleep_knows_what_it_knew(booth: Booth) -> None:
    system = booth.start({"main": lambda turn: f"{len(turn.transcript)}"}, None, {"runs": {"idleSeconds": 0}})
    tools = system.tools(OPS)
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "kept", "sendPolicy": "allow"})

    answers = [
        system.inbound(channel="telegram", chat_id="42", text="x", sender="p", wait=WAIT)["reply"]
        for _ in range(5)
    ]

    assert answers == ["0", "2", "4", "6", "8"]
    (row,) = tools.call("sessions_list")["sessions"]
    assert (row["label"], row["sendPolicy"]) == ("kept", "allow")
    assert len(recorded(system, SessionPatched)) == 1


@pytest.mark.ci
@pytest.mark.clause("SEND-10", "L4")
def test_a_chain_of_sixty_four_waits_goes_through_a_pool_of_two(booth: Booth) -> None:
    length = 64

    def relay(number: int) -> Any:
        def agent(turn: Turn) -> str | Reply:
            if number == length:
                return f"end of {turn.message}"
            following = {"sessionKey": f"agent:a{number + 1}:main", "message": turn.message}
            return str(turn.tools.call("sessions_send", following)["reply"])

        return agent

    no_limits = {
        "session": {"agentToAgent": {"limits": {"hops": 0, "runs": 0, "revisits": 0, "wallSeconds": 0}}}
    }
    system = booth.start(
        {f"a{number}": relay(number) for number in range(length + 1)},
        None,
        QUIET,
        no_limits,
        {"runs": {"poolSize": 2}},
    )

    answer = system.tools().call("sessions_send", {"sessionKey": "agent:a0:main", "message": "the chain"})

    assert answer["reply"] == "end of the chain"
    assert len(recorded(system, RunCompleted)) == length + 1


@pytest.mark.ci
@pytest.mark.clause("L4", "L9")
def test_a_hundred_exchanges_between_ten_agents_all_come_to_their_end(booth: Booth) -> None:
    telegram = MemoryChannel(idempotent=True)

    def chatty(turn: Turn) -> str | Reply:
        if turn.step == "reply" and "turn 3 of" in turn.context:
            return Reply.skip()
        return f"{turn.step} by {turn.agent_id}"

    names = [f"a{number}" for number in range(10)]
    system = booth.start(
        dict.fromkeys(names, chatty), {"telegram": telegram}, {"runs": {"idleSeconds": 0.001}}
    )
    for name in names:
        system.inbound(channel="telegram", chat_id=name, text="hi", sender="p", agent_id=name, deliver=False)

    def send(number: int) -> Any:
        sender, target = names[number % 10], names[(number * 7 + 1) % 10]
        if sender == target:
            target = names[(number * 7 + 2) % 10]
        tools = system.tools(f"agent:{sender}:main")
        return tools.call("sessions_send", {"agentId": target, "message": f"{number}", "timeoutSeconds": 0})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(100)))
    out = telegram.wait_for(100, timeout=WAIT)

    assert {answer["status"] for answer in answers} == {"accepted"}
    assert len({answer["runId"] for answer in answers}) == 100
    assert len(out) == len({delivery.key for delivery in out}) == 100
    assert all(delivery.text == f"announce by {delivery.to}" for delivery in out)
    assert system.status()["degraded"] == {}


class Choking:
    """A view that can't take in one certain label."""

    name = "choking"
    shape = 1

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS choking (position INTEGER)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS choking")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for item in events:
            if isinstance(item.event, SessionPatched) and item.event.values.get("label") == "poison":
                raise ValueError("can't take poison")
            sql.execute("INSERT INTO choking VALUES (?)", (item.position,))


@pytest.mark.clause("J3")
def test_a_poison_event_is_set_aside_and_shown_and_the_system_goes_on(log_url: str) -> None:
    log = log_at(log_url, inline=(*inline_views(), Choking()))
    with (
        log,
        SessionSystem(log, agents={"main": lambda turn: turn.message}, config=merged(SEES_ALL)) as system,
    ):
        patched = system.gateway.call("sessions.patch", {"key": MAIN, "label": "poison"})
        answer = system.inbound(channel="telegram", chat_id="1", text="still here?", sender="p", wait=WAIT)

        assert patched["ok"] is True
        assert answer["reply"] == "still here?"
        (lost,) = system.status()["setAside"]
        assert (lost["view"], lost["topic"]) == ("choking", "session_patched.1")
        assert lost["reason"] == "ValueError: can't take poison"
        position = recorded_position(system, SessionPatched)
        assert lost["position"] == position
        head = log.head()
        kept = {row[0] for row in log.query("SELECT position FROM choking WHERE position <= ?", (head,))}
        assert kept == set(range(1, head + 1)) - {position}


def recorded_position(system: SessionSystem, kind: type[Any]) -> int:
    return next(item.position for item in parts_in(system.log.all()) if isinstance(item.event, kind))


@pytest.mark.clause("O9", "D7")
def test_a_session_whose_stream_makes_no_sense_is_degraded_and_the_others_serve(booth: Booth) -> None:
    """A run that starts without ever having been queued: no version of ours writes that."""
    nonsense = RunStarted(run_id="never queued", attempt=1, context_hash="h")
    system = booth.start({"main": lambda turn: turn.message, "ops": lambda turn: turn.message})
    stream = ids.session_stream(OPS)
    drafts = (
        Draft(
            event=SessionOpened(key=OPS, session_id="s1", agent_id="ops", opened_by="import"), id="e1", time=1
        ),
        Draft(event=nonsense, id="e2", time=1),
    )
    system.log.append_now((StreamAppend(stream=stream, expected=ANY_VERSION, drafts=drafts),))

    refused = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "x"})
    backwards = system.tools(OPS).call("sessions_send", {"sessionKey": MAIN, "message": "hello"})
    other = system.inbound(channel="telegram", chat_id="1", text="hi", sender="p", wait=WAIT)

    assert (refused["status"], refused["code"]) == ("error", "internal")
    assert "runId" not in refused
    assert OPS in system.status()["degraded"]
    assert other["reply"] == "hi"
    assert backwards["reply"] == "hello"
    events = closed_exchange(system, backwards["runId"])
    assert one(events, LoopEnded).reason == "turn_failed", "the loop does not wait for it for ever"


@pytest.mark.clause("L5")
def test_a_session_that_has_too_much_waiting_says_so(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": gate.before(echo())}, None, {"runs": {"inboxMax": 3}})
    answers = [
        system.inbound(channel="telegram", chat_id="1", text=str(number), sender="p") for number in range(6)
    ]
    gate.open()
    wait_for_number(system, RunCompleted, 3)

    assert [answer["status"] for answer in answers] == ["accepted"] * 3 + ["error"] * 3
    assert {answer["code"] for answer in answers[3:]} == {"busy"}
    assert len(all_said(system)) == 6, "three asked, three answered"


def test_following_the_log_ends_when_the_system_closes(booth: Booth) -> None:
    system = booth.start({"main": lambda turn: turn.message})
    heard = threading.Event()

    def follow() -> None:
        for item in system.follow(0):
            if item.topic == "run_completed.1":
                heard.set()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    system.inbound(channel="telegram", chat_id="1", text="hi", sender="p", wait=WAIT)
    assert heard.wait(WAIT)
    system.close()
    follower.join(WAIT)

    assert not follower.is_alive()


def test_a_configuration_of_none_is_the_default_one(log_url: str) -> None:
    with SessionSystem(log_url, agents={"main": lambda turn: turn.message}) as system:
        assert system.config.with_agents(()) == load_config(None).config.with_agents(["main"])
