"""A worker and a writer of two versions, as they stand beside each other while a log is upgraded (WORK-19).

`acts_1.jsonl` is what a worker of the first edition sent in a turn of `busy`, recorded from that version.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from intersession import SessionSystem, Turn
from intersession.gateway.protocol.line import Line
from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.outside.workers import remote
from intersession_events import facts
from support.beside import beside
from support.running import ended
from support.stub_worker import StubWorker

RECORDED = Path(__file__).parents[2] / "data" / "older_versions" / "acts_1.jsonl"
CONFIG = {"agents": {"list": [{"id": "main", "worker": True}]}}


def busy(turn: Turn) -> str:
    turn.stream("a ")
    turn.tools.call("sessions_list", {"limit": 3})
    turn.tools.call("sessions_list", {"limit": 3})
    turn.tools.call("agents_list")
    turn.recorder.said([facts.TextBlock(text="I look")])
    call = turn.record_call("look", {"at": "it"})
    turn.approve(call, "look", {"at": "it"})
    turn.record_result(call, "look", "seen")
    return "done"


def recorded_acts() -> Iterator[dict[str, Any]]:
    for line in RECORDED.read_text().splitlines():
        yield json.loads(line)


@pytest.mark.clause("WORK-19")
def test_what_a_worker_of_the_version_before_does_counts_once_over_a_take_over(log_url: str) -> None:
    def do_all(worker: StubWorker, offer: dict[str, Any]) -> Sequence[object]:
        return [worker.ask_over_take_over(offer, act.pop("type"), **act) for act in recorded_acts()]

    with SessionSystem(log_url, config=CONFIG) as system:
        worker = StubWorker(system, "main")
        worker.announce()
        sent = {"sessionKey": "main", "message": "hello", "idempotencyKey": "hello"}
        run_id = system.gateway.call("chat.send", sent)["runId"]
        offer = worker.one()
        answers = do_all(worker, offer)
        done = len(system.log.stream(offer["stream"]))
        assert do_all(worker, offer) == answers
        system.close()  # at once: nobody waits for what a worker does

    with SessionSystem(log_url, config=CONFIG) as system:
        worker.system = system
        do_all(worker, offer)
        assert len(system.log.stream(offer["stream"])) == done
        worker.answer(offer, "done")
        assert ended(system, run_id)["reply"] == "done"
        said = [facts.message_in(one.event) for one in system.log.stream(offer["stream"])]
    roles = [one.role for one in said if one is not None]
    assert (roles.count("assistant"), roles.count("toolResult")) == (6, 4)


@pytest.mark.clause("WORK-19")
def test_a_worker_sends_a_writer_of_the_version_before_what_that_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "EDITION", b"")  # as that offered
    monkeypatch.delitem(cast("dict[str, object]", METHODS), "worker.next")
    sent, asked, ask = list[Any](), set[str](), Line.ask

    def asking(self: Line, method: str, params: Any, **named: Any) -> Any:
        asked.add(method)
        if method == "worker.act":
            sent.append(json.loads(json.dumps(params["act"])))
        return ask(self, method, params, **named)

    monkeypatch.setattr(Line, "ask", asking)
    with beside(":memory:", {"main": busy}) as writer:
        told = writer.ask("hello")
        assert told["reply"] == "done"
    assert "worker.answer" in asked
    assert "worker.next" not in asked
    as_then = json.dumps([*recorded_acts()]).replace("RUN", told["runId"])
    left_out = {"isNew": False, "isError": False}  # they stand for what is not said
    assert [{**left_out, **act} for act in sent] == [{**left_out, **act} for act in json.loads(as_then)]
