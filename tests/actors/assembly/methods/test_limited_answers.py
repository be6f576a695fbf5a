"""What a credential is answered does not depend on sessions, runs and agents beyond its reach (C6)."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import SessionSystem, Turn, echo
from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.calls.service.callers import OPERATOR, Caller
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.rules.policy.access import may_act_for
from support.as_caller import called_by
from support.fakes import TickingClock
from support.running import SEES_ALL, Gate, merged

BOT = Caller.by_credential("bot", ("agent:ops:main", "agent:ops:notes*"))
ELSEWHERE = Caller.by_credential("elsewhere", ("agent:vault:*",))
NOTES, SECRET = "agent:ops:notes", "agent:ops:secret"
MODELS = {"models": {"providers": {"fake": {"models": [{"id": "one"}, {"id": "two"}]}}}}


class Twins:
    """Two systems in which the bot's sessions are the same; in the second one much more goes on beside them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.gate = Gate()
        self.quiet = stack.enter_context(
            SessionSystem(
                folder / "quiet.db",
                agents={"ops": echo()},
                config=merged(SEES_ALL, MODELS, {"agents": {"list": [{"id": "ops", "default": True}]}}),
                clock=TickingClock(),
            )
        )
        vault = {"id": "vault", "default": True, "model": "fake/two", "name": "The Vault"}
        self.busy = stack.enter_context(
            SessionSystem(
                folder / "busy.db",
                agents={"ops": echo(), "vault": self._stops},
                config=merged(SEES_ALL, MODELS, {"agents": {"list": [vault, {"id": "ops"}]}}),
                clock=TickingClock(),
            )
        )
        stack.callback(self.gate.open)
        self._run(self.busy, "agent:vault:main", "k", ELSEWHERE)
        self.gate.reached()
        self._run(self.busy, SECRET, "before")
        self._patch(self.busy, SECRET, "desk")
        self._patch(self.busy, "agent:vault:main", "desk")
        for system in (self.quiet, self.busy):
            self._run(system, NOTES, "k")
            self._run(system, "agent:ops:main", "own")
            self._patch(system, NOTES, "paper")
        self._run(self.busy, "agent:vault:other", "late", ELSEWHERE)

    def answers(self, method: str, params: dict[str, Any]) -> list[Any]:
        return [_plain(called_by(BOT, system, method, params)) for system in (self.quiet, self.busy)]

    def _run(self, system: SessionSystem, session: str, key: str, caller: Caller = OPERATOR) -> None:
        call = {"message": f"hello {key}", "idempotencyKey": key, "sessionKey": session}
        accepted = called_by(caller, system, "agent", call)
        if caller is OPERATOR:
            assert system.gateway.call("agent.wait", {"runId": accepted["runId"]})["status"] == "ok"

    def _patch(self, system: SessionSystem, key: str, label: str) -> None:
        assert system.gateway.call("sessions.patch", {"key": key, "label": label})["ok"]

    def _stops(self, turn: Turn) -> str:
        self.gate.stop(turn)
        return "at last"


def _plain(answer: Any) -> Any:
    """Return an answer without what is random, a time, or the position of the log, which is everybody's."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", json.dumps(answer))
    text = re.sub(r"\b[0-9]{13}\b", '"TIME"', text)
    text = re.sub(r'("age": ?)[0-9]+', r'\1"TIME"', text)
    return json.loads(re.sub(r'"(position|accepted|asOf)": [0-9]+', r'"\1": 0', text))


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    with ExitStack() as stack:
        yield Twins(tmp_path_factory.mktemp("twins"), stack)


def _of_verbs(*values: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each verb of the debugger with each value for each argument that may be a text, and for all that are required."""
    for name, verb in VERBS.items():
        fields = msgspec.structs.fields(verb.arguments)
        required = [field.encode_name for field in fields if field.required]
        texts = [field.encode_name for field in fields if "str" in str(field.type)]
        for value in values:
            for given in [required] if required else [[text] for text in texts]:
                yield f"debug.{name}", dict.fromkeys(given, value)


