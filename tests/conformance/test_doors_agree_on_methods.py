"""The methods from Python and over the WebSocket: the same answers, and of a run the same for ever (GATE)."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.any_log import Logs
from support.doors.command_line import ran
from support.doors.every import OverWebSocket, open_doors
from support.doors.gateway_live import LiveGateway
from support.doors.twins import CONFIG, Twin

Said = dict[str, Any]
MAIN, OPS, SLOW, GROUP = (
    "agent:main:main",
    "agent:ops:main",
    "agent:slow:main",
    "agent:main:telegram:group:r1",
)


class Step(NamedTuple):
    """A call of a method, and what is to be true of its answer. `name` is what the caller calls its run."""

    clauses: str
    method: str
    params: Mapping[str, Any]
    right: Callable[[Said], object]


def status(expected: str, **fields: Any) -> Callable[[Said], object]:
    return lambda said: said["status"] == expected and said | fields == said


def refused(code: str) -> Callable[[Said], object]:
    return lambda said: said["code"] == code and set(said) == {"status", "code", "error"}


def fine(said: Said) -> object:
    return "code" not in said


STEPS = [
    Step("GATE-1", "agent", {"message": "hi", "sessionKey": OPS, "idempotencyKey": "1"}, status("accepted")),
    Step("GATE-3", "agent.wait", {"runId": "1"}, status("ok", reply="heard: hi")),
    Step("GATE-1", "agent", {"message": "hi", "sessionKey": OPS, "idempotencyKey": "1"}, status("accepted")),
    Step("SEND-11", "agent", {"message": "ho", "sessionKey": OPS, "idempotencyKey": "1"}, refused("idempotency_conflict")),
    Step("GATE-1", "agent", {"message": "hi", "agentId": "nobody", "idempotencyKey": "2"}, refused("unknown_agent")),
    Step("GATE-1", "agent", {"message": " ", "sessionKey": OPS, "idempotencyKey": "3"}, refused("invalid_request")),
    Step("GATE-1", "agent", {"message": "fail", "sessionKey": OPS, "idempotencyKey": "4"}, status("accepted")),
    Step("GATE-3", "agent.wait", {"runId": "4"}, status("error")),
    Step("GATE-6", "runs.retry", {"runId": "4"}, status("accepted", sessionKey=OPS)),
    Step("GATE-6", "runs.retry", {"runId": "4"}, status("accepted", sessionKey=OPS)),
    Step("GATE-6", "runs.retry", {"runId": "1"}, refused("invalid_request")),
    Step("GATE-6", "runs.retry", {"runId": "nobody's"}, refused("unknown_run")),
    Step("GATE-1", "agent", {"message": "hi", "sessionKey": SLOW, "idempotencyKey": "5"}, status("accepted")),
    Step("GATE-3", "agent.wait", {"runId": "5", "timeoutMs": 0}, status("timeout")),
    Step("GATE-4", "agent", {"message": "hi", "sessionKey": SLOW, "idempotencyKey": "6", "busy": "reject"}, refused("busy")),
    Step("GATE-5", "chat.abort", {"sessionKey": SLOW}, lambda said: said["aborted"]),
    Step("GATE-3 GATE-5", "agent.wait", {"runId": "5"}, status("aborted")),
    Step("GATE-3", "agent.wait", {"runId": "nobody's"}, refused("unknown_run")),
    Step("GATE-1", "chat.send", {"message": "hi", "sessionKey": GROUP, "idempotencyKey": "7"}, status("started")),
    Step("GATE-3", "agent.wait", {"runId": "7"}, status("ok")),
    Step("GATE-1", "chat.inject", {"sessionKey": GROUP, "message": "a note"}, fine),
    Step("GATE-1 HIST-3", "chat.history", {"sessionKey": GROUP}, lambda said: len(said["messages"]) == 4),
    Step("GATE-2", "sessions.patch", {"key": GROUP, "label": "room"}, fine),
    Step("GATE-2", "sessions.patch", {"key": GROUP, "spawnedBy": MAIN}, refused("invalid_request")),
    Step("GATE-1", "sessions.resolve", {"label": "room"}, lambda said: said["key"] == GROUP),
    Step("GATE-1", "sessions.resolve", {"key": "agent:main:nobody"}, refused("not_visible")),
    Step("GATE-1", "sessions.preview", {"keys": [GROUP, OPS]}, fine),
    Step("BUNDLE-8", "bundles.make", {"session": GROUP}, lambda said: said["unproven"] == 0),
    Step("BUNDLE-8", "bundles.make", {}, refused("invalid_request")),
    Step("GATE-2", "sessions.reset", {"key": GROUP}, fine),
    Step("ERASE-1", "sessions.erase", {"key": GROUP, "reason": "asked for"}, fine),
    Step("FORGET-1", "people.forget", {"person": "telegram:ann"}, fine),
    Step("FORGET-1", "people.forget", {"person": "telegram:nobody"}, refused("invalid_request")),
    Step("FORGET-4", "retention.apply", {}, refused("invalid_request")),
    Step("GATE-2", "sessions.delete", {"key": GROUP}, fine),
    Step("GATE-2", "sessions.delete", {"key": MAIN}, refused("main_session")),
    Step("GATE-1", "sessions.list", {}, fine),
    Step("GATE-1", "agents.list", {}, lambda said: said["defaultId"] == "main"),
    Step("GATE-1", "agents.list", {"surprise": 1}, refused("invalid_request")),
    Step("GATE-1", "nothing.at.all", {}, refused("invalid_request")),
]  # fmt: skip


def played(call: Callable[[str, Mapping[str, Any]], bytes], twin: Twin) -> list[bytes]:
    """Take all steps, one when the one before it has had its consequences."""
    answers: list[bytes] = []
    person: dict[str, Any] = {"sender": "ann", "deliver": False, "text": "hello"}
    twin.system.inbound(channel="telegram", chat_id="42", **person)
    twin.system.inbound(channel="telegram", chat_id="r1", chat_type="group", **person)
    for step in STEPS:
        twin.settle()
        if step.method == "agent.wait" and step.params["runId"] == "5" and "timeoutMs" in step.params:
            twin.gate.reached()
        answers.append(call(step.method, step.params))
    twin.settle()
    return answers


def in_python(twin: Twin) -> Callable[[str, Mapping[str, Any]], bytes]:
    """Return the methods as Python has them; a client of the wire calls a run by the name that it gave."""

    def call(method: str, params: Mapping[str, Any]) -> bytes:
        said = twin.system.gateway.call(method, params)
        name = params.get("runId", params.get("idempotencyKey"))
        if "retryOf" in said:
            said["retryOf"] = name
        elif name is not None and "runId" in said:
            said["runId"] = name
        if method == "chat.abort":
            said["runIds"] = ["5"]
        return json.dumps(said).encode()

    return call


@pytest.fixture(scope="module")
def from_python(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Said]]:
    with Twin(logs, tmp_path_factory.mktemp("methods")) as twin:
        yield [json.loads(answer) for answer in played(in_python(twin), twin)]


def _parameters() -> Iterator[Any]:
    for number, step in enumerate(STEPS):
        marks = [pytest.mark.clause(clause) for clause in step.clauses.split()]
        yield pytest.param(number, marks=marks, id=f"{number} {step.method}")


@pytest.mark.parametrize("number", list(_parameters()))
def test_each_method_has_the_answer_that_the_clauses_want(from_python: list[Said], number: int) -> None:
    assert STEPS[number].right(from_python[number]), from_python[number]


@pytest.mark.clause("GATE-1")
def test_the_methods_answer_alike_over_the_wire(from_python: list[Said], logs: Logs, tmp_path: Path) -> None:
    with Twin(logs, tmp_path) as twin, open_doors(twin.system, CONFIG, tmp_path, ("WebSocket",)) as doors:
        wire = doors["WebSocket"]
        assert isinstance(wire, OverWebSocket)
        answers = [json.loads(answer) for answer in played(wire.call, twin)]

    differing = [
        (step.method, step.params, said, expected)
        for step, said, expected in zip(STEPS, answers, from_python, strict=True)
        if json.dumps(said) != json.dumps(expected)
    ]
    # Connections have methods of their own, and name those too.
    [(unknown, _params, said, expected)] = differing
    assert unknown == "nothing.at.all"
    own = set(said["error"].split(", ")) - set(expected["error"].split(", "))
    assert own == {"config.get", "connect", "system-presence", "tools.invoke", "tools.names"}


@pytest.mark.clause("GATE-3", "SEND-9", "O7")
def test_a_run_has_the_same_end_for_whoever_asks_whenever(logs: Logs, tmp_path: Path) -> None:
    sent = {"sessionKey": OPS, "message": "hi", "idempotencyKey": "k"}
    failed = {"sessionKey": OPS, "message": "fail", "idempotencyKey": "f"}
    with Twin(logs, tmp_path) as twin:
        runs = [twin.system.tools(MAIN).call("sessions_send", args)["runId"] for args in (sent, failed)]
        twin.settle()
        before = [waited_everywhere(twin, run_id) for run_id in runs]
        twin.restart()
        after = [waited_everywhere(twin, run_id) for run_id in runs]
        again = twin.system.tools(MAIN).call("sessions_send", sent)
        on_the_command_line = ran("runs", "--json", f"--store={logs.at(tmp_path)}").json["runs"]

    assert [len(answers) for answers in before] == [1, 1]
    assert before == after
    (good,), (bad,) = ([json.loads(answer) for answer in answers] for answers in before)
    assert (good["status"], good["reply"], bad["status"]) == ("ok", "heard: hi", "error")
    assert (again["runId"], again["reply"]) == (good["runId"], "heard: hi")
    assert [flow["runId"] for flow in on_the_command_line] == [*reversed(runs)]


def waited_everywhere(twin: Twin, run_id: str) -> set[str]:
    """Wait for a run from Python, from a coroutine and from two connections; return the different answers."""
    gateway, params = twin.system.gateway, {"runId": run_id, "timeoutMs": 20_000}
    said = [gateway.call("agent.wait", params), asyncio.run(gateway.acall("agent.wait", params))]
    with LiveGateway(twin.system) as live:
        for _ in range(2):
            with live.client() as client:
                said.append(client.request("agent.wait", params)["payload"])
    return {json.dumps(answer) for answer in said}
