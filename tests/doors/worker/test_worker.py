"""A worker in the life of its writer: calls that end early, connections that are lost, writers that change (WORK-10 to WORK-14)."""

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from intersession import ConfigError, SessionSystem, StoreUnavailable, ToolRefused, Turn
from intersession.gateway.admission import limits
from intersession.gateway.protocol.client import GatewayClient
from intersession.gateway.protocol.line import Line
from intersession.worker import sessions
from intersession.worker.gateway_work import GatewayWork
from intersession.worker.worker import Worker
from intersession_events.facts import (
    LateReplyDropped,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunStarted,
    SpawnClosed,
)
from support.beside import WITH_WORKERS, WORKER, beside
from support.doors.gateway_live import TOKEN, LiveGateway
from support.loopback import free_port
from support.running import SEES_ALL, WAIT, Gate, ended, merged, recorded, wait_for


class Standing:
    """An async agent that stands until it is let go, and says how it ended."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go_on = threading.Event()
        self.ended = threading.Event()
        self.calls = 0
        self.turns: list[Turn] = []
        self.was_cancelled = False

    async def __call__(self, turn: Turn) -> str:
        self.calls += 1
        self.turns.append(turn)
        self.began.set()
        try:
            await asyncio.to_thread(self.go_on.wait, WAIT)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        finally:
            self.ended.set()
        return f"answer to {turn.message}"


@pytest.mark.clause("WORK-13")
@pytest.mark.parametrize("how", ["abort", pytest.param("timeout", marks=pytest.mark.ci)])
def test_the_agent_of_a_call_that_is_over_is_stopped(how: str) -> None:
    agent = Standing()
    config = {"agents": {"defaults": {"timeoutSeconds": 3}}} if how == "timeout" else {}
    with beside(":memory:", {"main": agent}, config=config) as writer:
        run = writer.ask("hello", wait=0)["runId"]
        assert agent.began.wait(WAIT)
        if how == "abort":
            writer.system.gateway.call("chat.abort", {"sessionKey": "main", "runId": run})
        wait_for(writer.system, RunAborted if how == "abort" else RunFailed)
        assert agent.ended.wait(WAIT)
        assert agent.was_cancelled

        (turn,) = agent.turns
        refused = turn.tools.call("sessions_list")
        with pytest.raises(ToolRefused, match="this attempt is over"):
            turn.record_call("look", {})
        with pytest.raises(ToolRefused, match="this attempt is over"):
            turn.stream("more")
        head = writer.system.log.head()

        assert refused["status"] == "error"
        assert "this attempt is over" in refused["error"]
        assert writer.system.log.head() == head


@pytest.mark.clause("WORK-13")
def test_what_a_stopped_agent_answers_is_told_once_as_late(gate: Gate) -> None:
    with beside(":memory:", {"main": gate.saying("too late")}) as writer:
        run = writer.ask("hello", wait=0)["runId"]
        gate.reached()
        writer.system.gateway.call("chat.abort", {"sessionKey": "main", "runId": run})
        wait_for(writer.system, RunAborted)
        gate.open()
        late = wait_for(writer.system, LateReplyDropped)
        again = writer.ask("again")

        assert (late.run_id, late.reply) == (run, "too late")
        assert again["reply"] == "too late"
        assert len(recorded(writer.system, LateReplyDropped)) == 1


@pytest.mark.clause("WORK-10")
def test_a_worker_that_drains_takes_no_more_and_ends_what_it_has() -> None:
    agent = Standing()
    with beside(":memory:") as writer:
        first = writer.worker({"main": agent})
        run = writer.ask("hello", wait=0)["runId"]
        assert agent.began.wait(WAIT)
        first.drain()
        waiting = writer.ask("and this?", agent="main", wait=0)
        agent.go_on.set()
        assert ended(writer.system, run)["reply"] == "answer to hello"
        first.close()
        assert first.calls == 0
        second = writer.worker({"main": lambda turn: f"other: {turn.message}"})

        assert ended(writer.system, waiting["runId"])["reply"] == "other: and this?"
        assert agent.calls == 1
        assert second.name != first.name


@pytest.mark.clause("WORK-10")
def test_a_worker_that_has_left_does_not_come_back_by_saying_that_it_drains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, has_left = threading.Event(), threading.Event()
    with beside(":memory:") as writer:
        worker = writer.worker({"main": answer})
        announce, leave = worker._announce, worker._work.leave

        def announce_late() -> None:
            has_left.wait(0.2)
            announce()
            said.set()

        def leaves(name: str) -> None:
            leave(name)
            has_left.set()
            said.wait(0.2)

        monkeypatch.setattr(worker, "_announce", announce_late)
        monkeypatch.setattr(worker._work, "leave", leaves)
        worker.close()

        assert writer.system.log.work.workers() == []


@pytest.mark.ci
@pytest.mark.clause("WORK-10")
def test_what_a_worker_leaves_behind_is_tried_again_by_another() -> None:
    agent = Standing()
    with beside(":memory:") as writer:
        first = writer.worker({"main": agent})
        run = writer.ask("hello", wait=0)["runId"]
        assert agent.began.wait(WAIT)
        writer.worker({"main": lambda turn: f"attempt {turn.attempt}"})
        first.close(grace=0)

        assert ended(writer.system, run)["reply"] == "attempt 2"


@pytest.mark.clause("WORK-10")
def test_a_worker_makes_as_many_calls_at_once_as_it_has_seats() -> None:
    at_work, most = 0, 0
    changed = threading.Condition()

    def agent(turn: Turn) -> str:
        nonlocal at_work, most
        with changed:
            at_work += 1
            most = max(most, at_work)
            changed.notify_all()
            assert changed.wait_for(lambda: most > 1, timeout=WAIT)
            changed.wait_for(lambda: at_work > 2, timeout=0.05)
            at_work -= 1
        return turn.message

    names = {f"a{number}": agent for number in range(6)}
    with beside(":memory:") as writer:
        writer.worker(names, seats=2)
        runs = [writer.ask("hello", agent=name, wait=0)["runId"] for name in names]

        assert [ended(writer.system, run)["reply"] for run in runs] == ["hello"] * 6
        assert most == 2


@pytest.mark.clause("WORK-14")
def test_an_answer_whose_reply_is_lost_is_told_again_and_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    go_on: Any = GatewayWork.go_on

    def losing(self: GatewayWork, *given: Any) -> Any:
        if told:
            return go_on(self, *given)
        told.append(self.answer(*given[:3]))
        raise StoreUnavailable("the connection was lost")

    monkeypatch.setattr(GatewayWork, "go_on", losing)
    with beside(":memory:", {"main": lambda turn: turn.message}) as writer:
        assert [writer.ask(text)["reply"] for text in ("one", "two", "three")] == ["one", "two", "three"]
        assert told == [True]
        assert len(recorded(writer.system, RunCompleted)) == 3
        assert not recorded(writer.system, LateReplyDropped)


@pytest.mark.clause("WORK-12")
def test_an_act_that_is_sent_again_counts_once() -> None:
    """The connection is lost while the agent waits in a call; the worker makes it anew, and the call is the same."""
    gate = threading.Event()

    def asking(turn: Turn) -> str:
        given = {"sessionKey": "agent:ops:main", "message": "how is it?", "timeoutSeconds": 20}
        return (
            str(turn.tools.call("sessions_send", given)["reply"])
            if turn.step == "message"
            else turn.skip_word
        )

    def ops(_: Turn) -> str:
        assert gate.wait(WAIT)
        return "fine"

    with beside(":memory:", agents_here={"ops": ops}) as writer:
        worker = writer.worker({"main": asking})
        run = writer.ask("hello", wait=0)["runId"]
        wait_for(writer.system, RunStarted, lambda start: start.run_id != run)
        for _ in range(3):
            worker._line.lose()
        gate.set()

        assert ended(writer.system, run)["reply"] == "fine"
        said = writer.system.log.stream("session:agent:ops:main")
        assert sum(one.topic.startswith("run_queued") for one in said) == 1


@pytest.mark.clause("WORK-12")
def test_what_is_asked_just_as_a_connection_begins_is_sent_once(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent twice, it was refused as one that is not answered yet, and a worker did not start."""
    sent: list[object] = []
    asked = threading.Event()
    with beside(":memory:", agents_here={"main": gate.saying("done")}) as writer:
        run = writer.ask("hello", wait=0)["runId"]
        gate.reached()
        line = Line(lambda: (writer.live.address,), TOKEN)
        serve = line._serve

        def serve_late(client: GatewayClient) -> None:
            send = client.send

            def noted(frame: Mapping[str, object]) -> None:
                sent.append(frame["id"])
                send(frame)

            monkeypatch.setattr(client, "send", noted)
            began.set()
            assert asked.wait(WAIT)
            serve(client)

        began = threading.Event()
        monkeypatch.setattr(line, "_serve", serve_late)
        line.open()
        try:
            assert began.wait(WAIT)
            answer = line.ask("agent.wait", {"runId": run, "timeoutMs": round(WAIT * 1000)})
            (request,) = line._waiting.values()
            asked.set()
            line.ask("sessions.list", {}).result(WAIT)
            line._send_again(
                request
            )  # as after it was refused for now, on a connection that has sent it since
            gate.open()

            assert answer.result(WAIT)["reply"] == "done"
            assert sorted(map(str, sent)) == ["w1", "w2"]
        finally:
            line.close()


