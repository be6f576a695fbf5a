"""One contract, every runtime: with threads, and in a simulation."""

import asyncio
import resource
import sys
import threading
from collections import Counter as Outcomes
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pykka
import pytest

from intersession_actors.running.runtime.actor import Failure, Handler, HandlerFailed, Ref
from intersession_actors.running.runtime.inbox import InboxFull
from intersession_actors.running.runtime.pool import PooledRuntime
from intersession_actors.running.runtime.reply import ReplyFuture, WaitedInHandler
from intersession_actors.running.runtime.runtime import RuntimeStopped, ThreadingRuntime
from intersession_actors.running.simulation.simulated import SimulatedRuntime

AnyRuntime = PooledRuntime | ThreadingRuntime | SimulatedRuntime
WAIT = 20.0


@pytest.fixture(params=[PooledRuntime, ThreadingRuntime, SimulatedRuntime])
def runtime(request: pytest.FixtureRequest) -> Iterator[AnyRuntime]:
    started: AnyRuntime = request.param()
    yield started
    assert started.stop(WAIT) == ()


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns so often that what can go wrong between two steps does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Recorder(Handler):
    """Keeps what it is told; does what a callable says; answers the rest with itself."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.stopped = 0

    def on_receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        self.seen.append(message)
        return message

    def on_stop(self) -> None:
        self.stopped += 1


class Gate:
    """A message that keeps its actor busy until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, _: Handler) -> None:
        self.entered.set()
        assert self.opened.wait(WAIT)


def keep_busy(runtime: AnyRuntime, ref: Ref) -> Gate:
    """Have an actor be in the middle of a message until the gate is opened; in a simulation it has its next turn when we wait."""
    gate = Gate()
    if isinstance(runtime, SimulatedRuntime):
        return gate
    ref.tell(gate, urgent=True)
    assert gate.entered.wait(WAIT)
    return gate


def happens(runtime: AnyRuntime, event: threading.Event) -> bool:
    if isinstance(runtime, SimulatedRuntime):
        return runtime.run_until(event.is_set, timeout=WAIT)
    return event.wait(WAIT)


