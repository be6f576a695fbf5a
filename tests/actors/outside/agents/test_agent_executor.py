import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial, wraps
from queue import Queue
from typing import Any

import pykka
import pytest

from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.agents.result import AgentResult, Answered, Broke
from intersession_actors.outside.agents.turn import Reply, Turn
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.pool import PooledRuntime
from intersession_events.facts import Message, Provenance, Usage
from support.hosts_loops import end_loop
from support.soaking import until

WAIT = 20.0


def a_turn(run_id: str = "run", *, agent_id: str = "agent", attempt: int = 1, step: Any = "message") -> Turn:
    asked = Message(
        id="m",
        role="user",
        content="hello",
        timestamp=1,
        provenance=Provenance(kind="external_user"),
    )
    return Turn(
        agent_id=agent_id,
        session_key=f"agent:{agent_id}:main",
        step=step,
        asked=asked,
        run_id=run_id,
        attempt=attempt,
    )


class Results:
    """Takes results in, from any thread."""

    def __init__(self) -> None:
        self._queue: Queue[AgentResult] = Queue()

    def __call__(self, result: AgentResult) -> None:
        self._queue.put(result)

    def next(self) -> AgentResult:
        return self._queue.get(timeout=WAIT)

    @property
    def empty(self) -> bool:
        return self._queue.empty()


@pytest.fixture
def late() -> Results:
    return Results()


@pytest.fixture
def hosts_loop() -> HostsLoop:
    return HostsLoop()


@pytest.fixture
def executor(hosts_loop: HostsLoop) -> Iterator[AgentExecutor]:
    made = AgentExecutor(pool_size=2, reply_max_bytes=1000, hosts_loop=hosts_loop)
    yield made
    made.stop(WAIT)


def outcome_of(executor: AgentExecutor, agent: Any, turn: Turn | None = None) -> AgentResult:
    results = Results()
    executor.register("agent", agent)
    executor.start(turn or a_turn(), results)
    return results.next()


def raising(error: BaseException) -> Callable[[Turn], None]:
    def agent(_: Turn) -> None:
        raise error

    return agent


def raising_async(error: BaseException) -> Callable[[Turn], Any]:
    async def agent(_: Turn) -> None:
        await asyncio.sleep(0)
        raise error

    return agent


def test_a_function_answers_with_a_string(executor: AgentExecutor) -> None:
    assert outcome_of(executor, lambda turn: turn.message.upper()) == Answered(text="HELLO")


def test_a_coroutine_function_answers_with_a_string(executor: AgentExecutor) -> None:
    async def agent(turn: Turn) -> str:
        await asyncio.sleep(0)
        return turn.message

    assert outcome_of(executor, agent) == Answered(text="hello")


def test_an_object_with_an_async_call_and_a_lambda_over_a_coroutine_are_agents(
    executor: AgentExecutor,
) -> None:
    class Agent:
        async def __call__(self, turn: Turn) -> str:
            return turn.message

    agent = Agent()
    assert outcome_of(executor, agent) == Answered(text="hello")
    assert outcome_of(executor, lambda turn: agent(turn)) == Answered(text="hello")  # noqa: PLW0108 - the lambda is sync


def test_none_is_no_text(executor: AgentExecutor) -> None:
    assert outcome_of(executor, lambda _: None) == Answered(text=None)


def test_a_reply_carries_usage_model_and_messages(executor: AgentExecutor) -> None:
    said = Message(id="", role="assistant", content="hi", timestamp=0)
    reply = Reply("hi", usage=Usage(input=3), model="m", messages=(said,), stop_reason="stop")

    assert outcome_of(executor, lambda _: reply) == Answered(
        text="hi", usage=Usage(input=3), model="m", messages=(said,), stop_reason="stop"
    )


@pytest.mark.parametrize(
    ("step", "word"), [("message", "NO_REPLY"), ("reply", "REPLY_SKIP"), ("announce", "ANNOUNCE_SKIP")]
)
def test_a_skip_is_the_word_of_the_step(executor: AgentExecutor, step: str, word: str) -> None:
    assert outcome_of(executor, lambda _: Reply.skip(), a_turn(step=step)) == Answered(text=word)


