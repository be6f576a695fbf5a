"""What nobody here can do waits, visible and unspent, until somebody can (KEY-9, ANN-3)."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, echo
from intersession_events.facts import DeliveryDone, DeliveryFailed, DeliveryStarted
from support.fakes import ManualClock
from support.running import Booth, pass_time_until, recorded, wait_for, wait_for_number

AN_HOUR = {"deliveries": {"maxAgeSeconds": 3600}}


@pytest.mark.clause("ANN-3")
def test_a_delivery_whose_channel_is_not_here_waits_for_it_without_spending_an_attempt(
    log_url: str,
) -> None:
    store = log_url
    with SessionSystem(store, agents={"main": echo()}) as system:
        answer = system.inbound(channel="telegram", chat_id="42", sender="42", text="hi", wait=10)
        (parked,) = system.service.flows.open_deliveries()
        delivery = system.service.flows.delivery(parked.partition(":")[2])

        telegram = MemoryChannel()
        system.register_channel("telegram", telegram)
        (shown,) = telegram.wait_for(1, timeout=20)

    assert answer["status"] == "ok"
    assert delivery is not None
    assert (delivery.state, delivery.attempt) == ("decided", 0)
    assert (shown.to, shown.text) == ("42", "hi")


@pytest.mark.clause("ANN-3", "L7")
def test_what_was_said_before_a_stop_is_still_delivered_by_it(log_url: str) -> None:
    telegram = MemoryChannel()
    store = log_url
    with SessionSystem(store, agents={"main": echo()}, channels={"telegram": telegram}) as system:
        for number in range(20):
            system.inbound(channel="telegram", chat_id="42", sender="42", text=f"hi {number}", wait=10)

    assert [shown.text for shown in telegram.delivered] == [f"hi {number}" for number in range(20)]


def say(system: SessionSystem, text: str) -> None:
    answer = system.inbound(channel="telegram", chat_id="42", sender="42", text=text, wait=10)
    assert answer["status"] == "ok", answer


@pytest.mark.clause("ANN-3")
def test_a_text_that_nobody_took_for_too_long_is_given_up_and_the_log_says_so(booth: Booth) -> None:
    """Before: what nobody delivers for does not gather for ever."""
    clock = ManualClock()
    system = booth.start({"main": echo()}, {}, AN_HOUR, clock=clock)
    say(system, "hi")
    assert system.service.flows.open_deliveries()

    failed = pass_time_until(system, clock, 1_800_000, DeliveryFailed)

    assert (failed.attempt, failed.retry_at_ms) == (0, None)
    assert failed.error == "channel 'telegram' did not take it within 3600 s (deliveries.maxAgeSeconds)"
    assert recorded(system, DeliveryStarted) == []
    assert system.service.flows.open_deliveries() == []


@pytest.mark.clause("ANN-3")
def test_a_channel_that_is_registered_late_is_not_flooded_with_what_is_long_past(booth: Booth) -> None:
    clock = ManualClock()
    first = booth.start({"main": echo()}, {}, AN_HOUR, clock=clock)
    for number in range(5):
        say(first, f"old {number}")
    first.close()
    clock.advance(3_600_000)
    second = booth.start({"main": echo()}, {}, AN_HOUR, clock=clock)
    say(second, "new")
    telegram = MemoryChannel()
    second.register_channel("telegram", telegram)
    wait_for(second, DeliveryDone)
    wait_for_number(second, DeliveryFailed, 5)

    assert [shown.text for shown in telegram.delivered] == ["new"]


@pytest.mark.clause("ANN-3")
def test_a_limit_of_zero_waits_as_long_as_it_takes(booth: Booth) -> None:
    clock = ManualClock()
    system = booth.start({"main": echo()}, {}, {"deliveries": {"maxAgeSeconds": 0}}, clock=clock)
    say(system, "hi")
    clock.advance(10 * 365 * 86_400_000)
    telegram = MemoryChannel()
    system.register_channel("telegram", telegram)

    assert [shown.text for shown in telegram.wait_for(1, timeout=20)] == ["hi"]


def test_texts_that_wait_for_a_channel_are_kept_in_the_log_and_not_in_memory(booth: Booth) -> None:
    system = booth.start({"main": echo()}, {"late": MemoryChannel()})
    for number in range(20):
        say(system, f"{number}")
    system.inbound(channel="late", chat_id="1", sender="1", text="last", wait=10)
    wait_for(system, DeliveryDone)

    outbox: Any = system.service.supervisor._managers["delivery"]
    assert len(system.service.flows.open_deliveries()) == 20
    assert len(outbox._actor._flows) <= 1