@pytest.mark.ci
@pytest.mark.clause("WORK-14")
def test_a_worker_goes_on_with_the_writer_that_took_over(tmp_path: Path) -> None:
    agent = Standing()
    store, config = tmp_path / "log.db", merged(SEES_ALL, WITH_WORKERS)
    with ExitStack() as opened:
        first = SessionSystem(store, config=config)
        live = LiveGateway(first)
        live.__enter__()
        worker = opened.enter_context(
            Worker(
                gateway=[live.address, f"http://127.0.0.1:{free_port()}"],
                agents={"main": agent},
                token=WORKER,
            )
        )
        other = worker.addresses[1]
        run = first.inbound(channel="chat", chat_id="1", sender="mia", text="hello")["runId"]
        assert agent.began.wait(WAIT)
        first.close()
        live.__exit__(None, None, None)
        second = opened.enter_context(SessionSystem(store, config=config))
        opened.enter_context(LiveGateway(second, port=int(other.rpartition(":")[2])))
        agent.turns[0].stream("here ")
        found = agent.turns[0].tools.call("sessions_list")
        agent.go_on.set()

        assert found["count"] == 1
        assert ended(second, run)["reply"] == "answer to hello"
        assert agent.calls == 1
        assert second.inbound(channel="chat", chat_id="1", sender="mia", text="more", wait=WAIT)["reply"]