@pytest.mark.clause("L3")
@pytest.mark.parametrize("wrap", [raising, raising_async])
@pytest.mark.parametrize(
    "error",
    [ValueError("bad"), SystemExit(1), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()],
)
def test_whatever_an_agent_raises_is_a_backend_error_and_the_next_run_works(
    executor: AgentExecutor, wrap: Callable[[BaseException], Any], error: BaseException
) -> None:
    for _ in range(4):
        result = outcome_of(executor, wrap(error))
        assert isinstance(result, Broke)
        assert result.code == "backend"
        assert type(error).__name__ in result.error

    async def well(_: Turn) -> str:
        return "well"

    assert outcome_of(executor, lambda _: "well") == Answered(text="well")
    assert outcome_of(executor, well) == Answered(text="well")


def test_an_error_that_can_not_be_shown_is_an_error_all_the_same(executor: AgentExecutor) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

    result = outcome_of(executor, raising(Unspeakable()))
    assert isinstance(result, Broke)
    assert (result.code, result.error) == ("backend", "Unspeakable: (its text can't be shown)")
    long = outcome_of(executor, raising(ValueError("x" * 1_000_000)))
    assert isinstance(long, Broke)
    assert len(long.error) < 3000


@pytest.mark.clause("L3")
@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        3,
        True,
        {"text": "no"},
        ["list"],
        object(),
        Reply(b"bytes"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Reply("text", usage="much"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Reply("text", messages=({"role": "user"},)),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Reply("text", messages="no message"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Reply("text", messages=("no message",)),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_answer_is_a_bad_reply(executor: AgentExecutor, value: Any) -> None:
    result = outcome_of(executor, lambda _: value)

    assert isinstance(result, Broke)
    assert result.code == "bad_reply"
    assert "agent 'agent' returned" in result.error


@pytest.mark.clause("L3")
@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ({"role": "user"}, "its messages are dict, give a tuple of Message"),
        (({"role": "user"},), "its messages have a dict, give Message in its place"),
    ],
)
def test_a_reply_with_what_is_no_message_is_told_what_to_give(
    executor: AgentExecutor, messages: Any, said: str
) -> None:
    result = outcome_of(executor, lambda _: Reply("text", messages=messages))

    assert isinstance(result, Broke)
    assert said in result.error


@pytest.mark.clause("L3")
@pytest.mark.parametrize(
    "value",
    [
        "x" * 1001,
        "ä" * 501,
        Reply("x" * 1001),
        Reply("x", messages=(Message(id="", role="assistant", content="y" * 2000, timestamp=0),)),
    ],
)
def test_an_answer_over_the_bound_is_too_large(executor: AgentExecutor, value: Any) -> None:
    result = outcome_of(executor, lambda _: value)

    assert isinstance(result, Broke)
    assert result.code == "reply_too_large"
    assert "1000 bytes" in result.error


def test_an_answer_at_the_bound_is_taken(executor: AgentExecutor) -> None:
    assert outcome_of(executor, lambda _: "ä" * 500) == Answered(text="ä" * 500)


def test_an_agent_nobody_registered_is_no_agent(executor: AgentExecutor) -> None:
    results = Results()
    executor.start(a_turn(agent_id="nobody"), results)

    assert results.next() == Broke(code="no_agent", error="no agent 'nobody' is registered in this process")
    assert not executor.has("nobody")


def test_one_attempt_is_stopped_and_not_the_next_one_that_has_begun(executor: AgentExecutor) -> None:
    """A worker that heard late that its attempt was over stopped the next one, which then never came back."""
    results, gate = Results(), threading.Event()

    def agent(turn: Turn) -> str:
        gate.wait(WAIT)
        return f"attempt {turn.attempt}"

    executor.register("agent", agent)
    executor.start(a_turn(attempt=2), results)
    executor.cancel("run", 1)
    gate.set()

    assert results.next() == Answered(text="attempt 2")


def test_registering_something_that_is_no_agent_says_what_is(executor: AgentExecutor) -> None:
    with pytest.raises(
        ToolRefused, match=r"agents\['agent'\]: 'no agent' is no agent, give a function `agent"
    ):
        executor.register("agent", "no agent")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ToolRefused, match="is no agent"):
        executor.register("agent", str)
    assert executor.registered == ()


