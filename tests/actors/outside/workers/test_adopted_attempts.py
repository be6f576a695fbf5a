"""Attempts that outlive their writer: their time, their approvals, and what is seen of them afterwards (WORK-4, WORK-6)."""

import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, SessionSystem
from intersession_actors.outside.agents.result import Answered
from intersession_actors.outside.workers.desk import Desk
from intersession_actors.running.runtime.clock import SystemClock
from intersession_actors.running.runtime.threads import MachineThreads
from intersession_events import facts
from intersession_events.log.work_queue import Worker
from support.fakes import ManualClock
from support.running import WAIT, pass_time, wait_for
from support.stub_worker import StubWorker
from support.work_queue import queue, worker

CONFIG: dict[str, Any] = {
    "agents": {"defaults": {"timeoutSeconds": 600}, "list": [{"id": "main", "worker": True}]},
    "runs": {"workerAliveSeconds": 3_600},
}


def begun(system: SessionSystem) -> tuple[StubWorker, str, dict[str, Any]]:
    worker = StubWorker(system, "main")
    worker.announce()
    send = {"sessionKey": "main", "message": "hello", "idempotencyKey": "1"}
    run_id = system.gateway.call("chat.send", send)["runId"]
    return worker, run_id, worker.one()


@pytest.mark.clause("WORK-4")
def test_the_time_of_an_adopted_attempt_goes_on_from_when_it_began(log_url: str) -> None:
    clock = ManualClock()
    with SessionSystem(log_url, config=CONFIG, clock=clock) as system:
        _, run_id, _ = begun(system)
    clock.advance(500_000)
    with SessionSystem(log_url, config=CONFIG, clock=clock) as system:
        assert system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})["runState"] == "running"
        pass_time(system, clock, 100_000)
        failed = wait_for(system, facts.RunFailed)
        assert (failed.code, failed.attempt) == ("timeout", 1)


@pytest.mark.clause("WORK-6")
def test_an_approval_that_a_worker_waits_for_is_given_by_the_next_writer(log_url: str) -> None:
    config = CONFIG | {"tools": {"ask": ["pay"]}}
    channels = {"chat": MemoryChannel()}
    with SessionSystem(log_url, config=config, channels=channels) as system:
        worker, run_id, offer = begun(system)
        own = [{"type": "toolCall", "id": "c1", "name": "pay", "arguments": "{}"}]
        worker.act(offer, "toolCalls", calls=own, number=1)
        with ThreadPoolExecutor(1) as threads:
            ask = {"callId": "c1", "name": "pay", "args": {}, "isNew": True, "number": 1, "place": 1}
            asked = threads.submit(worker.ask_over_take_over, offer, "approval", **ask)
            held = wait_for(system, facts.ToolCallHeld)
            system.close()
            with SessionSystem(log_url, config=config, channels=channels) as again:
                worker.system = again
                again.release_call(held.hold_id, action="go_on")
                assert asked.result(WAIT) == {"arguments": {}, "refused": None, "editedBy": None}
                worker.act(offer, "toolResult", callId="c1", name="pay", content="paid", number=1)
                worker.answer(offer, "done")
                done = again.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})
                assert done["reply"] == "done"
                holds = [
                    one
                    for one in again.log.stream(offer["stream"])
                    if isinstance(one.event, facts.ToolCallHeld)
                ]
                assert len(holds) == 1


@pytest.mark.clause("WORK-4", "SEAL-1")
def test_what_a_worker_did_is_replayed_and_a_fork_of_it_offers_nothing_to_workers(log_url: str) -> None:
    with SessionSystem(log_url, config=CONFIG) as system:
        worker, run_id, offer = begun(system)
        worker.act(offer, "call", name="sessions_list", args={}, number=1, place=1)
        worker.answer(offer, "from a worker")
        system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})
        assert system.debug.replay()["firstDifference"] is None

        with system.fork(run_id, at="end", agents={"main": lambda _: "in the fork"}) as fork:
            assert fork._parts.workers is None
            sent = fork.gateway.call(
                "chat.send", {"sessionKey": "main", "message": "again", "idempotencyKey": "2"}
            )
            assert (
                fork.gateway.call("agent.wait", {"runId": sent["runId"], "timeoutMs": 20_000})["reply"]
                == "in the fork"
            )
        assert worker.take(wait=0.0) == []


@pytest.mark.clause("WORK-6")
@pytest.mark.parametrize("takes_over", [False, True])
def test_a_file_of_an_answer_is_stored_first_also_by_the_writer_before(
    log_url: str, *, takes_over: bool
) -> None:
    content = base64.b64encode(b"the minutes").decode()
    with SessionSystem(log_url, config=CONFIG) as system:
        worker, run_id, offer = begun(system)
        block = worker.act(offer, "putFile", content=content, name="minutes.txt", mimeType="text/plain")[
            "file"
        ]
        if takes_over:
            system.close()
        else:
            assert answered_with(worker, offer, run_id, block) == b"the minutes"
    if takes_over:
        with SessionSystem(log_url, config=CONFIG) as system:
            worker.system = system
            assert answered_with(worker, offer, run_id, block) == b"the minutes"


def answered_with(
    worker: StubWorker, offer: dict[str, Any], run_id: str, block: dict[str, Any]
) -> bytes | None:
    file = msgspec.convert(block, facts.FileBlock)
    worker.answer(offer, Answered(text="here", files=(file,)))
    system = worker.system
    assert system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})["reply"] == "here"
    ((named,),) = [
        facts.files_in(one.event) for one in system.log.stream(offer["stream"]) if facts.files_in(one.event)
    ]
    assert (named.name, named.sha256) == ("minutes.txt", file.sha256)
    return system.log.files.read(named.sha256)


def test_an_answer_can_not_name_a_file_that_was_not_stored_for_it(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker, run_id, offer = begun(system)
        file = facts.FileBlock(name="x", size=1, sha256="0" * 64, mime_type="text/plain")
        worker.answer(offer, Answered(text="here", files=(file,)))
        assert (
            "not stored" in system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})["error"]
        )


@pytest.mark.clause("WORK-4")
def test_a_worker_that_lived_at_the_start_may_leave_before_it_is_looked_for(passing_url: str) -> None:
    """Before: nobody was told, as the first look found what was known before it: no worker."""
    told = list[Sequence[Worker]]()
    with queue(passing_url) as q:
        q.workers.announce(worker("w1"))
        desk = Desk(q.writer, threads=MachineThreads(), clock=SystemClock(), alive_s=15, begins=lambda: None)
        desk.watch(told.append)
        desk.begin(expects=True)
        q.workers.leave("w1")
        desk.look()
        desk.stop()

    assert [[*workers] for workers in told] == [[]]


@pytest.mark.clause("WORK-4")
def test_agents_at_workers_are_known_before_exchanges_go_on_after_a_restart(log_url: str) -> None:
    """Before: the loop of an exchange ended with `no_agent`, since no worker had been heard of yet."""
    clock = ManualClock()
    config = CONFIG | {"session": {"agentToAgent": {"announce": "routed"}}}
    with SessionSystem(log_url, config=config, clock=clock) as system:
        worker, _, _ = begun(system)
    clock.advance(24 * 3_600_000)  # far longer than a worker may be silent
    with SessionSystem(log_url, config=config, clock=clock) as system:
        assert system.service.world.agents.has("main")
        worker.system = system
        worker.leave()
        assert not system.service.world.agents.has("main")
