"""What a channel returns that is not over yet, or never began, is no delivery (finding D2)."""

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.channels.channels import Channel, DeliveryRefused, Outbound
from intersession_actors.outside.channels.outcomes import Delivered, DeliveryResult, NotDelivered
from intersession_actors.rules.errors import ToolRefused

WAIT = 20.0


@pytest.fixture
def caller() -> Iterator[ChannelCaller]:
    made = ChannelCaller()
    yield made
    assert made.stop(WAIT) == ()


def asked(caller: ChannelCaller, channel: Any) -> Queue[DeliveryResult]:
    results: Queue[DeliveryResult] = Queue()
    caller.register("telegram", channel)
    caller.start("telegram", Outbound(channel="telegram", to="42", text="hello", key="1"), results.put)
    return results


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("goes_well", [True, False])
def test_a_channel_that_hands_its_work_to_a_pool_is_waited_for(
    caller: ChannelCaller, *, goes_well: bool
) -> None:
    handed: Queue[Future[str]] = Queue()

    def deliver(_: Outbound) -> Future[str]:
        future: Future[str] = Future()
        handed.put(future)
        return future

    results = asked(caller, deliver)
    future = handed.get(timeout=WAIT)
    assert results.empty()
    if goes_well:
        future.set_result("m1")
    else:
        future.set_exception(DeliveryRefused("blocked"))

    refused = NotDelivered(error="DeliveryRefused: blocked", retry=False)
    assert results.get(timeout=WAIT) == (Delivered(receipt='"m1"') if goes_well else refused)


def test_an_agent_that_hands_its_work_to_a_pool_is_waited_for() -> None:
    with ThreadPoolExecutor(1) as pool:

        def agent(turn: Turn) -> Any:
            return pool.submit(lambda: f"from the pool: {turn.message}")

        with SessionSystem(":memory:", agents={"main": agent}) as system:
            answer = system.inbound(channel="x", chat_id="1", text="hi", sender="p", wait=WAIT)

    assert answer["reply"] == "from the pool: hi"


def generator(_: Outbound) -> Iterator[str]:
    yield "never sent"


async def async_generator(_: Outbound) -> AsyncIterator[str]:
    yield "never sent"


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("function", [generator, async_generator])
def test_a_channel_of_which_a_call_runs_nothing_is_no_channel(caller: ChannelCaller, function: Any) -> None:
    for channel in (function, Channel(deliver=function)):
        with pytest.raises(ToolRefused, match="is a generator, and calling it sends nothing"):
            caller.register("telegram", channel)

    def plain(given: Outbound) -> Any:
        return function(given)

    result = asked(caller, plain).get(timeout=WAIT)
    assert isinstance(result, NotDelivered)
    assert not result.retry
    assert "it sent nothing" in result.error
