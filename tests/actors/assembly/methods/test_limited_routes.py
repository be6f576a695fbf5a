"""A credential for some sessions sends to where those sessions are, and nowhere else (C2)."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, SessionSystem, echo
from intersession_actors.assembly.methods import params
from intersession_actors.calls.service.callers import Caller
from intersession_events.facts import DeliveryDone
from support.as_caller import called_by
from support.running import SEES_ALL, WAIT, merged, wait_for_number

BOT = Caller.by_credential("bot", ("agent:ops:*",))
ROOM = "agent:ops:signal:group:room"


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def system(log_url: str, channel: MemoryChannel) -> Iterator[SessionSystem]:
    with SessionSystem(
        log_url,
        agents={"main": echo(), "ops": echo()},
        channels={"signal": channel, "telegram": channel},
        config=merged(SEES_ALL, {"session": {"dmScope": "per-channel-peer"}}),
    ) as made:
        said: dict[str, Any] = {"text": "hello", "deliver": False, "wait": WAIT}
        made.inbound(channel="signal", chat_id="room", chat_type="group", sender="+1", agent_id="ops", **said)
        made.inbound(channel="signal", chat_id="+2", chat_type="direct", sender="+2", agent_id="ops", **said)
        made.inbound(
            channel="telegram",
            chat_id="7",
            chat_type="direct",
            sender="7",
            agent_id="ops",
            account="work",
            **said,
        )
        made.inbound(channel="signal", chat_id="+3", chat_type="direct", sender="+3", agent_id="main", **said)
        yield made


def sends(system: SessionSystem, **fields: Any) -> Any:
    given = {"message": "hi", "idempotencyKey": str(fields), "sessionKey": ROOM, **fields}
    return called_by(BOT, system, "send", given)


def delivers(system: SessionSystem, **fields: Any) -> Any:
    given = {"message": "hi", "idempotencyKey": str(fields), "sessionKey": ROOM, "deliver": True, **fields}
    return called_by(BOT, system, "agent", given)


ELSEWHERE: list[dict[str, Any]] = [
    {"channel": "signal", "to": "+9"},
    {"channel": "signal", "to": "+3"},  # there is such a session, of main
    {"channel": "telegram", "to": "room"},
    {"channel": "telegram", "to": "7", "accountId": "private"},
    {"channel": "signal", "to": "room", "threadId": "other"},
    {"channel": "Signal", "to": "room"},
]


@pytest.mark.clause("VIS-6", "GATE-1")
@pytest.mark.parametrize("route", ELSEWHERE, ids=str)
def test_a_limited_credential_sends_nowhere_else(
    system: SessionSystem, channel: MemoryChannel, route: dict[str, Any]
) -> None:
    reply = {{"channel": "replyChannel", "to": "replyTo", "accountId": "replyAccountId"}.get(name, name): value
             for name, value in route.items()}  # fmt: skip
    answers = [sends(system, **route), delivers(system, **route), delivers(system, **reply)]

    assert {answer["code"] for answer in answers} == {"forbidden"}
    assert len({answer["error"].partition(":")[2] for answer in answers}) == 1
    assert list(channel.delivered) == []


@pytest.mark.clause("VIS-6", "GATE-1")
def test_what_is_told_does_not_depend_on_the_sessions_of_others(system: SessionSystem) -> None:
    known, unknown = sends(system, channel="signal", to="+3"), sends(system, channel="signal", to="+9")

    assert known == unknown


@pytest.mark.clause("VIS-6", "GATE-1")
@pytest.mark.parametrize(
    ("route", "account"),
    [
        ({"channel": "signal", "to": "room"}, None),
        ({"channel": "signal", "to": "+2"}, None),
        ({"channel": "telegram", "to": "7"}, "work"),
        ({"channel": "telegram", "to": "7", "accountId": "work"}, "work"),
    ],
    ids=str,
)
def test_a_limited_credential_sends_to_the_routes_of_its_sessions(
    system: SessionSystem, channel: MemoryChannel, route: dict[str, Any], account: str | None
) -> None:
    assert sends(system, **route)["status"] == "accepted"

    wait_for_number(system, DeliveryDone, 1)
    [only] = channel.delivered
    assert (only.channel, only.to, only.account) == (route["channel"], route["to"], account)


@pytest.mark.clause("VIS-6")
def test_the_operator_sends_anywhere(system: SessionSystem) -> None:
    call = {"message": "hi", "idempotencyKey": "k", "channel": "signal", "to": "+9"}

    for caller in (Caller(), Caller.by_credential("all", ("*",))):
        assert called_by(caller, system, "send", call)["status"] == "accepted"
    wait_for_number(system, DeliveryDone, 2)


@pytest.mark.clause("VIS-6", "KEY-9")
@pytest.mark.parametrize(
    "key",
    ["agent:ops:signal:group:made-up", "agent:ops:signal:channel:made-up", "agent:ops:signal:direct:+9"],
)
def test_a_limited_credential_opens_no_chat_to_have_its_route(system: SessionSystem, key: str) -> None:
    call = {"message": "hi", "idempotencyKey": "k"}
    route = {"channel": "signal", "to": key.rpartition(":")[2]}

    refused = [
        called_by(BOT, system, "agent", {**call, "sessionKey": key, "deliver": True}),
        called_by(BOT, system, "chat.send", {**call, "sessionKey": key, "deliver": True}),
        called_by(BOT, system, "send", {**call, **route, "sessionKey": key}),
        called_by(BOT, system, "sessions.patch", {"key": key, "displayName": "x"}),
    ]

    assert {answer["error"] for answer in refused} == {f"session not visible: {key}"}
    assert called_by(BOT, system, "agent", {**call, "sessionKey": "agent:ops:notes"})["runId"]


def test_every_parameter_that_names_a_route_is_known_here() -> None:
    """A method with such a parameter asks `Routes`, and is tried above. `deliveries.retry` only chooses among what is visible by it.

    `exports.make`, the operator's alone, calls the form of a file `to`.
    """
    words = {"channel", "to", "account_id", "thread_id", "reply_channel", "reply_to", "reply_account_id"}
    structs = [
        each for each in vars(params).values() if isinstance(each, type) and issubclass(each, params.Params)
    ]
    naming = {
        each.__name__ for each in structs if words & {field.name for field in msgspec.structs.fields(each)}
    }

    assert naming == {"AgentParams", "DeliveryRetryParams", "ExportParams", "SendParams"}
