"""What nobody here can do waits, visible and unspent, until somebody can (KEY-9, ANN-3)."""

from pathlib import Path

import pytest

from intersession import MemoryChannel, SessionSystem, echo


@pytest.mark.clause("ANN-3")
def test_a_delivery_whose_channel_is_not_here_waits_for_it_without_spending_an_attempt(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path / 'log.db'}"
    with SessionSystem(store, agents={"main": echo()}) as system:
        answer = system.inbound(channel="telegram", chat_id="42", sender="42", text="hi", wait=10)
        (parked,) = system.service.flows.open_deliveries()
        delivery = system.service.flows.delivery(parked.partition(":")[2])

        telegram = MemoryChannel()
        system.register_channel("telegram", telegram)
        (shown,) = telegram.wait_for(1, timeout=10)

    assert answer["status"] == "ok"
    assert delivery is not None
    assert (delivery.state, delivery.attempt) == ("decided", 0)
    assert (shown.to, shown.text) == ("42", "hi")


@pytest.mark.clause("ANN-3", "L7")
def test_what_was_said_before_a_stop_is_still_delivered_by_it(tmp_path: Path) -> None:
    telegram = MemoryChannel()
    store = f"sqlite:///{tmp_path / 'log.db'}"
    with SessionSystem(store, agents={"main": echo()}, channels={"telegram": telegram}) as system:
        for number in range(20):
            system.inbound(channel="telegram", chat_id="42", sender="42", text=f"hi {number}", wait=10)

    assert [shown.text for shown in telegram.delivered] == [f"hi {number}" for number in range(20)]