@pytest.mark.ci
@pytest.mark.clause("WORK-14")
def test_a_worker_waits_for_the_first_writer() -> None:
    port = free_port()
    with (
        Worker(gateway=f"http://127.0.0.1:{port}", agents={"main": lambda _: "here"}, token=WORKER),
        SessionSystem(":memory:", config=merged(SEES_ALL, WITH_WORKERS)) as system,
        LiveGateway(system, port=port),
    ):
        assert (
            system.inbound(channel="chat", chat_id="1", sender="mia", text="hello", wait=WAIT)["reply"]
            == "here"
        )


@pytest.mark.ci
@pytest.mark.clause("WORK-14")
def test_that_the_queue_is_away_and_is_there_again_is_logged_once_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    again = "the queue of calls is reached again"

    def said() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == "intersession.worker"]

    port = free_port()
    with Worker(gateway=f"http://127.0.0.1:{port}", agents={"main": answer}, token=WORKER):
        time.sleep(1.2)  # it tries twice a second
        assert [one.partition(":")[0] for one in said()] == [
            "the queue of calls can't be reached, and is tried again"
        ]
        with (
            SessionSystem(":memory:", config=merged(SEES_ALL, WITH_WORKERS)) as system,
            LiveGateway(system, port=port),
        ):
            for text in ("first", "second"):  # the second one is taken after it was said
                assert system.inbound(channel="chat", chat_id="1", sender="mia", text=text, wait=WAIT)[
                    "reply"
                ]
            assert said()[1:] == [again]


@pytest.mark.clause("WORK-12")
async def test_async_agents_run_on_the_loop_of_the_host() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def agent(_: Turn) -> str:
        loops.append(asyncio.get_running_loop())
        return "here"

    async with SessionSystem(":memory:", config=merged(SEES_ALL, WITH_WORKERS)) as system:
        with LiveGateway(system) as live:
            async with Worker(gateway=live.address, agents={"main": agent}, token=WORKER):
                answer = await system.ainbound(
                    channel="chat", chat_id="1", sender="mia", text="hello", wait=WAIT
                )

    assert answer["reply"] == "here"
    assert loops == [asyncio.get_running_loop()]


def test_a_token_that_the_gateway_does_not_know_is_refused_at_once() -> None:
    with beside(":memory:") as writer, pytest.raises(ToolRefused, match="token mismatch") as refused:
        Worker(gateway=writer.live.address, agents={"main": answer}, token="guessed")

    assert refused.value.code == "forbidden"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"gateway": ()}, "neither this nor a store"),
        ({"gateway": "127.0.0.1:9"}, "'127.0.0.1:9' is no address; give http://"),
        ({"agents": {}}, "there are none with a model"),
        ({"agents": {"main": 7}}, "is no agent"),
        ({"seats": 0}, "is no number of calls"),
        ({"seats": True}, "is no number of calls"),
        ({"token": ""}, "INTERSESSION_WORKER_TOKEN"),
        ({"name": 7}, "name"),
    ],
)
def test_what_a_worker_can_t_be_made_of_is_refused(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], says: str
) -> None:
    monkeypatch.delenv("INTERSESSION_WORKER_TOKEN", raising=False)
    usual: dict[str, Any] = {"gateway": "http://127.0.0.1:9", "agents": {"main": answer}, "token": "t"}

    with pytest.raises((ToolRefused, ConfigError), match=says):
        Worker(**usual | given)