# --- Pykka actors


class HostActor(pykka.ThreadingActor):
    use_daemon_thread = True

    def on_receive(self, message: Turn) -> Any:
        if message.message == "hello":
            return Reply(f"{message.run_id} heard", model="actor")
        raise ValueError(message.message)


@pytest.fixture
def host_actor() -> Iterator[pykka.ActorRef[HostActor]]:
    ref = HostActor.start()
    yield ref
    ref.stop(block=True, timeout=WAIT)


def test_a_hosts_actor_gets_the_turn_and_its_answer_is_the_reply(
    executor: AgentExecutor, host_actor: pykka.ActorRef[HostActor]
) -> None:
    assert outcome_of(executor, host_actor) == Answered(text="run heard", model="actor")


def test_a_thousand_questions_to_a_slow_actor_hold_no_thread(executor: AgentExecutor) -> None:
    opened = threading.Event()

    class Slow(pykka.ThreadingActor):
        use_daemon_thread = True

        def on_receive(self, message: Turn) -> str:
            assert opened.wait(WAIT)
            return message.run_id

    slow = Slow.start()
    executor.register("slow", slow)
    results = Results()
    for number in range(1000):
        executor.start(a_turn(str(number), agent_id="slow"), results)

    assert outcome_of(executor, lambda _: "quick") == Answered(text="quick")
    opened.set()
    assert {results.next() for _ in range(1000)} == {Answered(text=str(number)) for number in range(1000)}
    slow.stop(block=True, timeout=WAIT)


def test_a_hosts_actor_that_has_stopped_is_a_backend_error(executor: AgentExecutor) -> None:
    ref = HostActor.start()
    ref.stop(block=True, timeout=WAIT)

    result = outcome_of(executor, ref)

    assert isinstance(result, Broke)
    assert result.code == "backend"
    assert "has stopped" in result.error


def test_an_actor_on_one_of_our_runtimes_is_an_agent_too(executor: AgentExecutor) -> None:
    class Ours(Handler):
        def on_receive(self, message: Turn) -> str:
            return message.message

    runtime = PooledRuntime(threads=1)
    assert outcome_of(executor, runtime.start(Ours, name="ours")) == Answered(text="hello")
    assert runtime.stop(WAIT) == ()


@pytest.mark.parametrize("wait", ["sync", "async"])
def test_a_future_that_an_agent_returns_is_waited_for_without_a_thread_of_the_pool(
    executor: AgentExecutor, wait: str
) -> None:
    opened = threading.Event()

    class Slow(pykka.ThreadingActor):
        use_daemon_thread = True

        def answer(self) -> str:
            assert opened.wait(WAIT)
            return "slowly"

    proxy = Slow.start().proxy()

    def sync_agent(_: Turn) -> Any:
        return proxy.answer().map(lambda text: text)

    async def async_agent(turn: Turn) -> Any:
        return sync_agent(turn)

    executor.register("slow", sync_agent if wait == "sync" else async_agent)
    results = Results()
    for number in range(10):
        executor.start(a_turn(str(number), agent_id="slow"), results)

    assert outcome_of(executor, lambda _: "quick") == Answered(text="quick")
    opened.set()
    assert [results.next() for _ in range(10)] == [Answered(text="slowly")] * 10
    proxy.stop().get(timeout=WAIT)


# --- threads


def nested(executor: AgentExecutor, depth: int, *, waiting: bool) -> AgentResult:
    """Have each run wait for the next one, as `sessions_send` with a timeout does."""

    def agent(turn: Turn) -> str:
        left = int(turn.run_id)
        if left == 0:
            return "bottom"
        inner = Results()
        executor.start(a_turn(str(left - 1)), inner)
        if waiting:
            with executor.waiting():
                result = inner.next()
        else:
            result = inner.next()
        assert isinstance(result, Answered)
        return f"{left} {result.text}"

    return outcome_of(executor, agent, a_turn(str(depth)))


