"""Every deed of the operator or a credential says whose it was: in its event, in `why`, `state`, `origin` and the diagram (WHY-1)."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.calls.service.asking import run_id_of
from intersession_actors.calls.service.callers import Call, Caller
from intersession_actors.calls.service.deliveries import deliver, delivery_of
from intersession_actors.hindsight.debugger.why import WhyAnswer
from intersession_actors.rules.errors import ToolRefused
from intersession_events import facts
from intersession_events.facts import decode, encode
from intersession_events.facts.parts import words_of
from intersession_events.facts.words import Frame
from intersession_events.log.recorded import parts_in
from support.running import Gate, wait_for

MAIN, SIDE = "agent:main:main", "agent:main:side"
DESK = Caller.by_credential("desk", ("*",))
WHO = "credential:desk"


def last(system: SessionSystem, kind: type[Any]) -> tuple[int, Any]:
    (*_, found) = [item for item in parts_in(system.log.all()) if isinstance(item.event, kind)]
    return found.position, found.event


def why(system: SessionSystem, position: int) -> WhyAnswer:
    return system.debug.why(position)


@pytest.fixture
def system(log_url: str) -> Iterator[SessionSystem]:
    with SessionSystem(
        log_url, agents={"main": lambda turn: turn.step}, channels={"t": MemoryChannel()}
    ) as running:
        yield running


Deed = tuple[str, dict[str, object], type[Any]]
DEEDS: list[Deed] = [
    ("sessions.patch", {"key": SIDE, "label": "side"}, facts.SessionOpened),
    ("sessions.patch", {"key": SIDE, "label": "side"}, facts.SessionPatched),
    ("sessions.reset", {"key": SIDE}, facts.SessionReset),
    ("sessions.delete", {"key": SIDE}, facts.SessionArchived),
    ("send", {"sessionKey": SIDE, "channel": "t", "to": "1", "message": "hello"}, facts.DeliveryDecided),
    ("chat.inject", {"sessionKey": SIDE, "message": "by hand"}, facts.MessageRecorded),
    ("chat.send", {"sessionKey": SIDE, "message": "by method"}, facts.RunQueued),
]


@pytest.mark.clause("WHY-1", "GATE-2")
@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: f"{deed[0]}-{deed[2].__name__}")
@pytest.mark.parametrize(("caller", "who"), [(Caller(), "operator"), (DESK, WHO)])
def test_why_says_who_did_what_a_method_did(
    system: SessionSystem,
    caller: Caller,
    who: str,
    deed: Deed,
) -> None:
    method, params, kind = deed
    if method != "sessions.patch":
        system.gateway.perform("sessions.patch", {"key": SIDE, "label": "there"}, caller=Caller())
    keyed = {"idempotencyKey": "once"} if method in {"send", "chat.send"} else {}
    system.gateway.perform(method, params | keyed, caller=caller)
    position, _ = last(system, kind)
    root = why(system, position)["root"]

    assert root is not None
    assert root["by"] == who


@pytest.mark.clause("WHY-1", "GATE-2")
def test_state_and_why_name_who_deleted_a_session(system: SessionSystem) -> None:
    system.gateway.perform("sessions.patch", {"key": SIDE, "label": "side"}, caller=DESK)
    system.gateway.perform("sessions.delete", {"key": SIDE}, caller=DESK)
    position, _ = last(system, facts.SessionArchived)
    told = why(system, position)
    (session,) = cast("list[dict[str, object]]", system.debug.state(SIDE)["sessions"])

    assert (session["archived"], session["archivedBy"]) == ("deleted", WHO)
    assert told["event"]["how"] == f"The session leaves the list: it was deleted by {WHO}."
    assert {"name": "by", "value": WHO, "setBy": "call", "position": position} in cast(
        "list[object]", told["explanations"][0]["inputs"]
    )


@pytest.mark.clause("WHY-1", "GATE-5")
def test_a_run_that_was_stopped_by_a_deletion_names_who_deleted(log_url: str) -> None:
    gate = Gate()
    with SessionSystem(log_url, agents={"main": gate.stop}) as system:
        system.gateway.perform("chat.send", {"sessionKey": SIDE, "message": "go", "idempotencyKey": "1"})
        gate.reached()
        system.gateway.perform("sessions.delete", {"key": SIDE}, caller=DESK)
        position, aborted = last(system, facts.RunAborted)
        told = why(system, position)["event"]
        gate.open()
        wait_for(system, facts.LateReplyDropped)

    assert (aborted.by, aborted.gone) == (WHO, True)
    assert told["how"] == f"was stopped, as {WHO} archived its session"


@pytest.mark.clause("WHY-1", "SPAWN-12")
def test_a_thread_that_the_host_unbinds_names_the_operator() -> None:
    unbound = facts.ThreadUnbound(route=facts.Route(channel="t", to="1"), reason="unbound", by="operator")

    assert words_of(unbound, Frame(key=SIDE)).who == "operator"


@pytest.mark.clause("ORIGIN-1")
def test_origin_says_that_injected_and_sent_words_are_not_the_agents_own(system: SessionSystem) -> None:
    """`main says: by hand`, it said, of words that `main` never said."""
    system.gateway.perform("chat.send", {"sessionKey": MAIN, "message": "go", "idempotencyKey": "1"})
    system.gateway.perform("chat.inject", {"sessionKey": MAIN, "message": "the ferry is late"}, caller=DESK)
    sent = {"sessionKey": MAIN, "channel": "t", "to": "1", "message": "the train is early"}
    system.gateway.perform("send", sent | {"idempotencyKey": "2"}, caller=DESK)

    for words in ("the ferry is late", "the train is early"):
        first = cast("dict[str, object]", system.debug.origin(words)["first"])
        assert (first["who"], first["editedBy"]) == (MAIN, WHO)


@pytest.mark.clause("WHY-1")
def test_what_an_operator_says_by_a_method_is_shown_as_the_operators(system: SessionSystem) -> None:
    """It was `a person on operator`, which is no channel."""
    answer = system.gateway.perform("chat.send", {"sessionKey": MAIN, "message": "go", "idempotencyKey": "1"})
    run_id = str(answer["runId"])
    wait_for(system, facts.RunCompleted)
    shown = cast("dict[str, Any]", system.debug.show(run_id))
    (said, *_) = [
        cause for cause in why(system, shown["place"]["position"])["causes"] if cause["who"] != MAIN
    ]

    assert said["who"] == "operator"
    assert "operator" in [lane["name"] for lane in shown["lanes"]]


@pytest.mark.clause("WHY-1")
@pytest.mark.parametrize(
    ("topic", "payload", "how"),
    [
        ("session_archived.1", b'{"reason":"deleted","sessionId":"s"}', "The session leaves the list: it was deleted."),
        (
            "session_reset.1",
            b'{"previousSessionId":"s","sessionId":"t"}',
            "The session is reset; what was said before is s.",
        ),
        (
            "session_opened.1",
            b'{"agentId":"main","key":"agent:main:side","openedBy":"operator","sessionId":"s"}',
            "The session opens: the operator asks for it.",
        ),
        ("run_aborted.1", b'{"by":"archive","gone":true,"runId":"r"}', "was stopped, as its session was archived"),
    ],
)  # fmt: skip
def test_a_log_of_before_that_does_not_say_who_is_read_as_it_was(
    topic: str, payload: bytes, how: str
) -> None:
    event = decode(topic, payload)

    assert encode(event) == payload
    assert words_of(event, Frame(key=SIDE)).how == how


@pytest.mark.clause("SEND-11")
def test_a_text_that_was_sent_before_its_sender_was_recorded_is_answered_alike_again(
    system: SessionSystem,
) -> None:
    """The event of before has no `by`; the same call, made again today, means that delivery, and makes no other."""
    service, route = system.service, facts.Route(channel="t", to="1")
    call = Call(Caller(), service.reader.requester(None))
    run_id = run_id_of(service, call, method="send", idempotency_key="once")
    before = delivery_of(
        service,
        key=service.reader.parse(MAIN),
        route=route,
        text="hello",
        run_id=run_id,
        budget=facts.Budget(root=run_id, path=(MAIN,)),
        purpose="send",
    )
    deliver(service, before)
    sent = {"sessionKey": MAIN, "channel": "t", "to": "1", "message": "hello", "idempotencyKey": "once"}
    again = system.gateway.perform("send", sent)
    (decided,) = [item.event for item in system.log.all() if isinstance(item.event, facts.DeliveryDecided)]

    assert (again["messageId"], decided.by) == (decided.delivery_id, None)
    with pytest.raises(ToolRefused, match="idempotency"):
        system.gateway.perform("send", sent | {"message": "something else"})


@pytest.mark.clause("PLACE-5")
def test_a_sub_agent_is_called_in_each_place_as_in_the_diagram_and_found_by_that_name(log_url: str) -> None:
    """Its lane had its label, and the place beside it the beginning of its id."""

    def main(turn: Turn) -> str:
        if turn.message == "go":
            turn.tools.call("sessions_spawn", {"task": "count", "label": "kid"})
        return "done"

    with SessionSystem(log_url, agents={"main": main}) as system:
        system.gateway.perform("chat.send", {"sessionKey": MAIN, "message": "go", "idempotencyKey": "1"})
        wait_for(system, facts.SpawnClosed)
        (spawn,) = system.debug.runs(kind=["spawn"])["runs"]
        child = str(spawn["target"])
        texts = [system.debug.state(child, at=at.position)["place"]["text"] for at in system.log.all()]
        lanes = [str(lane["name"]) for lane in system.debug.show(spawn["id"])["lanes"]]
        found = system.debug.state("main/kid")["sessions"]

    assert "main/kid" in lanes
    assert any("main/kid begins its task" in text for text in texts)
    assert not [text for text in texts if "subagent:" in text]
    assert [session["key"] for session in found] == [child]
