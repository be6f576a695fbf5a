"""What the types of answers promise to type checkers is what calls answer: no field more, none of another type (D3)."""

from typing import Any

import msgspec
import pytest

from intersession import (
    AcceptedAnswer,
    AgentsAnswer,
    ChatHistoryAnswer,
    HistoryAnswer,
    InboundAnswer,
    ListAnswer,
    RunAnswer,
    SearchedAnswer,
    SendAnswer,
    SessionAnswer,
    SpawnAnswer,
    Turn,
    echo,
)
from support.running import WAIT, Booth

SAID: dict[str, Any] = {"channel": "telegram", "chat_id": "7", "sender": "ann", "text": "hi"}
SPAWN: dict[str, Any] = {
    "task": "look",
    "attachments": [{"name": "a.txt", "content": "x"}],
}
ATTACHMENTS = {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}


def fits(answer: object, shape: Any) -> None:
    assert isinstance(answer, dict)
    assert set(answer) <= {*shape.__annotations__, *shape.__required_keys__, *shape.__optional_keys__}
    msgspec.convert(answer, shape)


def failing(_turn: Turn) -> str:
    raise ConnectionError("down")


def test_the_types_of_answers_have_what_is_answered(booth: Booth) -> None:
    agents = {"main": echo(), "ops": echo(), "down": failing}
    system = booth.start(agents, None, ATTACHMENTS)
    operator, main, gateway = system.tools(), system.tools("agent:main:main"), system.gateway

    accepted = system.inbound(**SAID)
    fits(accepted, InboundAnswer)
    fits(gateway.call("agent.wait", {"runId": accepted.get("runId"), "timeoutMs": WAIT * 1000}), RunAnswer)
    fits(system.inbound(**SAID, sender_name="Ann", wait=WAIT), InboundAnswer)
    fits(system.inbound(**SAID, agent_id="down", wait=WAIT), InboundAnswer)
    fits(system.inbound(**(SAID | {"text": " "})), InboundAnswer)
    fits(gateway.call("agent", {"message": "hi", "agentId": "ops", "idempotencyKey": "k"}), AcceptedAnswer)
    fits(
        gateway.call("chat.send", {"message": "hi", "sessionKey": "main", "idempotencyKey": "l"}),
        AcceptedAnswer,
    )
    fits(gateway.call("chat.history", {"sessionKey": "main"}), ChatHistoryAnswer)
    for timeout in (0, WAIT):
        given = {"agentId": "ops", "message": f"in {timeout}", "timeoutSeconds": timeout}
        fits(main.call("sessions_send", given), SendAnswer)
    fits(main.call("sessions_send", {"agentId": "down", "message": "go", "timeoutSeconds": WAIT}), SendAnswer)
    fits(main.call("sessions_send", {"message": "to nobody"}), SendAnswer)
    fits(main.call("sessions_spawn", SPAWN), SpawnAnswer)
    fits(main.call("sessions_spawn", {"task": "x", "agentId": "ops"}), SpawnAnswer)
    fits(main.call("agents_list"), AgentsAnswer)
    fits(operator.call("sessions_history", {"sessionKey": "main", "limit": 1}), HistoryAnswer)
    fits(operator.call("sessions_history", {"sessionKey": "nobody"}), HistoryAnswer)
    fits(operator.call("sessions_search", {"query": "x*", "limit": 1000}), SearchedAnswer)
    fits(operator.call("sessions_search", {"query": "***"}), SearchedAnswer)
    listed = operator.call("sessions_list", {"messageLimit": 50, "limit": 1})
    fits(listed, ListAnswer)
    fits(operator.call("sessions_list", {"limit": "many"}), ListAnswer)
    for row in operator.call("sessions_list")["sessions"]:
        fits(row, SessionAnswer)


def test_a_field_that_a_type_does_not_have_would_be_found() -> None:
    with pytest.raises(AssertionError, match="colour"):
        fits({"status": "ok", "colour": "red"}, SendAnswer)
    with pytest.raises(msgspec.ValidationError, match="done"):
        fits({"status": "done"}, SendAnswer)