SEND = {"message": "hi", "idempotencyKey": "n"}
A_CALL = {"kind": "agent", "id": "r1", "attempt": 1}
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("health", {}),
    ("status", {"probe": True}),
    ("status", {"at": "head"}),
    ("agents.list", {}),
    ("models.list", {}),
    ("usage.budgets", {}),
    ("agent.identity.get", {}),
    ("agent.identity.get", {"agentId": "vault"}),
    ("agent.identity.get", {"agentId": "ghost"}),
    ("agent.identity.get", {"agentId": "no agent's id"}),
    ("agent.identity.get", {"sessionKey": "agent:vault:main"}),
    ("agent.identity.get", {"agentId": "vault", "sessionKey": NOTES}),
    ("agent", {**SEND, "agentId": "vault"}),
    ("agent", {**SEND, "sessionKey": SECRET}),
    ("agent", {**SEND, "sessionKey": "agent:vault:main", "deliver": True}),
    ("agent.wait", {"runId": "k", "timeoutMs": 1}),
    ("agent.wait", {"runId": "before", "timeoutMs": 1}),
    ("agent.wait", {"runId": "late", "timeoutMs": 1}),
    ("calls.held", {}),
    ("calls.release", {"holdId": "00000000-0000-4000-8000-000000000001"}),
    ("chat.abort", {"sessionKey": NOTES, "runId": "late"}),
    ("chat.abort", {"sessionKey": SECRET}),
    ("chat.history", {"sessionKey": "agent:vault:main"}),
    ("exchanges.held", {}),
    ("exchanges.hold", {"runId": "before"}),
    ("exchanges.hold", {"runId": "ghost"}),
    ("exchanges.hold", {"sessionKey": SECRET}),
    ("exchanges.hold", {"sessionKey": "agent:vault:main"}),
    ("exchanges.release", {"runId": "late"}),
    ("exchanges.release", {"sessionKey": SECRET, "action": "drop"}),
    ("chat.history", {"sessionKey": NOTES}),
    ("chat.inject", {"sessionKey": SECRET, "message": "x"}),
    ("chat.send", {**SEND, "sessionKey": SECRET}),
    ("bundles.make", {"run": "before"}),
    ("bundles.make", {"all": True}),
    ("exports.make", {"to": "cloudevents"}),
    ("exports.make", {"to": "openai", "session": SECRET}),
    ("checkpoints.take", {}),
    ("copies.known", {}),
    ("copies.rows", {}),
    ("copies.at", {"places": [["session:agent:vault:main", 1]]}),
    ("copies.files", {}),
    ("copies.file", {"name": "0" * 64}),
    *_of_verbs("before", "late", "before@end", SECRET, NOTES, "vault"),
    ("debug.hosts", {}),
    ("debug.state", {}),
    ("debug.state", {"from": 0}),
    ("deliveries.retry", {"deliveryId": "00000000-0000-4000-8000-000000000001"}),
    ("forks.list", {}),
    ("forks.list", {"run": "late"}),
    ("forks.make", {"run": "before"}),
    ("forks.make", {"run": "late", "at": "start", "agents": {"*": "recorded"}}),
    ("forks.remove", {"fork": "00000000"}),
    ("import.framework", {"from": "langgraph", "source": "/nowhere"}),
    ("import.openclaw", {"directory": "/nowhere"}),
    ("notes.pin", {"run": "before", "text": "x"}),
    ("notes.pin", {"run": "late", "at": "head", "text": "x"}),
    ("notes.pin", {"run": "ghost", "text": "x"}),
    ("runs.retry", {"runId": "before"}),
    ("runs.retry", {"runId": "late"}),
    ("send", {**SEND, "channel": "signal", "to": "+1", "sessionKey": SECRET}),
    ("send", {**SEND, "channel": "signal", "to": "+1"}),
    ("cron.list", {}),
    ("cron.status", {}),
    ("cron.runs", {"jobId": "vault"}),
    ("cron.run", {"jobId": "vault"}),
    ("cron.update", {"jobId": "vault", "patch": {"enabled": False}}),
    ("sessions.list", {}),
    ("sessions.list", {"label": "desk"}),
    ("sessions.list", {"agentId": "vault"}),
    ("sessions.list", {"search": "vault", "limit": 1}),
    ("sessions.list", {"spawnedBy": SECRET}),
    ("sessions.preview", {"keys": [SECRET, NOTES, "agent:vault:main"]}),
    ("sessions.resolve", {"label": "desk"}),
    ("sessions.resolve", {"label": "desk", "agentId": "vault"}),
    ("sessions.resolve", {"key": SECRET}),
    ("sessions.reset", {"key": SECRET}),
    ("sessions.compact", {"key": SECRET}),
    ("sessions.delete", {"key": SECRET}),
    ("sessions.erase", {"key": SECRET}),
    ("people.forget", {"person": "telegram:ann"}),
    ("retention.apply", {}),
    ("sessions.delete", {"key": "agent:vault:main"}),
    ("sessions.patch", {"key": SECRET, "label": "x"}),
    ("sessions.patch", {"key": NOTES, "label": "desk"}),
    ("sessions.patch", {"key": "agent:ops:main", "label": "desk"}),
    ("worker.announce", {"worker": "w", "host": "h", "version": "1", "agents": {"vault": ""}, "seats": 1}),
    ("worker.take", {"worker": "w", "most": 1}),
    ("worker.renew", {"worker": "w", "calls": [A_CALL]}),
    ("worker.events", {"worker": "w", **A_CALL}),
    ("worker.act", {"secret": "s", "act": {"type": "has", "messageId": "m"}, **A_CALL}),
    ("worker.answer", {"worker": "w", "content": "{}", **A_CALL}),
    ("worker.next", {"worker": "w", "answer": {"content": "{}", **A_CALL}}),
    ("worker.leave", {"worker": "w"}),
]