def together(runtime: AnyRuntime, send: Callable[[int, Callable[[], None]], None], senders: int) -> None:
    """Have several send at the same time. Each gives way between two messages, which threads do by themselves."""
    if isinstance(runtime, SimulatedRuntime):
        give_way = partial(runtime.pause, 0)
        for asked in [runtime.spawn(partial(send, number, give_way)) for number in range(senders)]:
            assert runtime.run_until(asked.done)
            asked.result()
        return
    threads = [threading.Thread(target=send, args=(number, lambda: None)) for number in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def itself(actor: Recorder) -> Recorder:
    return actor


def sleep(actor: Recorder) -> bool:
    return actor.me.close_if_idle()


def wake_up(_: Handler) -> str:
    return "awake"


def owe(actor: Recorder) -> None:
    actor.take_reply()


def ask_oneself(actor: Recorder) -> Any:
    return actor.me.ask("me").get()


def seen(recorder: Recorder) -> list[Any]:
    return list(recorder.seen)


def raiser(error: BaseException) -> Callable[[Handler], None]:
    def raise_it(_: Handler) -> None:
        raise error

    return raise_it


def test_messages_are_handled_one_at_a_time_and_in_order(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")

    for number in range(1000):
        ref.tell(number)

    assert ref.ask(seen).get(timeout=WAIT) == list(range(1000))


def test_an_actor_is_a_pykka_actor_that_pykkas_registry_does_not_know(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")
    actor = ref.ask(itself).get(timeout=WAIT)

    assert isinstance(actor, pykka.Actor)
    assert actor.actor_ref.ask("hello", timeout=WAIT) == "hello"
    assert actor.actor_ref not in pykka.ActorRegistry.get_all()


def test_pykkas_own_stop_stops_it_after_the_messages_before(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")
    actor: Recorder = ref.ask(itself).get(timeout=WAIT)
    ref.tell("last")

    assert actor.actor_ref.stop(block=True, timeout=WAIT) is True
    assert actor.seen == ["last"]
    assert actor.stopped == 1
    assert actor.actor_ref.stop(block=True, timeout=WAIT) is False


def test_a_stopped_actor_takes_nothing_more(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="the recorder")
    ref.stop()
    ref.stop()

    assert not ref.is_alive()
    with pytest.raises(pykka.ActorDeadError, match="the recorder has stopped"):
        ref.tell("too late")
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("too late").get(timeout=WAIT)


def test_an_actor_about_to_stop_still_takes_what_the_system_must_not_lose(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")
    actor: Recorder = ref.ask(itself).get(timeout=WAIT)
    gate = keep_busy(runtime, ref)
    ref.stop()

    ref.tell("committed", urgent=True)
    gate.opened.set()

    assert runtime.stop(WAIT) == ()
    assert actor.seen == ["committed"]


@pytest.mark.clause("L5")
def test_a_full_inbox_says_busy_and_still_takes_urgent_messages(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder", inbox_limit=2)
    gate = keep_busy(runtime, ref)
    ref.tell(1)
    ref.tell(2)

    with pytest.raises(InboxFull, match="recorder is busy: 2 messages"):
        ref.tell(3)
    refused = ref.ask(4)
    ref.tell(5, urgent=True)
    gate.opened.set()

    with pytest.raises(InboxFull):
        refused.get(timeout=WAIT)
    ref.stop()
    assert runtime.stop(WAIT) == ()


@pytest.mark.clause("L5")
def test_any_number_of_messages_to_a_busy_actor_are_refused_without_being_kept(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder", inbox_limit=10)
    gate = keep_busy(runtime, ref)

    refused = 0
    for number in range(20_000):
        try:
            ref.tell(number)
        except InboxFull:
            refused += 1
    gate.opened.set()

    assert refused == 20_000 - 10
    done = threading.Event()
    ref.tell(lambda _: done.set(), urgent=True)
    assert happens(runtime, done)
    assert ref.ask(seen).get(timeout=WAIT) == list(range(10))


@pytest.mark.clause("L3")
@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_a_handler_raises_ends_that_actor_alone(runtime: AnyRuntime, error: BaseException) -> None:
    failures: list[Failure] = []
    failed = threading.Event()

    def on_failure(failure: Failure) -> None:
        failures.append(failure)
        failed.set()

    bystander = runtime.start(Recorder, name="bystander")
    victim = runtime.start(Recorder, name="victim", on_failure=on_failure)
    message = raiser(error)
    victim.tell(message)

    assert happens(runtime, failed)
    assert [(f.ref, f.error, f.message) for f in failures] == [(victim, error, message)]
    assert not victim.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        victim.tell("gone")
    assert bystander.ask("still here").get(timeout=WAIT) == "still here"


def test_who_asked_learns_what_the_handler_raised(runtime: AnyRuntime) -> None:
    with pytest.raises(ValueError, match="bad"):
        runtime.start(Recorder, name="a").ask(raiser(ValueError("bad"))).get(timeout=WAIT)
    # A SystemExit is the actor's: it must not end the asker's thread.
    with pytest.raises(HandlerFailed, match="SystemExit"):
        runtime.start(Recorder, name="b").ask(raiser(SystemExit(1))).get(timeout=WAIT)


@pytest.mark.clause("O9")
def test_messages_not_begun_are_handed_back_with_their_answers(runtime: AnyRuntime) -> None:
    failures: list[Failure] = []
    failed = threading.Event()

    def told(failure: Failure) -> None:
        failures.append(failure)
        failed.set()

    ref = runtime.start(Recorder, name="recorder", on_failure=told)
    gate = keep_busy(runtime, ref)
    ref.tell(raiser(ValueError("bad")))
    ref.tell("not begun")
    answer = ref.ask("nor this")
    gate.opened.set()

    assert happens(runtime, failed)
    told_only, asked = failures[0].left
    assert (told_only.message, told_only.reply_to) == ("not begun", None)
    assert asked.message == "nor this"
    assert asked.reply_to is not None
    asked.reply_to.set("answered by another")
    assert answer.get(timeout=WAIT) == "answered by another"


def test_without_a_supervisor_messages_not_begun_are_refused(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")
    gate = keep_busy(runtime, ref)
    ref.tell(raiser(ValueError("bad")))
    answer = ref.ask("never begun")
    gate.opened.set()

    with pytest.raises(pykka.ActorDeadError, match="failed before it handled"):
        answer.get(timeout=WAIT)


def test_a_supervisor_that_fails_leaves_nobody_waiting(runtime: AnyRuntime) -> None:
    def on_failure(_: Failure) -> None:
        raise SystemExit(1)

    ref = runtime.start(Recorder, name="recorder", on_failure=on_failure)
    gate = keep_busy(runtime, ref)
    ref.tell(raiser(ValueError("bad")))
    answer = ref.ask("never begun")
    gate.opened.set()

    with pytest.raises(pykka.ActorDeadError):
        answer.get(timeout=WAIT)


def test_an_actor_that_fails_at_its_start_is_reported(runtime: AnyRuntime) -> None:
    class Unborn(Handler):
        def on_start(self) -> None:
            raise SystemExit(1)

    failures: list[Failure] = []
    failed = threading.Event()

    def on_failure(failure: Failure) -> None:
        failures.append(failure)
        failed.set()

    runtime.start(Unborn, name="unborn", on_failure=on_failure)

    assert happens(runtime, failed)
    assert failures[0].message is None


def test_a_constructor_that_raises_raises_where_the_actor_is_started(runtime: AnyRuntime) -> None:
    with pytest.raises(TypeError, match="argument"):
        runtime.start(Recorder, "one argument too many", name="recorder")
    assert len(runtime._live) == 0


@pytest.mark.clause("L4")
def test_waiting_for_an_answer_inside_a_handler_raises_at_once(runtime: AnyRuntime) -> None:
    other = runtime.start(Recorder, name="other")

    def wait(_: Handler) -> None:
        other.ask("hello").get(timeout=WAIT)

    def await_it(_: Handler) -> None:
        other.ask("hello").__await__().send(None)

    for message in (wait, await_it):
        with pytest.raises(WaitedInHandler, match="tell the other one"):
            runtime.start(Recorder, name="waiter").ask(message).get(timeout=WAIT)


def test_waiting_for_ones_own_answer_inside_a_handler_raises_at_once(runtime: AnyRuntime) -> None:
    with pytest.raises(WaitedInHandler):
        runtime.start(Recorder, name="self").ask(ask_oneself).get(timeout=WAIT)


async def test_an_answer_can_be_awaited_without_blocking_the_loop(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")
    gate = keep_busy(runtime, ref)
    answer = ref.ask("hello")
    # Were the loop blocked by the await, nobody could open the gate.
    asyncio.get_running_loop().call_later(0.01, gate.opened.set)

    assert await answer == "hello"


def test_an_answer_can_come_later_from_somewhere_else(runtime: AnyRuntime) -> None:
    class Later(Handler):
        reply: ReplyFuture | None = None

        def on_receive(self, message: str) -> str:
            if message == "question":
                self.reply = self.take_reply()
            elif self.reply is not None:
                self.reply.set("the answer")
            return "the return value"

    ref = runtime.start(Later, name="later")
    answer = ref.ask("question")
    assert ref.ask("committed").get(timeout=WAIT) == "the return value"

    assert answer.get(timeout=WAIT) == "the answer"


@pytest.mark.parametrize("end", ["stop", "fail"])
def test_an_answer_that_is_owed_when_the_actor_ends_is_an_error(runtime: AnyRuntime, end: str) -> None:
    ref = runtime.start(Recorder, name="recorder")
    answer = ref.ask(owe)

    if end == "stop":
        ref.stop()
    else:
        ref.tell(raiser(ValueError("bad")))

    with pytest.raises((pykka.ActorDeadError, HandlerFailed), match="before it answered"):
        answer.get(timeout=WAIT)


def test_only_an_actor_that_nothing_waits_for_is_put_to_sleep(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")
    gate = keep_busy(runtime, ref)

    if not isinstance(runtime, SimulatedRuntime):  # there nobody is ever in the middle of a message
        assert ref.close_if_idle() is False
    ref.tell("waiting")
    assert ref.close_if_idle() is False
    gate.opened.set()
    assert ref.ask(seen).get(timeout=WAIT) == ["waiting"]

    # From inside, the message at hand does not count.
    asleep = ref.ask(sleep)
    assert asleep.get(timeout=WAIT) is True
    assert not ref.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("wake another one", urgent=True)


def test_an_actor_put_to_sleep_is_stopped_and_forgotten(runtime: AnyRuntime) -> None:
    ref = runtime.start(Recorder, name="recorder")
    actor: Recorder = ref.ask(itself).get(timeout=WAIT)
    assert ref.ask(sleep).get(timeout=WAIT)

    assert runtime.stop(WAIT) == ()
    assert actor.stopped == 1
    assert len(runtime._live) == 0


def test_stopping_a_runtime_refuses_what_a_stuck_actor_had_not_begun() -> None:
    runtime = PooledRuntime(threads=2)
    ref = runtime.start(Recorder, name="stuck")
    free = runtime.start(Recorder, name="free")
    gate = keep_busy(runtime, ref)
    answer = ref.ask("never begun")
    done = free.ask("done")

    assert "stuck" in runtime.stop(0.05)  # the other one may be about to end

    assert done.get(timeout=WAIT) == "done"
    with pytest.raises(pykka.ActorDeadError):
        answer.get(timeout=WAIT)
    with pytest.raises(RuntimeStopped):
        runtime.start(Recorder, name="another")
    gate.opened.set()


@pytest.mark.clause("L10")
@pytest.mark.usefixtures("hasty_threads")
def test_no_ask_is_left_unanswered_and_no_tell_vanishes_while_actors_stop(runtime: AnyRuntime) -> None:
    """The race that Pykka's own queue loses: 8 of 18,000 asks were never answered, tells vanished silently."""
    actors, senders, each = 60, 3, 5 if isinstance(runtime, SimulatedRuntime) else 30
    asks: list[list[ReplyFuture]] = [[] for _ in range(senders)]
    told = [0] * senders
    handled = [0] * actors

    class Counter(Handler):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def on_receive(self, message: str) -> str:
            handled[self.number] += message == "tell"
            return message

    refs = [runtime.start(Counter, number, name=f"a{number}") for number in range(actors)]

    def send(sender: int, give_way: Callable[[], None]) -> None:
        for number, ref in enumerate(refs * each):
            give_way()
            asks[sender].append(ref.ask("ask"))
            if sender == 0 and number % (actors + 1) == actors // 2 and not ref.close_if_idle():
                ref.stop()
            with suppress(pykka.ActorDeadError):
                ref.tell("tell")
                told[sender] += 1

    together(runtime, send, senders)

    assert runtime.stop(WAIT) == ()
    answers = Outcomes(_outcome(ask) for mine in asks for ask in mine)
    assert answers.total() == actors * senders * each
    assert set(answers) == {"ask", "dead"}
    assert sum(handled) == sum(told)


def _outcome(ask: ReplyFuture) -> str:
    try:
        return str(ask.get(timeout=WAIT))
    except pykka.ActorDeadError:
        return "dead"


@pytest.mark.clause("L10")
@pytest.mark.usefixtures("hasty_threads")
def test_an_actor_put_to_sleep_in_the_midst_of_senders_loses_nothing(runtime: AnyRuntime) -> None:
    total, senders = 100 if isinstance(runtime, SimulatedRuntime) else 2000, 3
    handled: list[int] = []
    lock = threading.Lock()
    directory: list[Ref] = []

    class Sleepy(Handler):
        def on_receive(self, message: int) -> None:
            handled.append(message)
            self.me.close_if_idle()

    def wake() -> Ref:
        with lock:
            if not directory or not directory[-1].is_alive():
                directory.append(runtime.start(Sleepy, name=f"sleepy-{len(directory)}"))
            return directory[-1]

    def send(_: int, give_way: Callable[[], None]) -> None:
        for number in range(total):
            give_way()
            while True:
                try:
                    wake().tell(number)
                    break
                except pykka.ActorDeadError:
                    continue

    together(runtime, send, senders)
    assert runtime.stop(WAIT) == ()

    assert sorted(handled) == sorted(list(range(total)) * senders)


@pytest.mark.parametrize("actors", [5_000, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_thousands_of_actors_live_on_the_threads_of_the_pool_for_little_memory(actors: int) -> None:
    runtime = PooledRuntime(threads=2)
    threads = set(threading.enumerate())
    before = resident_bytes()

    refs = [runtime.start(Recorder, name=f"agent:main:subagent:{number}") for number in range(actors)]
    asks = [ref.ask(number) for number, ref in enumerate(refs)]

    assert [ask.get(timeout=WAIT) for ask in asks] == list(range(actors))
    del asks
    assert set(threading.enumerate()) <= threads  # those of an earlier test may have ended meanwhile
    assert len(runtime._live) == actors
    assert (resident_bytes() - before) / actors < 4_000
    assert runtime.stop(WAIT) == ()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_an_actor_with_much_to_do_lets_others_have_their_turn() -> None:
    runtime = PooledRuntime(threads=1)
    gate = Gate()
    busy, other = runtime.start(Recorder, name="busy"), runtime.start(Recorder, name="other")
    handled_before: list[int] = []
    busy_actor: Recorder = busy.ask(itself).get(timeout=WAIT)
    busy.tell(gate)
    assert gate.entered.wait(WAIT)
    for number in range(1000):
        busy.tell(number)
    turn = other.ask(lambda _: handled_before.append(len(busy_actor.seen)))
    gate.opened.set()
    turn.get(timeout=WAIT)

    assert handled_before[0] <= 32
    assert busy.ask(seen).get(timeout=WAIT) == list(range(1000))
    assert runtime.stop(WAIT) == ()


def test_a_factory_in_place_of_a_class_is_refused(runtime: AnyRuntime) -> None:
    with pytest.raises(TypeError, match="class of a handler"):
        runtime.start(lambda: Recorder(), name="x")  # type: ignore[arg-type]  # noqa: PLW0108


def test_a_handler_is_started_by_a_runtime_alone() -> None:
    with pytest.raises(RuntimeError, match=r"runtime\.start"):
        Recorder().begin()


# --- turns of the pool (finding A21)


@pytest.mark.parametrize(("milliseconds", "most"), [(0, 32), (1, 5), (10, 1)])
def test_an_actor_with_much_to_do_goes_to_the_back_of_the_queue(milliseconds: int, most: int) -> None:
    """By number of messages where they are quick, by time where they are slow."""
    now = 0.0
    handled: list[str] = []
    began, go_on, done = threading.Event(), threading.Event(), threading.Event()

    class Named(Handler):
        def __init__(self, mark: str) -> None:
            super().__init__()
            self.mark = mark

        def on_receive(self, message: Any) -> None:
            nonlocal now
            if message == "hold":
                began.set()
                assert go_on.wait(WAIT)
                return
            handled.append(self.mark)
            now += milliseconds / 1000
            if message == "last":
                done.set()

    runtime = PooledRuntime(threads=1, monotonic=lambda: now)
    holder, flooded, other = (
        runtime.start(Named, name, name=name) for name in ("holder", "flooded", "other")
    )
    holder.tell("hold")
    assert began.wait(WAIT)
    for number in range(100):
        flooded.tell("last" if number == 99 else number)
    other.tell("hi")
    go_on.set()
    assert done.wait(WAIT)

    assert handled.index("other") <= most
    assert handled.count("flooded") == 100
    assert runtime.stop(WAIT) == ()