@pytest.mark.clause("SEND-10")
def test_a_chain_of_64_waits_goes_through_a_pool_of_two(executor: AgentExecutor) -> None:
    result = nested(executor, 64, waiting=True)

    assert isinstance(result, Answered)
    assert str(result.text).split() == [*(str(number) for number in range(64, 0, -1)), "bottom"]


def test_more_runs_than_threads_wait_their_turn(executor: AgentExecutor) -> None:
    inside = threading.Semaphore(0)
    opened = threading.Event()
    most, count, lock = 0, 0, threading.Lock()

    def agent(turn: Turn) -> str:
        nonlocal most, count
        with lock:
            count += 1
            most = max(most, count)
        inside.release()
        assert opened.wait(WAIT)
        with lock:
            count -= 1
        return turn.run_id

    executor.register("agent", agent)
    results = Results()
    for number in range(20):
        executor.start(a_turn(str(number)), results)
    assert inside.acquire(timeout=WAIT)
    assert inside.acquire(timeout=WAIT)
    opened.set()

    assert len({results.next() for _ in range(20)}) == 20
    assert most == 2


def test_waiting_outside_of_a_run_changes_nothing(executor: AgentExecutor) -> None:
    with executor.waiting(), executor.waiting():
        assert outcome_of(executor, lambda _: "yes") == Answered(text="yes")


@pytest.mark.clause("L3")
def test_a_thread_that_never_comes_back_is_replaced_and_counted(
    executor: AgentExecutor, late: Results
) -> None:
    entered, opened = threading.Semaphore(0), threading.Event()

    def stuck(turn: Turn) -> str:
        entered.release()
        assert opened.wait(WAIT)
        return f"late {turn.run_id}"

    executor.register("stuck", stuck)
    results = Results()
    for number in range(4):
        executor.start(a_turn(str(number), agent_id="stuck"), results, late)
    for number in range(4):
        assert entered.acquire(timeout=WAIT)
        if number < 2:
            assert executor.is_running(str(number), 1)
            executor.cancel(str(number))
            assert not executor.is_running(str(number), 1)

    assert executor.zombies == 2
    executor.cancel("2")
    executor.cancel("3")
    assert executor.zombies == 4
    # Four threads are lost; there are two to work all the same.
    assert outcome_of(executor, lambda _: "well") == Answered(text="well")

    opened.set()
    assert {late.next() for _ in range(4)} == {Answered(text=f"late {number}") for number in range(4)}
    assert results.empty
    assert executor.zombies == 0


def test_a_thread_lost_while_it_waits_is_not_counted_twice(executor: AgentExecutor) -> None:
    entered, opened = threading.Event(), threading.Event()

    def stuck(_: Turn) -> None:
        with executor.waiting():
            entered.set()
            assert opened.wait(WAIT)

    executor.register("stuck", stuck)
    executor.start(a_turn("stuck", agent_id="stuck"), Results())
    assert entered.wait(WAIT)
    executor.cancel("stuck")
    assert executor.zombies == 1
    opened.set()

    assert nested(executor, 8, waiting=True) is not None
    workers = executor._outside._workers
    until(lambda: workers._busy == 0 and executor.zombies == 0, within=WAIT)


def test_an_agent_whose_calls_never_come_back_is_not_called_until_one_does(executor: AgentExecutor) -> None:
    """Before: each kept a thread, without bound."""
    entered, opened = threading.Semaphore(0), threading.Event()

    def stuck(_: Turn) -> None:
        entered.release()
        assert opened.wait(WAIT)

    executor.register("stuck", stuck)
    results = Results()
    for number in range(16):
        executor.start(a_turn(str(number), agent_id="stuck"), results)
        assert entered.acquire(timeout=WAIT)
        executor.cancel(str(number))
    executor.start(a_turn("more", agent_id="stuck"), results)
    refused = results.next()

    assert isinstance(refused, Broke)
    assert "16 calls of it were given up" in refused.error
    assert executor.zombies == 16
    assert outcome_of(executor, lambda _: "well") == Answered(text="well")
    opened.set()
    again: AgentResult = refused
    while isinstance(again, Broke):  # until the first of them is back
        executor.start(a_turn("again", agent_id="stuck"), results)
        again = results.next()
    assert again == Answered(text=None)


