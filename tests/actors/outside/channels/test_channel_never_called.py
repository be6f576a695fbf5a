"""A text whose channel was never called is no text in doubt: nothing was sent, so it is tried again (findings A4 and D2)."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.channels.channels import Channel, Outbound
from intersession_actors.outside.channels.outcomes import Delivered, DeliveryResult, NotDelivered
from intersession_actors.running.host.hosts_loop import HostsLoop
from support.fakes import ManualClock, ManualTimers

WAIT = 20.0


class HeldLoop:
    """An event loop of a host's in a thread of its own, on which something blocks until it is let go on."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._blocked, self._go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.loop.call_soon_threadsafe(self._block)
        assert self._blocked.wait(WAIT)

    def _block(self) -> None:
        self._blocked.set()
        assert self._go_on.wait(WAIT)

    def go_on(self) -> None:
        """Let it run, and return once it has done all that waited."""
        self._go_on.set()
        for _ in range(3):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result(WAIT)

    def end(self) -> None:
        """Stop it before it does what waits."""
        self.loop.stop()
        self._go_on.set()
        self._thread.join(WAIT)

    def close(self) -> None:
        self._go_on.set()
        if self.loop.is_running():
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WAIT)
        self.loop.run_until_complete(asyncio.sleep(0))  # what was left on it begins now, and must do nothing
        self.loop.close()


@pytest.fixture
def held() -> Iterator[HeldLoop]:
    made = HeldLoop()
    yield made
    if not made.loop.is_closed():
        made.close()


class Sent:
    """An async channel that keeps what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def deliver(self, given: Outbound) -> None:
        self.texts.append(given.text)
        await asyncio.sleep(0)


def caller_on(held: HeldLoop, channel: Sent, timers: ManualTimers, seats: int = 8) -> ChannelCaller:
    hosts_loop = HostsLoop()
    hosts_loop.adopt(held.loop)
    caller = ChannelCaller(
        seats=seats, clock=timers.clock, timers=timers, timeout_ms=30_000, hosts_loop=hosts_loop
    )
    caller.register("slow", Channel(deliver=channel.deliver))
    return caller


def outbound(text: str) -> Outbound:
    return Outbound(channel="slow", to="42", text=text, key=text)


@pytest.mark.clause("ANN-3")
def test_a_call_that_is_given_up_before_it_began_is_tried_again_and_never_made(held: HeldLoop) -> None:
    timers, channel, results = ManualTimers(ManualClock()), Sent(), list[DeliveryResult]()
    caller = caller_on(held, channel, timers, seats=16)
    for number in range(16):
        caller.start("slow", outbound(f"{number}"), results.append)
    timers.advance(30_000)
    held.go_on()

    assert channel.texts == []
    assert {(result.retry, result.in_doubt) for result in results if isinstance(result, NotDelivered)} == {
        (True, False)
    }
    assert len(results) == 16
    assert "could not be called in 30 s" in str(results[0])
    # None of them is lost, so the channel is still asked.
    assert caller.zombies == 0
    came = threading.Event()

    def done(result: DeliveryResult) -> None:
        results.append(result)
        came.set()

    caller.start("slow", outbound("again"), done)
    assert came.wait(WAIT)
    assert (results[-1], channel.texts) == (Delivered(), ["again"])
    assert caller.stop(WAIT) == ()


@pytest.mark.clause("ANN-3")
def test_a_stop_tells_a_call_that_never_began_that_it_was_not_made(held: HeldLoop) -> None:
    timers, channel, results = ManualTimers(ManualClock()), Sent(), list[DeliveryResult]()
    caller = caller_on(held, channel, timers)
    caller.start("slow", outbound("hello"), results.append)

    assert caller.stop(0) == ()
    held.go_on()
    assert results == [NotDelivered(error="the system stopped before the channel was called", retry=True)]
    assert channel.texts == []


@pytest.mark.clause("ANN-3")
def test_a_loop_that_ends_before_a_call_began_leaves_it_to_be_tried_again(held: HeldLoop) -> None:
    timers, channel = ManualTimers(ManualClock()), Sent()
    caller = caller_on(held, channel, timers)
    came, results = threading.Event(), list[DeliveryResult]()

    def done(result: DeliveryResult) -> None:
        results.append(result)
        came.set()

    caller.start("slow", outbound("hello"), done)
    held.end()

    assert came.wait(WAIT)
    assert results == [
        NotDelivered(error="LoopEnded: the event loop that it was to run on has ended", retry=True)
    ]
    held.close()
    assert channel.texts == []
    assert caller.stop(WAIT) == ()
