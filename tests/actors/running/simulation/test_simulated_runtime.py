"""A simulation does one thing at a time, in an order that its seed decides, in a time of its own."""

import asyncio
import threading

import pytest

from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.timers import TimerWheel
from intersession_actors.running.simulation.greenlets import Stuck
from intersession_actors.running.simulation.simulated import SimulatedRuntime


class Noting(Handler):
    def __init__(self, name: str, notes: list[str]) -> None:
        super().__init__()
        self.name, self.notes = name, notes

    def on_receive(self, message: object) -> None:
        self.notes.append(f"{self.name}{message}")


def order_of(seed: int) -> list[str]:
    runtime, notes = SimulatedRuntime(seed), list[str]()
    actors = [runtime.start(Noting, name, notes, name=name) for name in "abc"]
    for number in range(3):
        for actor in actors:
            actor.tell(number)
    runtime.run()
    return notes


@pytest.mark.clause("C1")
def test_the_seed_decides_whose_turn_it_is_and_no_actor_overtakes_its_own_mail() -> None:
    orders = [order_of(seed) for seed in range(20)]

    assert orders == [order_of(seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) > 10
    assert all([note for note in order if note[0] == "a"] == ["a0", "a1", "a2"] for order in orders)


def test_time_passes_only_where_nothing_else_is_to_be_done() -> None:
    runtime, seen = SimulatedRuntime(), list[tuple[str, float]]()
    wheel = TimerWheel(runtime.clock, threads=runtime.threads)

    def note(name: str) -> None:
        seen.append((name, runtime.clock.monotonic()))

    wheel.after(3_600_000, ("late",), lambda: note("late"))
    wheel.after(1_000, ("soon",), lambda: note("soon"))
    wheel.after(500, ("never",), lambda: note("never"))
    wheel.cancel(("never",))
    began = runtime.clock.now_ms()
    runtime.run()

    assert seen == [("soon", 1.0), ("late", 3600.0)]
    assert runtime.clock.now_ms() - began == 3_600_000
    wheel.stop()


def test_time_passes_early_if_that_is_wanted_so_that_timeouts_race_with_work() -> None:
    def fired_after(seed: int) -> int:
        runtime, notes = SimulatedRuntime(seed, early=0.2), list[str]()
        actor = runtime.start(Noting, "a", notes, name="a")

        def waits() -> int:
            runtime.pause(60)
            return len(notes)

        waiting = runtime.spawn(waits)
        for number in range(20):
            actor.tell(number)
        runtime.run_until(waiting.done)
        return waiting.result()

    assert len({fired_after(seed) for seed in range(20)}) > 3


def test_who_waits_lets_the_others_go_on_and_no_handler_waits() -> None:
    runtime = SimulatedRuntime()
    changed, told = runtime.threads.changed(), list[str]()

    def waits() -> str:
        with changed:
            changed.wait_for(lambda: bool(told))
        return told[0]

    def tells() -> None:
        runtime.pause(5)
        told.append("now")
        with changed:
            changed.notify_all()

    waiting = runtime.spawn(waits)
    runtime.spawn(tells)
    assert runtime.run_until(waiting.done)
    assert (waiting.result(), runtime.clock.monotonic()) == ("now", 5.0)

    class Waits(Handler):
        def on_receive(self, message: object) -> None:  # noqa: ARG002
            runtime.pause(1)

    asked = runtime.start(Waits, name="waits").ask("wait")
    with pytest.raises(RuntimeError, match="only what runs on a thread may"):
        asked.get(timeout=20)


def test_a_wait_ends_with_its_time_or_says_that_nothing_can_end_it() -> None:
    runtime = SimulatedRuntime()

    assert not runtime.run_until(lambda: False, timeout=30)
    assert runtime.clock.monotonic() == 30
    assert not runtime.threads.changed().wait(5)
    assert runtime.clock.monotonic() == 35
    with pytest.raises(Stuck, match="nothing is left to be done"):
        runtime.run_until(lambda: False)


def test_coroutines_run_on_a_loop_of_the_simulation() -> None:
    runtime, threads = SimulatedRuntime(), set(threading.enumerate())
    loops = [runtime.threads.new_event_loop() for _ in range(2)]
    for loop in loops:
        runtime.threads.start(loop.run_forever, name="loop")

    def blocks(number: int) -> int:
        runtime.pause(1)
        return number

    async def work(number: int) -> tuple[int, float]:
        await asyncio.sleep(10 * number)
        async with asyncio.timeout(60):
            return await asyncio.to_thread(blocks, number), runtime.clock.monotonic()

    begun = [asyncio.run_coroutine_threadsafe(work(number), loop) for number, loop in enumerate(loops, 1)]
    assert runtime.run_until(lambda: all(one.done() for one in begun))
    assert [one.result() for one in begun] == [(1, 11.0), (2, 21.0)]
    assert set(threading.enumerate()) <= threads  # those of an earlier test may have ended meanwhile
    for loop in loops:
        loop.call_soon_threadsafe(loop.stop)
    runtime.run()
    for loop in loops:
        loop.close()


def test_a_crash_drops_actors_waits_and_timers() -> None:
    runtime, notes = SimulatedRuntime(), list[str]()
    actor = runtime.start(Noting, "a", notes, name="a")
    actor.tell(1)
    waiting = runtime.spawn(lambda: runtime.pause(10))
    runtime.run_until(lambda: bool(notes))
    actor.tell(2)

    runtime.crash()

    assert runtime.run() == 0
    assert (notes, actor.is_alive(), runtime.clock.monotonic()) == (["a1"], False, 0.0)
    assert waiting.exception() is not None
