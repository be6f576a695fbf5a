"""Agents that workers have, as the writer of the log sees them (WORK-4 to WORK-8)."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from intersession import ConfigError, SessionSystem, StoreUnavailable, ToolRefused
from intersession_actors.calls.service.callers import Caller
from intersession_actors.outside.agents.result import Broke
from intersession_actors.rules.config.config import load_config
from intersession_events import facts
from intersession_events.log.recorded import Recorded
from intersession_events.log.work_queue import CallId, Offer, Taker, WorkQueue
from support.any_log import changed_behind
from support.channel_worker import desk_of
from support.running import WAIT, ended
from support.stub_worker import StubWorker, answer_to, call_of

CONFIG = {"agents": {"list": [{"id": "main", "worker": True}]}}
REACH = {"tools": {"agentToAgent": {"enabled": True}, "sessions": {"visibility": "all"}}}
MAIN = "agent:main:main"


def told(system: SessionSystem, message: str = "hello") -> str:
    run = system.gateway.call(
        "chat.send", {"sessionKey": "main", "message": message, "idempotencyKey": message}
    )
    return run["runId"]


def with_worker(system: SessionSystem, *agents: str) -> StubWorker:
    worker = StubWorker(system, *(agents or ("main",)))
    worker.announce()
    return worker


def until(system: SessionSystem, kind: type[facts.Event]) -> Recorded:
    for recorded in system.follow(0, timeout=20.0):
        if isinstance(recorded.event, kind):
            return recorded
    raise AssertionError(f"no {kind.__name__} came")


def refused(asked: Callable[[], object]) -> str:
    with pytest.raises(ToolRefused) as caught:
        asked()
    return caught.value.code


@pytest.mark.clause("WORK-4")
def test_an_agent_answers_from_a_worker(log_url: str) -> None:
    with SessionSystem(log_url, config=CONFIG) as system:
        worker = with_worker(system)
        run_id = told(system)
        offer = worker.one()

        assert (offer["id"], offer["attempt"], offer["name"]) == (run_id, 1, "main")
        started = system.log.stream(offer["stream"], after=offer["version"] - 1, to=offer["version"])
        assert [getattr(one.event, "context_hash", "") for one in started] == [offer["contextHash"]]
        assert worker.answer(offer, "hi")
        assert ended(system, run_id)["reply"] == "hi"
        assert worker.ask("take", worker="one", most=1, wait=0)["offers"] == []


@pytest.mark.clause("WORK-4")
def test_without_a_worker_runs_are_parked_and_one_that_comes_has_them(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG, agents={"main": lambda _: "from here"}) as system:
        run_id = told(system)
        assert ended_at_once(system, run_id) == "timeout"
        worker = with_worker(system)
        worker.answer(worker.one(), "from there")
        assert ended(system, run_id)["reply"] == "from there"

        worker.leave()
        parked = told(system, "again")
        assert ended_at_once(system, parked) == "timeout"


def ended_at_once(system: SessionSystem, run_id: str) -> str:
    waited = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})
    return waited["status"]


@pytest.mark.clause("WORK-4")
def test_an_agent_that_nobody_configured_is_known_once_a_worker_has_it(passing_url: str) -> None:
    config = {"gateway": {"auth": {"credentials": [worker_credential()]}}}
    with SessionSystem(passing_url, config=config, agents={"main": lambda _: "here"}) as system:
        worker = with_worker(system, "research", "main")
        run = system.gateway.call("agent", {"agentId": "research", "message": "go", "idempotencyKey": "1"})
        worker.answer(worker.one(), "found")
        assert ended(system, run["runId"])["reply"] == "found"
        assert ended(system, told(system))["reply"] == "here"


def worker_credential(**fields: object) -> dict[str, object]:
    return {"name": "work", "token": "a-token-of-workers", "scopes": ["worker"], "agents": ["*"]} | fields


@pytest.mark.clause("WORK-4")
def test_the_next_writer_adopts_a_call_that_is_under_way_and_its_acts(log_url: str) -> None:
    with SessionSystem(log_url, config=CONFIG) as system:
        worker = with_worker(system)
        run_id = told(system)
        offer = worker.one()
        worker.act(offer, "call", name="sessions_list", args={}, number=1, place=1)
        said = [{"type": "text", "text": "I look"}]
        worker.act(offer, "said", blocks=said, number=1, place=2)
        own = [{"type": "toolCall", "id": "c1", "name": "look", "arguments": "{}"}]
        worker.act(offer, "toolCalls", calls=own, number=1)
        before = len(system.log.stream(offer["stream"]))
        system.close()  # at once: nobody waits for what a worker does

    with SessionSystem(log_url, config=CONFIG) as system:
        worker.system = system
        again = worker.act(offer, "call", name="sessions_list", args={}, number=1, place=1)
        assert again["result"]["count"] == 1
        worker.act(offer, "said", blocks=said, number=1, place=2)
        worker.act(offer, "toolCalls", calls=own, number=1)
        assert len(system.log.stream(offer["stream"])) == before
        worker.act(offer, "call", name="sessions_list", args={}, number=2, place=3)
        assert len(system.log.stream(offer["stream"])) == before + 2
        assert worker.renew(offer) == []
        worker.answer(offer, "at last")

        assert ended(system, run_id)["reply"] == "at last"
        assert [
            one.event.attempt
            for one in system.log.stream(offer["stream"])
            if isinstance(one.event, facts.RunStarted)
        ] == [1]


@pytest.mark.clause("WORK-4")
def test_an_answer_that_came_while_there_was_no_writer_is_taken(log_url: str) -> None:
    with SessionSystem(log_url, config=CONFIG) as system:
        worker = with_worker(system)
        run_id = told(system)
        offer = worker.one()
        system.service.world.agents.closing = True
        desk_of(system).leave()  # the writer hears of nothing any more
        assert worker.answer(offer, "meanwhile")

    with SessionSystem(log_url, config=CONFIG) as system:
        assert ended(system, run_id)["reply"] == "meanwhile"
        assert is_dropped_at_last(system, offer)


def is_dropped_at_last(system: SessionSystem, *offers: dict[str, Any]) -> bool:
    """Whether nothing is left in the queue, once the writer has heard that the ends of attempts are on record."""
    desk = desk_of(system)
    for one in offers:
        while desk.secret_of(CallId(one["kind"], one["id"], one["attempt"])) is not None:
            system.log.wait_for(system.log.head() + 1, timeout=0.02)
    desk.stop()  # what is done with is written down first
    return is_empty_at_last(system)


@pytest.mark.clause("WORK-5")
def test_a_worker_that_leaves_has_its_attempt_interrupted_and_answers_late(log_url: str) -> None:
    with SessionSystem(log_url, config=CONFIG) as system:
        first = with_worker(system)
        run_id = told(system)
        offer = first.one()
        first.leave()
        until(system, facts.RunInterrupted)
        assert refused(lambda: first.act(offer, "said", blocks=[], number=1, place=1)) == "run_over"
        assert not first.answer(offer, "too late")
        late = until(system, facts.LateReplyDropped)
        assert isinstance(late.event, facts.LateReplyDropped)
        assert (late.event.attempt, late.event.reply) == (1, "too late")

        second = StubWorker(system, "main", name="two")
        second.announce()
        retried = second.one()
        assert retried["attempt"] == 2
        second.answer(retried, "in time")
        assert ended(system, run_id)["reply"] == "in time"
        assert is_dropped_at_last(system, offer, retried)


@pytest.mark.clause("WORK-5")
def test_what_an_aborted_run_is_answered_comes_late_and_does_nothing(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker = with_worker(system)
        run_id = told(system)
        offer = worker.one()
        system.gateway.call("chat.abort", {"sessionKey": "main", "runId": run_id})
        assert ended(system, run_id)["status"] == "aborted"

        before = len(system.log.stream(offer["stream"]))
        assert refused_at_last(worker, offer) == "run_over"
        assert len(system.log.stream(offer["stream"])) == before
        worker.answer(offer, "too late")
        assert until(system, facts.LateReplyDropped).causation == started(system, offer).id


@pytest.mark.clause("WORK-5")
def test_an_answer_heard_just_when_its_run_is_aborted_comes_late(
    passing_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker = with_worker(system)
        desk, offer_as_it_is = desk_of(system), desk_of(system).offer

        def offer_then_abort(offer: Offer, hand_on: Callable[[bytes | None], None]) -> None:
            def abort_first(content: bytes | None) -> None:
                system.gateway.call("chat.abort", {"sessionKey": "main", "runId": offer.id})
                assert ended(system, offer.id)["status"] == "aborted"
                hand_on(content)

            offer_as_it_is(offer, abort_first)

        monkeypatch.setattr(desk, "offer", offer_then_abort)
        told(system)
        worker.answer(worker.one(), "too late")
        late = until(system, facts.LateReplyDropped).event
        assert isinstance(late, facts.LateReplyDropped)
        assert (late.attempt, late.reply) == (1, "too late")
        assert is_empty_at_last(system)


@pytest.mark.clause("WORK-5")
def test_a_failure_that_comes_late_leaves_nothing_in_the_queue(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker = with_worker(system)
        run_id = told(system)
        offer = worker.one()
        system.gateway.call("chat.abort", {"sessionKey": "main", "runId": run_id})
        assert ended(system, run_id)["status"] == "aborted"
        worker.answer(offer, Broke(code="backend", error="cut off"))
        assert is_empty_at_last(system)


def is_empty_at_last(system: SessionSystem) -> bool:
    for _ in range(1_000):
        if not system.log.work.standing():
            return True
        system.log.wait_for(system.log.head() + 1, timeout=0.02)
    return False


def refused_at_last(worker: StubWorker, offer: dict[str, Any]) -> str:
    """While the writer has yet to stop the call, what the agent gets is the session's own refusal."""
    for number in range(1, 1_000):
        try:
            answer = worker.act(offer, "call", name="sessions_list", args={}, number=number, place=number)
        except ToolRefused as caught:
            return caught.code
        assert "this attempt is over" in answer["result"]["error"]
    raise AssertionError("it was never refused")


