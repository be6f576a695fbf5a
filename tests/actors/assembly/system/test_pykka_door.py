"""The Pykka door: a host's actors ask one reference, and stopping all actors closes the system."""

import queue
from collections.abc import Iterator
from functools import partial
from typing import Any

import pykka
import pytest

from intersession import (
    AgentsList,
    As,
    Inbound,
    Reply,
    SessionsHistory,
    SessionsList,
    SessionsSearch,
    SessionsSend,
    SessionsSpawn,
    SessionSystem,
    Turn,
    echo,
)
from intersession_events.facts import Message, RunStarted
from support.running import QUIET, WAIT, Booth, Gate, all_said, wait_for_number

MAIN, OPS = "agent:main:main", "agent:ops:main"
NOW = {"position": 0, "asOf": 0}


@pytest.fixture
def booth(log_url: str) -> Iterator[Booth]:
    with Booth(log_url) as opened:
        yield opened
    assert pykka.ActorRegistry.get_all() == []


def started(booth: Booth, **agents: Any) -> SessionSystem:
    return booth.start({"main": echo("main "), "ops": echo("ops ")} | agents, None, QUIET)


def ask(system: SessionSystem, message: Any) -> dict[str, Any]:
    answer: dict[str, Any] = system.ref.ask(message, block=True, timeout=WAIT)
    return answer


@pytest.mark.clause("X5")
@pytest.mark.parametrize(
    "given", ["x" * 2_000_000, "caf\udce9", object(), 3, None], ids=lambda given: type(given).__name__
)
def test_arguments_that_are_too_long_or_none_are_answered_as_everywhere(booth: Booth, given: Any) -> None:
    system = started(booth)

    sent = ask(system, As(MAIN, SessionsSend(agent_id="ops", message=given)))
    said = ask(system, Inbound(channel="webchat", chat_id="1", text=given, sender="ann", wait=0))
    late = ask(system, Inbound(channel="webchat", chat_id="1", text="hi", sender="ann", wait=float("nan")))

    assert [answer["code"] for answer in (sent, said, late)] == ["invalid_request"] * 3
    assert all_said(system) == []