def test_a_run_cancelled_before_it_began_never_begins(executor: AgentExecutor) -> None:
    entered, opened = threading.Semaphore(0), threading.Event()
    began: list[str] = []

    def agent(turn: Turn) -> None:
        began.append(turn.run_id)
        entered.release()
        assert opened.wait(WAIT)

    executor.register("agent", agent)
    results = Results()
    for number in range(3):
        executor.start(a_turn(str(number)), results)
    for _ in range(2):
        assert entered.acquire(timeout=WAIT)
    executor.cancel("2")
    opened.set()

    assert [results.next() for _ in range(2)] == [Answered(text=None)] * 2
    assert executor.zombies == 0
    assert outcome_of(executor, lambda _: "well") == Answered(text="well")
    assert sorted(began) == ["0", "1"]


# --- event loops


def test_a_cancelled_task_is_cancelled(executor: AgentExecutor, late: Results) -> None:
    entered, cancelled = threading.Event(), threading.Event()

    async def agent(_: Turn) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    executor.register("agent", agent)
    results = Results()
    executor.start(a_turn(), results, late)
    assert entered.wait(WAIT)
    executor.cancel("run")

    assert cancelled.wait(WAIT)
    until(lambda: executor.zombies == 0, within=WAIT)  # it says so before its task has ended
    assert outcome_of(executor, lambda _: "well") == Answered(text="well")
    assert results.empty
    assert late.empty


def test_a_task_that_answers_in_spite_of_its_cancellation_is_late(
    executor: AgentExecutor, late: Results
) -> None:
    entered = threading.Event()

    async def agent(_: Turn) -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all the same"
        return "never"

    executor.register("agent", agent)
    results = Results()
    executor.start(a_turn(attempt=2), results, late)
    assert entered.wait(WAIT)
    executor.cancel("run")

    assert late.next() == Answered(text="all the same")
    assert results.empty


async def test_async_agents_run_on_the_hosts_loop(executor: AgentExecutor, hosts_loop: HostsLoop) -> None:
    here = asyncio.get_running_loop()
    hosts_loop.adopt(here)
    answered: asyncio.Future[AgentResult] = here.create_future()

    async def agent(_: Turn) -> str:
        return "the host's loop" if asyncio.get_running_loop() is here else "another loop"

    executor.register("agent", agent)

    def done(result: AgentResult) -> None:
        here.call_soon_threadsafe(answered.set_result, result)

    executor.start(a_turn(), done)

    assert await answered == Answered(text="the host's loop")


async def test_a_system_exit_in_a_task_does_not_end_the_hosts_loop(
    executor: AgentExecutor, hosts_loop: HostsLoop
) -> None:
    here = asyncio.get_running_loop()
    hosts_loop.adopt(here)
    answered: asyncio.Future[AgentResult] = here.create_future()
    executor.register("agent", raising_async(SystemExit(1)))

    def done(result: AgentResult) -> None:
        here.call_soon_threadsafe(answered.set_result, result)

    executor.start(a_turn(), done)

    result = await answered
    assert isinstance(result, Broke)
    assert (result.code, result.error) == ("backend", "SystemExit: 1")


def test_where_the_hosts_loop_has_ended_a_loop_of_our_own_goes_on(
    executor: AgentExecutor, hosts_loop: HostsLoop
) -> None:
    async def agent(_: Turn) -> str:
        return "well"

    async def host() -> None:
        hosts_loop.adopt(asyncio.get_running_loop())

    asyncio.run(host())

    assert outcome_of(executor, agent) == Answered(text="well")