def started(system: SessionSystem, offer: dict[str, Any]) -> Recorded:
    (found,) = system.log.stream(offer["stream"], after=offer["version"] - 1, to=offer["version"])
    return found


@pytest.mark.clause("WORK-5")
def test_an_answer_that_is_none_fails_the_run_and_a_failure_is_one(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker = with_worker(system)
        run_id = told(system)
        offer = worker.one()
        worker.ask("answer", **call_of(offer), worker="one", content="what")
        assert "gave no result" in ended(system, run_id)["error"]

        run_id = told(system, "again")
        worker.answer(worker.one(), Broke(code="backend", error="the model is away"))
        assert ended(system, run_id)["error"] == "backend: the model is away"


@pytest.mark.clause("WORK-14")
def test_the_request_that_tells_an_answer_takes_the_next_call(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker = with_worker(system)
        run_id = told(system)
        offer = worker.one()
        told(system, "again")
        came = worker.ask("next", worker="one", answer=answer_to(offer, "hi"), wait=20.0)
        assert came["counts"] is True
        assert ended(system, run_id)["reply"] == "hi"
        assert [one["id"] for one in came["offers"]] != [offer["id"]]


@pytest.mark.clause("WORK-14")
def test_a_worker_that_was_forgotten_has_its_answer_taken_and_hears_so_as_it_next_takes(
    passing_url: str,
) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker = with_worker(system)
        told(system)
        offer = worker.one()
        worker.leave()
        late = worker.ask("next", worker="one", answer=answer_to(offer, "too late"), wait=20.0)
        assert late == {"offers": [], "counts": False}
        with pytest.raises(ToolRefused, match="announce it, and then take"):
            worker.take()


@pytest.mark.clause("WORK-14")
def test_the_wait_of_a_worker_ends_as_it_drains(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system, ThreadPoolExecutor(1) as pool:
        worker = with_worker(system)
        run_id = told(system)
        waits = pool.submit(worker.ask, "next", worker="one", answer=answer_to(worker.one(), "hi"), wait=60.0)
        assert ended(system, run_id)["reply"] == "hi"
        worker.announce(is_draining=True)
        assert waits.result(WAIT) == {"offers": [], "counts": True}
        assert worker.take(wait=60.0) == []


@pytest.mark.clause("WORK-6")
def test_acts_are_those_of_the_run(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG | REACH) as system:
        worker = with_worker(system, "main", "other")
        run_id = told(system)
        offer = worker.one()
        names = {tool["function"]["name"] for tool in worker.act(offer, "tools", dialect="openai")["tools"]}
        assert "sessions_send" in names
        assert worker.act(offer, "allowed", names=["look"]) == {"names": ["look"]}
        assert worker.act(offer, "has", messageId="none") == {"has": False}

        send = {"sessionKey": "agent:other:main", "message": "you?", "timeoutSeconds": 20}
        with ThreadPoolExecutor(2) as threads:
            sent = [
                threads.submit(worker.act, offer, "call", name="sessions_send", args=send, number=1, place=1)
            ]
            asked = worker.one()
            assert asked["name"] == "other"
            sent.append(
                threads.submit(worker.act, offer, "call", name="sessions_send", args=send, number=1, place=1)
            )
            back = {"sessionKey": MAIN, "message": "and you?", "timeoutSeconds": 20}
            cycle = worker.act(asked, "call", name="sessions_send", args=back, number=1, place=1)
            assert cycle["result"]["code"] == "cycle"
            worker.answer(asked, "me")
            (answer,) = {str(one.result(20.0)) for one in sent}  # sent again, it is the same call
        assert "'reply': 'me'" in answer
        said = [facts.message_in(one.event) for one in system.log.stream(offer["stream"])]
        roles = [one.role for one in said if one is not None]
        assert (roles.count("assistant"), roles.count("toolResult")) == (1, 1)  # the call and its result

        worker.act(offer, "piece", text="so ", number=1)
        worker.act(offer, "piece", text="so ", number=1)
        worker.act(offer, "piece", text="far", number=2)
        shown = system.service.world.agents.pieces.of(run_id)
        assert shown is not None
        assert shown.text == "so far"


@pytest.mark.clause("WORK-12")
def test_a_wait_that_a_stop_of_the_writer_ends_is_gone_on_with_by_the_next_one(log_url: str) -> None:
    """A send of an agent at a worker was answered `timeout` then, long before its time, and the next writer could only say so."""
    send = {"sessionKey": "agent:other:main", "message": "you?", "timeoutSeconds": 20}
    act = {"name": "sessions_send", "args": send, "number": 1, "place": 1}
    with SessionSystem(log_url, config=CONFIG | REACH) as system, ThreadPoolExecutor(1) as pool:
        worker = with_worker(system, "main", "other")
        told(system)
        offer = worker.one()
        sent = pool.submit(
            worker.ask, "act", **call_of(offer), secret=offer["secret"], act=act | {"type": "call"}
        )
        asked = worker.one()
        system.close()
        with pytest.raises((ToolRefused, StoreUnavailable, RuntimeError)):
            sent.result(WAIT)

    with SessionSystem(log_url, config=CONFIG | REACH) as system:
        worker.system = system
        worker.answer(asked, "me")
        assert worker.ask_over_take_over(offer, "call", **act)["result"]["reply"] == "me"


@pytest.mark.clause("WORK-6", "SEND-10")
def test_a_wait_in_a_run_that_is_stopped_is_answered_as_in_one_process(passing_url: str) -> None:
    send = {"sessionKey": "agent:other:main", "message": "you?", "timeoutSeconds": 86_400}
    act = {"type": "call", "name": "sessions_send", "args": send, "number": 1, "place": 1}
    with SessionSystem(passing_url, config=CONFIG | REACH) as system, ThreadPoolExecutor(1) as pool:
        worker = with_worker(system, "main", "other")
        run_id = told(system)
        offer = worker.one()
        sent = pool.submit(worker.ask, "act", **call_of(offer), secret=offer["secret"], act=act)
        worker.one()
        assert system.abort(run_id)

        assert sent.result(WAIT)["result"]["status"] == "timeout"


@pytest.mark.clause("WORK-12")
def test_what_a_replaced_writer_refuses_is_sent_to_the_next_one(log_url: str) -> None:
    """One that wakes from a pause refuses an act, as its attempt was silent, before it hears that another has the log."""
    listing = {"type": "call", "name": "sessions_list", "args": {}, "number": 1, "place": 1}
    with SessionSystem(log_url, config=CONFIG) as system:
        worker = with_worker(system)
        told(system)
        offer = worker.one()

        def ask(attempt: int) -> Callable[[], object]:
            call = {**call_of(offer), "attempt": attempt, "secret": offer["secret"]}
            return lambda: worker.ask("act", **call, act=listing)

        assert refused(ask(7)) == "run_over"
        changed_behind(log_url, "UPDATE log_identity SET epoch=epoch+1")
        assert refused(ask(7)) == "unavailable"
        assert refused(ask(1)) == "unavailable"


@pytest.mark.clause("WORK-7", "WORK-8")
def test_a_credential_has_the_agents_that_it_names_and_no_calls_of_another(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        worker = with_worker(system)
        told(system)
        offer = worker.one()
        other = Caller.by_credential("other", (), agents=("other",))

        def ask(method: str, **params: object) -> Callable[[], object]:
            return lambda: system.gateway.perform(f"worker.{method}", params, caller=other)

        said = {"worker": "one", "host": "h", "version": "1"}
        assert refused(ask("announce", **said, agents={"main": ""})) == "forbidden"
        with pytest.raises(
            ToolRefused, match='this credential has none; give it the scope "worker" and agents'
        ):
            system.gateway.perform(
                "worker.announce", said | {"agents": {"main": ""}}, caller=Caller.by_credential("app", ())
            )
        assert (
            refused(
                ask("act", **call_of(offer), secret=offer["secret"], act={"type": "has", "messageId": "x"})
            )
            == "forbidden"
        )
        assert (
            refused(ask("act", **call_of(offer), secret="made up", act={"type": "has", "messageId": "x"}))
            == "run_over"
        )
        assert refused(ask("events", **call_of(offer), worker="one")) == "invalid_request"
        assert ask("renew", worker="one", calls=[call_of(offer)])() == {"lost": [call_of(offer)]}
        mine = '{"answered":{"text":"mine"}}'
        assert ask("answer", **call_of(offer), worker="one", content=mine)() == {"counts": False}

        read = worker.ask("events", **call_of(offer), worker="one")["events"]
        assert {event["stream"] for event in read} == {offer["stream"]}
        assert refused(lambda: worker.act(offer, "file", sha256="0" * 64)) == "invalid_request"


@pytest.mark.clause("WORK-7")
@pytest.mark.parametrize(
    "fields", [{"agents": []}, {"scopes": ["operator.read"]}, {"scopes": ["worker", "anything"]}]
)
def test_a_credential_of_workers_names_what_they_may_have(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        load_config({"gateway": {"auth": {"credentials": [worker_credential(**fields)]}}})


def test_a_host_can_not_register_an_agent_that_workers_alone_call(passing_url: str) -> None:
    with SessionSystem(passing_url, config=CONFIG) as system:
        assert refused(lambda: system.register_agent("main", lambda _: "here")) == "invalid_request"


class Counted:
    """A queue that counts what is asked of it."""

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if name not in {"wait", "to_take", "alive_s"}:
            self.asked[name] += 1
        return getattr(self._queue, name)


def test_a_turn_at_a_worker_asks_the_queue_thrice_and_one_at_home_not_at_all(log_url: str) -> None:
    with SessionSystem(
        log_url,
        config={"agents": {"list": [{"id": "main", "worker": True}, {"id": "home"}]}},
        agents={"home": lambda _: "here"},
    ) as system:
        worker = with_worker(system)
        worker.answer(told_and_taken(system, worker, "first"), "one")
        desk = desk_of(system)
        counted = Counted(desk.queue)
        desk.queue = cast("Any", counted)
        for number in range(5):
            run = system.gateway.call(
                "agent", {"agentId": "home", "message": "go", "idempotencyKey": f"{number}"}
            )
            assert ended(system, run["runId"])["reply"] == "here"
        assert not counted.asked.keys() & {"offer", "withdraw", "extend", "standing"}

        for number in range(5):
            worker.answer(told_and_taken(system, worker, f"next {number}"), "two")
            waited = system.gateway.call("chat.history", {"sessionKey": "main"})
            assert waited["messages"]
        desk.stop()
        # Whatever is there is written at once, so that there may be fewer; nothing is asked for in vain.
        assert counted.asked["offer"] == 5
        assert 1 <= counted.asked["drop"] <= 6
        assert counted.asked["withdraw"] == 0


def told_and_taken(system: SessionSystem, worker: StubWorker, message: str) -> dict[str, Any]:
    told(system, message)
    return worker.one()


class AwayAtFirst(Counted):
    """A queue whose store is away when it is first asked to change something."""

    def offer(self, offers: Sequence[Offer], takers: Sequence[Taker] = ()) -> Sequence[Sequence[Offer]]:
        self.asked["offer"] += 1
        if self.asked["offer"] == 1:
            raise StoreUnavailable("the disk is full")
        return self._queue.offer(offers, takers)


@pytest.mark.ci
@pytest.mark.clause("WORK-4")
def test_a_call_is_offered_again_if_the_store_was_away(log_url: str) -> None:
    with SessionSystem(log_url, config=CONFIG) as system:
        worker = with_worker(system)
        desk = desk_of(system)
        desk.queue = cast("Any", AwayAtFirst(desk.queue))
        run_id = told(system)
        worker.answer(worker.one(), "hi")
        assert ended(system, run_id)["reply"] == "hi"