def answer(turn: Turn) -> str:
    return turn.message


@pytest.mark.clause("WORK-12")
def test_files_that_a_spawn_hands_over_are_laid_into_the_workspace_of_the_worker(tmp_path: Path) -> None:
    seen: list[tuple[Any, ...]] = []

    def agent(turn: Turn) -> str:
        if turn.step != "message":
            return turn.skip_word
        if ":subagent:" in turn.session_key:
            for _ in range(2):
                (file,) = turn.attachments
                assert file.path is not None
                seen.append(
                    (turn.workspace, file.name, file.path.read_text(), file.path.is_relative_to(tmp_path))
                )
            return "read"
        files = [{"name": "notes.txt", "content": "Buy milk."}]
        return str(turn.tools.call("sessions_spawn", {"task": "read", "attachments": files})["status"])

    config = {
        "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
        "agents": {"defaults": {"workspace": str(tmp_path / "host")}},
    }
    with beside(tmp_path / "log.db", config=config) as writer:
        theirs = tmp_path / "worker"
        writer.worker({"main": agent}, config={"agents": {"defaults": {"workspace": str(theirs)}}})
        assert writer.ask("hello")["reply"] == "accepted"
        wait_for(writer.system, SpawnClosed)

    assert seen == [(theirs, "notes.txt", "Buy milk.", True)] * 2
    assert [file.read_text() for file in theirs.rglob("notes.txt")] == ["Buy milk."]


@pytest.mark.clause("WORK-12")
def test_a_summary_may_be_another_agents_at_a_worker() -> None:
    asked: list[tuple[str, str, str | None]] = []

    def agent(turn: Turn) -> str:
        asked.append((turn.agent_id, turn.step, turn.runner))
        return "in short" if turn.step == "compaction" else f"heard {turn.message} " * 400

    defaults = {"contextTokens": 9_000, "compaction": {"agent": "scribe"}}
    config = {"agents": {"defaults": defaults, "list": [{"id": "main"}]}}
    with beside(":memory:", {"main": agent, "scribe": agent}, config=config) as writer:
        writer.ask("one")
        writer.ask("two")
        writer.system.gateway.call("sessions.compact", {"key": "main"})
        wait_for(writer.system, RunCompleted, lambda end: end.covers is not None)

    assert asked[-1] == ("scribe", "compaction", "scribe")


@pytest.mark.clause("WORK-12")
def test_many_calls_of_tools_are_under_way_at_once_over_the_one_connection() -> None:
    async def agent(turn: Turn) -> str:
        given = [{"sessionKey": "agent:ops:main", "message": f"{n}", "timeoutSeconds": 20} for n in range(20)]
        found = await asyncio.gather(*(turn.tools.acall("sessions_send", one) for one in given))
        return " ".join(str(one.get("reply")) for one in found) if turn.step == "message" else turn.skip_word

    config = {"session": {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}}}
    here = {"ops": lambda turn: turn.message}
    with beside(":memory:", {"main": agent}, config=config, agents_here=here) as writer:
        assert sorted(writer.ask("hello")["reply"].split(), key=int) == [str(n) for n in range(20)]


@pytest.mark.ci
@pytest.mark.clause("WORK-12")
def test_what_the_gateway_can_t_take_just_now_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_IN_FLIGHT", 3)

    async def agent(turn: Turn) -> str:
        found = await asyncio.gather(*(turn.tools.acall("sessions_list") for _ in range(12)))
        return f"{sum(one['count'] for one in found)}"

    with beside(":memory:", {"main": agent}) as writer:
        assert writer.ask("hello")["reply"] == "12"


@pytest.mark.clause("WORK-12")
def test_pieces_of_an_answer_are_heard_while_the_agent_at_the_worker_goes_on(gate: Gate) -> None:
    def agent(turn: Turn) -> Iterator[str]:
        yield "Good "
        yield "morn"
        gate.stop(turn)
        yield "ing."

    with beside(":memory:", {"main": agent}) as writer:
        parts = writer.system.stream(writer.ask("hello", wait=0)["runId"])
        heard = next(part["text"] for part in parts if part["text"] == "Good morn")
        gate.open()

        assert heard == "Good morn"
        assert [*parts][-1]["reply"] == "Good morning."


@pytest.mark.clause("WORK-11")
def test_a_worker_that_makes_another_context_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "hash_as_recorded", lambda *_: "another")
    called: list[Turn] = []
    with beside(":memory:", {"main": called.append}) as writer:
        answer = writer.ask("hello")
        started = recorded(writer.system, RunStarted)

    assert answer["status"] == "error"
    assert "is another one here than its writer recorded" in answer["error"]
    assert [start.attempt for start in started] == [1, 2]
    assert called == []