def test_a_stray_task_that_raises_system_exit_does_not_end_our_loop(
    executor: AgentExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    async def stray() -> None:
        raise SystemExit(1)

    kept: list[asyncio.Task[None]] = []

    async def agent(_: Turn) -> str:
        task = asyncio.create_task(stray())
        kept.append(task)
        await asyncio.wait([task])
        return f"after {type(task.exception()).__name__}"

    with caplog.at_level(logging.CRITICAL):
        assert outcome_of(executor, agent) == Answered(text="after SystemExit")


@pytest.mark.clause("SEND-10")
def test_an_agent_that_hangs_holds_up_itself_and_no_other() -> None:
    """Before: eight hung calls of one agent kept every other one from answering, until their runs timed out."""
    executor = AgentExecutor(pool_size=2)
    entered, opened = threading.Semaphore(0), threading.Event()
    hung, answered = Results(), Results()

    def hangs(_: Turn) -> str:
        entered.release()
        assert opened.wait(WAIT)
        return "at last"

    executor.register("hangs", hangs)
    executor.register("answers", lambda _: "at once")
    before = threading.active_count()
    for number in range(20):
        executor.start(a_turn(f"h{number}", agent_id="hangs"), hung)
    for _ in range(2):
        assert entered.acquire(timeout=WAIT)
    executor.start(a_turn("a", agent_id="answers"), answered)

    assert answered.next() == Answered(text="at once")
    assert hung.empty
    assert threading.active_count() - before <= 4
    opened.set()
    assert {type(hung.next()) for _ in range(20)} == {Answered}
    executor.stop(WAIT)


# --- stopping


def test_a_stop_waits_for_what_runs_and_starts_nothing_more() -> None:
    executor = AgentExecutor(pool_size=1)
    entered, opened = threading.Event(), threading.Event()

    def agent(_: Turn) -> str:
        entered.set()
        assert opened.wait(WAIT)
        return "done"

    executor.register("agent", agent)
    results, too_late = Results(), Results()
    executor.start(a_turn(), results)
    assert entered.wait(WAIT)
    stopping = threading.Thread(target=lambda: stopped.append(executor.stop(WAIT)))
    stopped: list[tuple[str, ...]] = []
    stopping.start()
    while not executor._stopping:
        pass
    executor.start(a_turn("too late"), too_late)
    opened.set()
    stopping.join(WAIT)

    assert stopped == [()]
    assert results.next() == Answered(text="done")
    assert too_late.empty


@pytest.mark.clause("L7")
def test_a_stop_cuts_off_what_takes_too_long_and_reports_nothing() -> None:
    late = Results()
    executor = AgentExecutor(pool_size=1)
    entered, opened = threading.Semaphore(0), threading.Event()
    results = Results()

    def stuck(_: Turn) -> None:
        entered.release()
        assert opened.wait(WAIT)

    async def stuck_too(_: Turn) -> None:
        entered.release()
        await asyncio.Event().wait()

    executor.register("thread", stuck)
    executor.register("task", stuck_too)
    executor.start(a_turn("a", agent_id="thread"), results, late)
    executor.start(a_turn("b", agent_id="task"), results, late)
    for _ in range(2):
        assert entered.acquire(timeout=WAIT)

    assert sorted(executor.stop(0.01)) == ["a", "b"]

    opened.set()
    assert results.empty
    assert late.empty


# --- a loop of the host's that ends (finding A5)


@pytest.mark.parametrize("ends", ["cancelled", "stopped"])
def test_a_call_that_its_loop_leaves_behind_is_interrupted_and_never_waited_for(
    executor: AgentExecutor, hosts_loop: HostsLoop, ends: str
) -> None:
    """`asyncio.run` cancels what is left; a loop that is only stopped says nothing to anybody."""
    began = threading.Event()
    results = Results()

    async def agent(_: Turn) -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    async def host() -> None:
        hosts_loop.adopt(asyncio.get_running_loop())
        executor.start(a_turn(), results)
        await asyncio.to_thread(began.wait, WAIT)

    executor.register("agent", agent)
    if ends == "cancelled":
        asyncio.run(host())
        loop = None
    else:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(host())

    assert results.next() == Broke(
        code="interrupted", error="interrupted: LoopEnded: the event loop that it ran on has ended"
    )
    assert hosts_loop.get() is None
    executor.register("agent", answering_async("on a loop of our own"))
    executor.start(a_turn(), results)
    assert results.next() == Answered(text="on a loop of our own")
    if loop is not None:
        end_loop(loop)


def answering_async(text: str) -> Any:
    async def agent(_: Turn) -> str:
        await asyncio.sleep(0)
        return text

    return agent


def in_a_text(turn: Turn) -> object:
    return f"Here they are: {turn.tools.acall('sessions_list')}"


async def beside_the_text(turn: Turn) -> object:
    _ = turn.tools.acall("sessions_list", {"limit": 1})
    return "done"


async def in_a_reply(turn: Turn) -> object:
    return Reply(str([turn.tools.acall("sessions_list")]))


@pytest.mark.clause("L3")
@pytest.mark.filterwarnings("ignore:coroutine tools.acall:RuntimeWarning")
@pytest.mark.parametrize("agent", [in_a_text, beside_the_text, in_a_reply])
def test_a_tools_call_that_nobody_awaits_is_a_bad_reply_that_names_it(
    executor: AgentExecutor, agent: Callable[[Turn], object]
) -> None:
    result = outcome_of(executor, agent)

    assert isinstance(result, Broke)
    assert result.code == "bad_reply"
    assert "never awaited tools.acall('sessions_list')" in result.error
    assert "write `await` before it" in result.error


@pytest.mark.clause("L3")
def test_a_coroutine_of_the_hosts_in_place_of_the_text_is_a_bad_reply(executor: AgentExecutor) -> None:
    async def weather() -> str:
        return "sun"

    async def as_text(_turn: Turn) -> object:
        coroutine = weather()
        coroutine.close()
        return f" {coroutine} "

    async def in_its_place(_turn: Turn) -> object:
        coroutine: Any = weather()
        coroutine.close()
        return Reply(coroutine)

    for agent in (as_text, in_its_place):
        result = outcome_of(executor, agent)

        assert isinstance(result, Broke)
        assert result.code == "bad_reply"
        assert "write `await` before what gave it" in result.error


@pytest.mark.clause("L3")
def test_a_call_that_is_awaited_closed_or_cancelled_is_not_forgotten(executor: AgentExecutor) -> None:
    async def agent(turn: Turn) -> str:
        acall = turn.tools.acall
        answers = [await acall("a"), *await asyncio.gather(acall("b"), asyncio.create_task(acall("c")))]
        cancelled = asyncio.create_task(acall("d"))
        cancelled.cancel()
        await asyncio.wait([cancelled])
        acall("e").close()
        return f"{len(answers)} of <coroutine object agent at 0x7f3a>"

    result = outcome_of(executor, agent)

    assert isinstance(result, Answered)
    assert result.text == "3 of <coroutine object agent at 0x7f3a>"
    assert isinstance(outcome_of(executor, lambda turn: turn.tools.acall("returned")), Broke)  # a dict


@pytest.mark.clause("L3")
@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (lambda: "x", "has too many positional arguments"),
        (lambda turn, channel: (turn, channel), "has missing a required argument: 'channel'"),
        (lambda *, turn: turn, "has too many positional arguments"),
    ],
)
def test_an_agent_that_takes_something_else_than_a_turn_is_refused_at_once(
    executor: AgentExecutor, agent: Any, said: str
) -> None:
    with pytest.raises(
        ToolRefused, match=r"agents\['agent'\]: .*<lambda>\(.*it is called as .*\(turn\)"
    ) as refused:
        executor.register("agent", agent)

    assert said in str(refused.value)


@pytest.mark.clause("L3")
def test_an_agent_is_judged_by_what_is_called(executor: AgentExecutor) -> None:
    def with_a_greeting(function: Any) -> Any:
        @wraps(function)
        def called(turn: Turn) -> object:
            return function(turn, "hi")

        return called

    @with_a_greeting
    def decorated(turn: Turn, greeting: str) -> str:
        return f"{greeting} {turn.message}"

    def tuned(turn: Turn, greeting: str, *, loud: bool = False) -> str:
        return f"{greeting} {turn.message}{'!' if loud else ''}"

    class Called:
        def __call__(self, turn: Turn, greeting: str = "hi") -> str:
            return f"{greeting} {turn.message}"

    for agent in (decorated, partial(tuned, greeting="hi"), Called(), Called().__call__):
        result = outcome_of(executor, agent)
        assert isinstance(result, Answered)
        assert result.text == "hi hello"