def test_nothing_of_a_system_is_in_the_registry_until_it_is_asked_for_and_then_one_actor(
    booth: Booth,
) -> None:
    system = started(booth)
    before = pykka.ActorRegistry.get_all()

    ref = system.ref

    assert before == []
    assert system.ref is ref
    assert pykka.ActorRegistry.get_all() == [ref]


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        (SessionsList(kinds=("main",), limit=5), "sessions_list", {"kinds": ["main"], "limit": 5}),
        (SessionsHistory(session_key=MAIN), "sessions_history", {"sessionKey": MAIN}),
        (
            SessionsHistory(session_key="agent:ghost:main"),
            "sessions_history",
            {"sessionKey": "agent:ghost:main"},
        ),
        (SessionsSearch(query="hi", limit=1), "sessions_search", {"query": "hi", "limit": 1}),
        (SessionsSend(message=" "), "sessions_send", {"message": " "}),
        (SessionsSend(message="x", session_key=MAIN), "sessions_send", {"message": "x", "sessionKey": MAIN}),
        (SessionsSpawn(task=""), "sessions_spawn", {"task": ""}),
        (AgentsList(), "agents_list", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("key", [MAIN, None])
def test_the_answer_is_the_one_that_the_tool_gives(
    booth: Booth, key: str | None, call: Any, name: str, arguments: dict[str, Any]
) -> None:
    system = started(booth)
    system.inbound(channel="webchat", chat_id="1", text="hi", sender="ann", wait=WAIT)
    if key is None and name == "sessions_send":
        call, arguments = SessionsSend(message=" "), {"message": " "}

    answer = ask(system, As(key, call))

    # A delivery under way moves the position that an answer names.
    assert answer | NOW == system.tools(key).call(name, arguments) | NOW


def test_a_send_is_answered_with_the_reply(booth: Booth) -> None:
    system = started(booth)

    answer = ask(system, As(MAIN, SessionsSend(message="status?", agent_id="ops")))

    assert (answer["status"], answer["reply"]) == ("ok", "ops status?")


def test_a_person_may_be_waited_for_or_not(booth: Booth) -> None:
    system = started(booth)
    said = partial(Inbound, channel="webchat", chat_id="1", sender="ann")

    waited = ask(system, said(text="one", wait=WAIT))
    accepted = ask(system, said(text="two"))
    recorded_only = ask(system, said(text="three", deliver=False, wait=WAIT))
    refused = ask(system, said(text=" "))

    assert (waited["reply"], waited["sessionKey"]) == ("main one", MAIN)
    assert accepted["status"] == recorded_only["status"] == "accepted"
    assert refused["code"] == "invalid_request"


class HostActor(pykka.ThreadingActor):
    """An actor of a host's: it asks on one message and looks at the future on another."""

    def __init__(self, system_ref: pykka.ActorRef[Any]) -> None:
        super().__init__()
        self._system = system_ref
        self._answers: list[pykka.Future[dict[str, Any]]] = []

    def on_receive(self, message: Any) -> Any:
        match message:
            case ("ask", text):
                call = SessionsSend(message=text, agent_id="ops")
                self._answers.append(self._system.ask(As(MAIN, call), block=False))
                return None
            case "answers":
                return [future.get(timeout=WAIT)["reply"] for future in self._answers]
            case _:
                return "busy with nothing"


def test_a_hosts_actor_asks_without_waiting_and_looks_later(booth: Booth) -> None:
    gate = Gate()

    def slow(turn: Turn) -> str:
        gate.stop(turn)
        return f"ops {turn.message}"

    system = started(booth, ops=slow)
    host = HostActor.start(system.ref)
    try:
        host.ask(("ask", "one"), timeout=WAIT)
        host.ask(("ask", "two"), timeout=WAIT)
        gate.reached()
        meanwhile = host.ask("anything", timeout=WAIT)
        gate.open()
        answers = host.ask("answers", timeout=WAIT)
    finally:
        host.stop()

    assert meanwhile == "busy with nothing"
    assert answers == ["ops one", "ops two"]


def test_the_door_takes_more_while_sends_wait(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("at last")
    system = started(booth, ops=slow)
    # Many more than there are threads for doors.
    waiting = [
        system.ref.ask(As(MAIN, SessionsSend(message=f"{number}", agent_id="ops")), block=False)
        for number in range(40)
    ]
    gate.reached()

    listed = ask(system, As(None, SessionsList()))
    gate.open()

    assert OPS in [row["key"] for row in listed["sessions"]]
    assert {future.get(timeout=WAIT)["reply"] for future in waiting} == {"at last"}


def test_what_one_session_is_told_to_send_arrives_in_that_order(booth: Booth) -> None:
    system = started(booth)
    texts = [f"message {number}" for number in range(20)]

    for text in texts:
        system.ref.tell(As(MAIN, SessionsSend(message=text, agent_id="ops", timeout_seconds=0)))
    wait_for_number(system, RunStarted, len(texts))

    messages = [event.message for event in all_said(system, f"session:{OPS}")]
    assert [text_of(message) for message in messages if message.role == "user"] == texts


def text_of(message: Message) -> str:
    assert isinstance(message.content, str)
    return message.content


def test_what_is_no_message_for_it_is_an_error_and_the_door_stays_open(booth: Booth) -> None:
    system = started(booth)

    for nonsense in ("hello", SessionsList(), As(None, Reply.skip()), As("agent:main:main", None)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="As"):
            ask(system, nonsense)
    refused = ask(system, As("no key at all", SessionsList()))

    assert refused["code"] == "invalid_key"
    assert system.ref.is_alive()


def test_a_refusal_that_nobody_waits_for_is_logged(booth: Booth, caplog: pytest.LogCaptureFixture) -> None:
    system = started(booth)

    system.ref.tell(As(MAIN, SessionsSend(message="x", session_key="agent:ghost:main")))
    system.ref.tell("nonsense")
    ask(system, As(MAIN, SessionsSend(message="y", agent_id="ops")))

    assert "agent:ghost:main" in caplog.text
    assert "nonsense" in caplog.text


def test_stopping_all_actors_closes_the_system_in_order(
    booth: Booth, caplog: pytest.LogCaptureFixture
) -> None:
    system = started(booth)
    host = HostActor.start(system.ref)
    ask(system, As(MAIN, SessionsSend(message="x", agent_id="ops")))

    stopped = pykka.ActorRegistry.stop_all(timeout=WAIT)

    assert stopped == [True, True]
    assert not host.is_alive()
    assert "did not stop in time" not in caplog.text
    with pytest.raises(RuntimeError, match="closed"):
        _ = system.ref
    # The log was let go, so that another host may have it.
    assert started(booth).ref.is_alive()


def test_closing_the_system_takes_the_actor_out_of_the_registry(booth: Booth) -> None:
    system = started(booth)
    ref = system.ref

    system.close()

    assert pykka.ActorRegistry.get_all() == []
    assert not ref.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        ref.ask(As(None, SessionsList()), timeout=WAIT)


@pytest.mark.parametrize("by", ["the host", "the registry"])
def test_whoever_still_waits_when_it_closes_is_told_that_nobody_is_there(booth: Booth, by: str) -> None:
    gate = Gate()
    slow = gate.saying("too late")
    system = started(booth, ops=slow)
    waiting = system.ref.ask(As(MAIN, SessionsSend(message="x", agent_id="ops")), block=False)
    gate.reached()

    if by == "the host":
        system.close()
    else:
        pykka.ActorRegistry.stop_all(timeout=WAIT)
    gate.open()

    with pytest.raises(pykka.ActorDeadError):
        waiting.get(timeout=WAIT)


def test_what_was_sent_before_the_close_is_in_the_log_of_the_next_host(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("late")
    system = started(booth, ops=slow)
    system.ref.tell(As(MAIN, SessionsSend(message="x", agent_id="ops", idempotency_key="once")))
    gate.reached()
    system.close()
    gate.open()

    after = started(booth)
    answer = ask(after, As(MAIN, SessionsSend(message="x", agent_id="ops", idempotency_key="once")))

    assert answer["reply"] == "ops x"


def test_a_host_may_await_an_answer(booth: Booth) -> None:
    seen: queue.SimpleQueue[str] = queue.SimpleQueue()
    system = started(booth)

    future = system.ref.ask(As(MAIN, SessionsSend(message="x", agent_id="ops")), block=False)
    future.map(lambda answer: seen.put(answer["reply"])).get(timeout=WAIT)

    assert seen.get(timeout=WAIT) == "ops x"
