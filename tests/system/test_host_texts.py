"""Texts of a class of the host's own: markup, members of an enum, and one whose methods all raise. Each is taken for its characters."""

import enum
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from intersession import GoingOn, MemoryChannel, Message, Reply, SessionSystem, Turn
from intersession_actors.outside.channels.channels import Channel
from intersession_actors.outside.channels.outcomes import ThreadOpened, delivery_of, thread_of
from intersession_actors.running.failures.failure import described
from intersession_actors.running.host.calls import Came, Raised
from intersession_events.facts import ExchangeHeld
from intersession_events.log.recorded import parts_in
from support.running import WAIT

OPEN: dict[str, Any] = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "session": {"agentToAgent": {"maxPingPongTurns": 0}},
}


class Markup(str):
    """A text as libraries for pages make them."""

    __slots__ = ()


class Word(enum.StrEnum):
    YES = "yes"


def _raising(name: str) -> Callable[..., NoReturn]:
    def method(*_: object, **__: object) -> NoReturn:
        raise RuntimeError(name)

    return method


_OF_EVERY_OBJECT = {*dir(type), "__slots__", "__getattribute__", "__getnewargs__"} - {
    "__hash__",
    "__eq__",
    "__str__",
    "__repr__",
}
Hostile: type[str] = type(
    "Hostile", (str,), {name: _raising(name) for name in dir(str) if name not in _OF_EVERY_OBJECT}
)

TEXTS = pytest.mark.parametrize("made", [Markup, Word, Hostile], ids=["markup", "enum", "hostile"])


@TEXTS
@pytest.mark.clause("LIVE-1")
def test_a_rule_that_holds_with_such_a_text_holds(log_url: str, made: Callable[[str], str]) -> None:
    """Its text was neither held nor did it go on."""

    def rule(_going: GoingOn) -> str:
        return made("yes")

    with SessionSystem(log_url, agents={"main": _says, "ops": _says}, config=OPEN, hold=rule) as system:
        asked = {"sessionKey": "agent:ops:main", "message": "?", "timeoutSeconds": 0}
        system.inbound(channel="x", chat_id="1", sender="a", text="hi", agent_id="ops", deliver=False)
        system.tools("agent:main:main").call("sessions_send", asked)
        held = next(
            one.event
            for one in parts_in(system.follow(0, timeout=WAIT))
            if isinstance(one.event, ExchangeHeld)
        )
        assert (held.note, type(held.note)) == ("yes", str)
        # A machine that is at work makes handlers slow, which is told, too.
        assert system.status()["failures"].keys() <= {"slow_handler"}


def _says(turn: Turn) -> str:
    return turn.message


@TEXTS
@pytest.mark.clause("GATE-3")
def test_an_agent_that_answers_with_such_a_text_has_answered(
    log_url: str, made: Callable[[str], str]
) -> None:
    """Markup was no reply, and an error that says itself so left the run open for ever."""

    class Odd(Exception):
        def __str__(self) -> str:
            return made("yes")

    def fails(_turn: Turn) -> str:
        raise Odd

    agents: dict[str, Any] = {
        "main": lambda _: made("yes"),
        "reply": lambda _: Reply(made("yes"), model=made("yes"), stop_reason=made("yes")),
        "messages": lambda _: Reply(
            "yes", messages=(Message(id="1", role="assistant", content=made("yes"), timestamp=1),)
        ),
        "fails": fails,
    }
    with SessionSystem(log_url, agents=agents) as system:
        for agent in agents:
            answer = system.inbound(
                channel="x", chat_id="1", sender="a", text="hi", agent_id=agent, wait=WAIT
            )
            said = answer["status"], answer.get("reply", answer.get("error"))
            assert said == (("error", "backend: Odd: yes") if agent == "fails" else ("ok", "yes"))


@TEXTS
@pytest.mark.clause("ANN-3")
def test_what_a_channel_gives_with_such_a_text_counts(made: Callable[[str], str]) -> None:
    channel = Channel(deliver=print)
    opened = thread_of(Came(made("yes")), channel)
    assert opened == ThreadOpened(thread="yes")
    assert type(getattr(opened, "thread", None)) is str

    class Odd(Exception):
        def __str__(self) -> str:
            return made("yes")

    assert described(Odd()) == "Odd: yes"
    assert getattr(delivery_of(Raised(Odd()), None, idempotent=False), "error", None) == "Odd: yes"


@pytest.mark.parametrize("made", [Markup, Word], ids=["markup", "enum"])
@pytest.mark.clause("INB-1", "SEND-1")
def test_calls_take_such_texts(log_url: str, made: Callable[[str], str]) -> None:
    """A bare TypeError of the encoder's came out, or a refusal that nobody could act on."""
    said = made("yes")
    with SessionSystem(
        log_url, agents={said: _says}, channels={said: MemoryChannel()}, config=OPEN
    ) as system:
        answer = system.inbound(
            channel=said, chat_id=said, sender=said, text=said, agent_id=said, message_id=said, wait=WAIT
        )
        assert (answer["status"], answer.get("reply")) == ("ok", "yes")
        asked: dict[str, Any] = {"label": said, "message": said, "timeoutSeconds": 0}
        in_markup: Any = {Markup(name): value for name, value in asked.items()}
        for given in (asked, in_markup):
            sent = system.tools("agent:yes:other", name=said).call("sessions_send", given)
            assert (sent["status"], sent.get("code")) == ("error", "not_visible")
        run = system.gateway.call(
            "agent", {"message": said, "idempotencyKey": said, "sessionKey": made("yes")}
        )
        assert run.get("status") in {"accepted", "error"}
        assert system.debug.search(said)["hits"]