@pytest.mark.clause("VIS-6", "X2")
@pytest.mark.parametrize(("method", "params"), QUESTIONS, ids=str)
def test_what_goes_on_elsewhere_changes_no_answer(twins: Twins, method: str, params: dict[str, Any]) -> None:
    quiet, busy = twins.answers(method, params)

    assert busy == quiet
    assert not re.search("vault", json.dumps(busy).replace(json.dumps(params)[1:-1], ""), re.IGNORECASE) or (
        "vault" in json.dumps(params)
    )


def test_every_method_is_tried() -> None:
    assert {method for method, _ in QUESTIONS} == set(METHODS)


@pytest.mark.clause("GATE-2", "VIS-6")
def test_a_label_that_the_caller_can_hear_of_is_still_refused(tmp_path: Path) -> None:
    with ExitStack() as stack:
        _hears_of_labels(Twins(tmp_path, stack))


def _hears_of_labels(twins: Twins) -> None:
    paper = {"key": "agent:ops:main", "label": "paper"}
    for system in (twins.quiet, twins.busy):
        assert called_by(BOT, system, "sessions.patch", paper)["code"] == "invalid_request"
        assert system.gateway.call("sessions.patch", paper)["code"] == "invalid_request"
    desk = twins.busy.gateway.call("sessions.patch", {"key": "agent:ops:drafts", "label": "desk"})
    assert desk["error"] == "label: another session of 'ops' has it, use another one"


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize(
    ("patterns", "agents"),
    [
        (("agent:ops:main",), {"ops"}),
        (("agent:ops:*", "agent:main:x"), {"ops", "main"}),
        (("agent:*:main",), {"ops", "main", "opsroom"}),
        (("agent:ops*",), {"ops", "opsroom"}),
        (("agent:[mo]*",), {"ops", "main", "opsroom"}),
        (("*:main",), {"ops", "main", "opsroom"}),
        (("agent:op?:*",), {"ops"}),
        (("agent:ops",), set()),
        ((), set()),
    ],
)
def test_an_agent_is_within_reach_where_a_glob_fits_some_session_of_it(
    patterns: tuple[str, ...], agents: set[str]
) -> None:
    assert {each for each in ("ops", "main", "opsroom") if may_act_for(patterns, each)} == agents
