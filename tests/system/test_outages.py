"""A chat service that is away for hours: its texts are tried until they are too old, in order, and at the pace it asks for."""

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from intersession import Channel, DeliveryLater, DeliveryRefused, MemoryChannel, Outbound, SessionSystem, echo
from intersession_events.facts import (
    DeliveryDecided,
    DeliveryDone,
    DeliveryFailed,
    DeliveryPartDone,
    DeliveryRetried,
    DeliveryStarted,
    DeliveryUnknown,
)
from support.fakes import ManualClock
from support.running import WAIT, Booth, pass_time, pass_time_until, recorded, wait_for, wait_for_number

MINUTE = 60_000
HOUR = 60 * MINUTE
PATIENT = {"deliveries": {"timeoutSeconds": 86_400}}
"""The clock is moved on by minutes while a channel may be at work."""


class Service:
    """A chat service that is away until it is `well`; `shown` is what people see."""

    def __init__(self, error: Callable[[], Exception] = lambda: ConnectionError("HTTP 502")) -> None:
        self.well = False
        self.error = error
        self.asked = 0
        self.shown: list[str] = []

    def __call__(self, out: Outbound) -> dict[str, int]:
        self.asked += 1
        if not self.well:
            raise self.error()
        self.shown.append(out.text)
        return {"messageId": len(self.shown)}


def say(system: SessionSystem, text: str, chat: str = "42", **given: Any) -> None:
    message = {"channel": "telegram", "chat_id": chat, "sender": "ann", "text": text, "wait": WAIT, **given}
    answer = system.inbound(**message)
    assert answer["status"] == "ok", answer


@pytest.mark.clause("ANN-3", "A8")
@pytest.mark.parametrize(
    ("hours", "fewest", "most"), [(1, 9, 21), pytest.param(3, 25, 45, marks=pytest.mark.ci)]
)
def test_a_text_survives_an_outage_of_hours(booth: Booth, hours: int, fewest: int, most: int) -> None:
    clock, service = ManualClock(), Service()
    system = booth.start({"main": echo()}, {"telegram": service}, clock=clock)
    say(system, "hello")
    wait_for(system, DeliveryFailed)
    while clock.now_ms() < 1_700_000_000_000 + hours * HOUR:
        failed = recorded(system, DeliveryFailed)
        pass_time(system, clock, (failed[-1].retry_at_ms or 0) - clock.now_ms())
        wait_for_number(system, DeliveryFailed, len(failed) + 1)
    service.well = True
    pass_time_until(system, clock, MINUTE, DeliveryDone)

    assert service.shown == ["hello"]
    assert fewest <= service.asked <= most
    pauses = [event.retry_at_ms - event.failed_ms for event in recorded(system, DeliveryFailed)]  # type: ignore[operator]
    assert pauses[:6] == [1_000, 4_000, 16_000, 64_000, 256_000, 300_000]
    assert max(pauses) == 300_000


@pytest.mark.clause("ANN-3")
def test_a_text_is_given_up_when_it_is_too_old_and_not_later(booth: Booth) -> None:
    clock, service = ManualClock(), Service(lambda: DeliveryLater(30 * 86_400.0))
    system = booth.start(
        {"main": echo()}, {"telegram": service}, {"deliveries": {"maxAgeSeconds": 3600}}, clock=clock
    )
    say(system, "hello")
    wait_for(system, DeliveryFailed)
    pass_time(system, clock, HOUR)
    wait_for_number(system, DeliveryFailed, 2)

    _, last = recorded(system, DeliveryFailed)
    assert (last.attempt, last.retry_at_ms) == (1, None)
    assert last.error == "channel 'telegram' did not take it within 3600 s (deliveries.maxAgeSeconds)"
    assert service.asked == 1


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize(
    ("error", "later_ms", "said"),
    [
        (lambda: DeliveryLater(90, "HTTP 429"), 90_000, "HTTP 429: again in 90 s"),
        (lambda: DeliveryLater(0), 1_000, "the service asks: again in 0 s"),
        (lambda: FloodControl(42), 42_000, "flood"),
    ],
)
def test_a_channel_is_not_asked_before_the_time_that_it_names(
    booth: Booth, error: Callable[[], Exception], later_ms: int, said: str
) -> None:
    clock, service = ManualClock(), Service(error)
    system = booth.start({"main": echo()}, {"telegram": service}, clock=clock)
    say(system, "hello")
    failed = wait_for(system, DeliveryFailed)
    assert (failed.later_ms, failed.retry_at_ms) == (later_ms, (failed.failed_ms or 0) + later_ms)
    assert said in failed.error
    service.well = True
    pass_time(system, clock, later_ms - 1)
    system.log.wait_for(system.log.head() + 1, timeout=0.05)
    asked_early = service.asked
    pass_time_until(system, clock, 1, DeliveryDone)

    assert (asked_early, service.shown) == (1, ["hello"])


class FloodControl(Exception):
    """An error as clients of chat services have them."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("flood control")
        self.retry_after = retry_after


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "5", None, True])
def test_a_time_that_is_none_can_not_be_asked_for(seconds: Any) -> None:
    with pytest.raises(ValueError, match="seconds: "):
        DeliveryLater(seconds)


@pytest.mark.clause("ANN-3", "L8")
def test_a_restart_in_an_outage_keeps_the_age_and_the_pause(booth: Booth) -> None:
    clock, service = ManualClock(), Service(lambda: DeliveryLater(600))
    day = {"deliveries": {"maxAgeSeconds": 3600}}
    first = booth.start({"main": echo()}, {"telegram": service}, day, clock=clock)
    say(first, "hello")
    wait_for(first, DeliveryFailed)
    clock.advance(400_000)
    first.close(grace=0)
    second = booth.start({"main": echo()}, {"telegram": service}, day, clock=clock)
    pass_time(second, clock, 199_000)
    second.log.wait_for(second.log.head() + 1, timeout=0.1)
    asked_early = service.asked
    pass_time_until(second, clock, 1_000, DeliveryFailed, 2)
    second.close(grace=0)
    clock.advance(3_600_000)  # more than an hour after it was decided
    third = booth.start({"main": echo()}, {"telegram": service}, day, clock=clock)
    wait_for(third, DeliveryFailed, lambda event: event.retry_at_ms is None)

    assert (asked_early, service.asked) == (1, 2)


@pytest.mark.clause("ANN-5")
def test_texts_to_a_chat_arrive_in_order_though_the_first_one_fails_once(booth: Booth) -> None:
    clock, memory = ManualClock(), MemoryChannel()
    failing = [ConnectionError("reset")]

    def deliver(out: Outbound) -> object:
        if out.to == "42" and failing:
            raise failing.pop()
        return memory._take(out)

    system = booth.start({"main": echo()}, {"telegram": deliver}, clock=clock)
    group = {"chat_type": "group"}
    say(system, "one", **group)
    wait_for(system, DeliveryFailed)
    say(system, "two", **group)
    say(system, "three", **group)
    say(system, "elsewhere", "43", **group)
    wait_for_number(system, DeliveryDone, 1)
    elsewhere = [out.text for out in memory.delivered]
    pass_time_until(system, clock, 1_000, DeliveryDone, 4)

    assert elsewhere == ["elsewhere"]
    assert [out.text for out in memory.delivered] == ["elsewhere", "one", "two", "three"]


@pytest.mark.clause("ANN-5")
@pytest.mark.parametrize("error", [DeliveryRefused("no"), None])
def test_a_text_that_ends_lets_the_next_one_go(booth: Booth, error: Exception | None) -> None:
    clock, service = ManualClock(), Service()
    system = booth.start({"main": echo()}, {"telegram": service}, clock=clock)
    say(system, "one")
    failed = wait_for(system, DeliveryFailed)
    say(system, "two")
    service.well = True
    if error is None:
        assert system.gateway.call("deliveries.retry", {"deliveryId": failed.delivery_id})["ok"]
    else:
        service.error, service.well = lambda: error, False
    if error is None:
        pass_time_until(system, clock, 1_000, DeliveryDone, 2)
        assert service.shown == ["one", "two"]
    else:
        pass_time_until(system, clock, 1_000, DeliveryFailed, 3)
        assert service.asked == 3


@pytest.mark.clause("ANN-5")
def test_the_order_outlives_a_restart(booth: Booth) -> None:
    clock, service = ManualClock(), Service()
    first = booth.start({"main": echo()}, {"telegram": service}, clock=clock)
    for number in range(8):
        say(first, f"text {number}")
    wait_for(first, DeliveryFailed)
    first.close(grace=0)
    second = booth.start({"main": echo()}, {"telegram": service}, clock=clock)
    service.well = True
    pass_time_until(second, clock, 1_000, DeliveryDone, 8)

    assert service.shown == [f"text {number}" for number in range(8)]


@pytest.mark.clause("ANN-5", "L7")
def test_a_stop_does_not_wait_for_texts_behind_one_that_fails(booth: Booth) -> None:
    service, clock = Service(), ManualClock()
    system = booth.start({"main": echo()}, {"telegram": service}, clock=clock)
    say(system, "one")
    wait_for(system, DeliveryFailed)
    say(system, "two")
    system.close(grace=3600)  # by a clock that stands still: it would never come back

    assert service.asked == 1


@pytest.mark.clause("ANN-3", "ANN-5")
def test_all_that_failed_is_taken_up_at_once_in_order(booth: Booth) -> None:
    service = Service(lambda: DeliveryRefused("maintenance"))
    system = booth.start({"main": echo()}, {"telegram": service, "discord": service})
    for number in range(5):
        say(system, f"text {number}")
    say(system, "elsewhere", channel="discord")
    wait_for_number(system, DeliveryFailed, 6)
    service.well = True
    first = system.gateway.call("deliveries.retry", {"failed": True, "channel": "telegram"})
    wait_for_number(system, DeliveryDone, 5)
    shown = list(service.shown)
    second = system.gateway.call("deliveries.retry", {"failed": True})
    wait_for_number(system, DeliveryDone, 6)
    third = system.gateway.call("deliveries.retry", {"failed": True})

    assert shown == [f"text {number}" for number in range(5)]
    assert (len(first["retried"]), len(second["retried"]), third["retried"]) == (5, 1, [])
    assert {event.by for event in recorded(system, DeliveryRetried)} == {"operator"}


@pytest.mark.clause("ANN-3")
def test_those_that_failed_are_retried_by_chat_and_by_session(booth: Booth) -> None:
    service = Service(lambda: DeliveryRefused("no"))
    system = booth.start({"main": echo()}, {"telegram": service})
    for chat in ("1", "2", "3"):
        say(system, f"to {chat}", chat, chat_type="group")
    wait_for_number(system, DeliveryFailed, 3)
    service.well = True

    by_chat = system.gateway.call("deliveries.retry", {"failed": True, "to": "2"})
    key = "agent:main:telegram:group:3"
    by_session = system.gateway.call("deliveries.retry", {"failed": True, "sessionKey": key})
    wait_for_number(system, DeliveryDone, 2)

    assert (len(by_chat["retried"]), len(by_session["retried"])) == (1, 1)
    assert sorted(service.shown) == ["to 2", "to 3"]


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({}, "deliveryId: missing"),
        ({"failed": True, "deliveryId": "x"}, "failed: stands beside deliveryId"),
        ({"channel": "telegram", "deliveryId": "x"}, "channel: stands beside deliveryId"),
    ],
)
def test_what_is_to_be_tried_again_has_to_be_said(booth: Booth, params: Any, error: str) -> None:
    refused = booth.start({"main": echo()}).gateway.call("deliveries.retry", params)

    assert (refused["code"], refused["error"].startswith(error)) == ("invalid_request", True)


# --- texts in parts

LONG = "\n\n".join(f"paragraph {number} " + "word " * 30 for number in range(10)).strip()


def parted(deliver: Callable[[Outbound], object], *, idempotent: bool = False) -> Channel:
    return Channel(deliver=deliver, max_chars=400, idempotent=idempotent)


@pytest.mark.clause("ANN-6")
def test_each_part_of_a_long_text_has_its_receipt(booth: Booth) -> None:
    memory = MemoryChannel(max_chars=400)
    system = booth.start({"main": echo()}, {"telegram": memory})
    say(system, LONG)
    say(system, "short")
    wait_for_number(system, DeliveryDone, 2)

    *some, last, short = memory.delivered
    assert "".join("".join(out.text for out in (*some, last)).split()) == "".join(LONG.split())
    assert short.text == "short"
    assert len({out.key for out in memory.delivered}) == len(memory.delivered)
    receipts = [event.receipt for event in recorded(system, DeliveryPartDone)]
    assert receipts == [f'{{"number":{number}}}' for number in range(1, len(some) + 1)]
    assert len(recorded(system, DeliveryStarted)) == 2


@pytest.mark.clause("ANN-6", "ANN-5")
def test_a_part_that_fails_is_tried_again_and_those_before_it_are_not(booth: Booth) -> None:
    clock, memory = ManualClock(), MemoryChannel()

    def deliver(out: Outbound) -> object:
        if len(memory.delivered) == 2 and clock.now_ms() == 1_700_000_000_000:
            raise ConnectionError("reset")
        return memory._take(out)

    system = booth.start({"main": echo()}, {"telegram": parted(deliver)}, clock=clock)
    say(system, LONG)
    wait_for(system, DeliveryFailed)
    say(system, "behind it")
    pass_time_until(system, clock, 1_000, DeliveryDone, 2)

    texts = [out.text for out in memory.delivered]
    assert "".join("".join(texts[:-1]).split()) == "".join(LONG.split())
    assert texts[-1] == "behind it"
    assert [event.attempt for event in recorded(system, DeliveryStarted)][:2] == [1, 2]


@pytest.mark.clause("ANN-6", "A6")
@pytest.mark.parametrize("idempotent", [True, False])
def test_after_a_crash_between_two_parts_the_first_is_not_sent_again(
    booth: Booth, *, idempotent: bool
) -> None:
    """The process ends while the channel has the second part, of which no receipt came."""
    memory, reached, held = MemoryChannel(), Event(), Event()

    def deliver(out: Outbound) -> object:
        if len(memory.delivered) == 1 and not held.is_set():
            reached.set()
            held.wait(WAIT)
            raise ConnectionError("the process is gone")
        return memory._take(out)

    first = booth.start({"main": echo()}, {"telegram": parted(deliver, idempotent=idempotent)})
    say(first, LONG)
    assert reached.wait(WAIT)
    first.close(grace=0)
    held.set()
    second = booth.start({"main": echo()}, {"telegram": parted(deliver, idempotent=idempotent)})
    if not idempotent:
        unknown = wait_for(second, DeliveryUnknown)
        assert second.gateway.call("deliveries.retry", {"deliveryId": unknown.delivery_id})["ok"]
    wait_for(second, DeliveryDone)

    texts = [out.text for out in memory.delivered]
    assert "".join("".join(texts).split()) == "".join(LONG.split())


@pytest.mark.clause("ANN-5")
def test_an_outage_of_ten_minutes_loses_nothing_and_keeps_the_order_of_each_chat(booth: Booth) -> None:
    """Before: ten minutes into an outage the next text was tried behind each failure, and could arrive first."""
    clock, service = ManualClock(), Service()
    system = booth.start({"main": echo()}, {"telegram": service}, PATIENT, clock=clock)
    for number in range(4):
        say(system, f"a{number}", "1", chat_type="group")
        say(system, f"b{number}", "2", chat_type="group")
        pass_time(system, clock, 3 * MINUTE)
    service.well = True
    pass_time_until(system, clock, MINUTE, DeliveryDone, 8)

    for name in "ab":
        assert [text for text in service.shown if text[0] == name] == [
            f"{name}{number}" for number in range(4)
        ]


@pytest.mark.clause("ANN-7")
def test_each_text_carries_its_number_in_its_chat_through_failures_and_restarts(booth: Booth) -> None:
    clock, seen = ManualClock(), list[tuple[str, str, int | None]]()
    failing = [ConnectionError("reset"), DeliveryRefused("never")]

    def deliver(out: Outbound) -> None:
        seen.append((out.to, out.text, out.number))
        if failing and out.text == "one":
            raise failing.pop()

    def start() -> SessionSystem:
        return booth.start({"main": echo()}, {"telegram": deliver}, clock=clock)

    first = start()
    say(first, "zero", chat_type="group")
    say(first, "one", chat_type="group")
    wait_for(first, DeliveryFailed)
    say(first, "two", chat_type="group")
    say(first, "elsewhere", "43", chat_type="group")
    wait_for_number(first, DeliveryDone, 3)
    first.close()
    second = start()
    say(second, "three", chat_type="group")
    wait_for_number(second, DeliveryDone, 4)
    failed = recorded(second, DeliveryFailed)[0]
    assert second.gateway.call("deliveries.retry", {"deliveryId": failed.delivery_id})["ok"]
    pass_time_until(second, clock, 1_000, DeliveryDone, 5)

    assert [one for one in seen if one[0] == "42"] == [
        ("42", "zero", 1),
        ("42", "one", 2),
        ("42", "two", 3),
        ("42", "three", 4),
        ("42", "one", 2),
        ("42", "one", 2),
    ]
    assert ("43", "elsewhere", 1) in seen


@pytest.mark.clause("ANN-5", "ANN-7")
def test_order_and_numbers_of_many_sessions_that_speak_to_one_chat(booth: Booth) -> None:
    seen = list[int | None]()

    def deliver(out: Outbound) -> None:
        seen.append(out.number)

    system = booth.start({"main": echo()}, {"telegram": deliver})
    say(system, "begin", chat_type="group")
    for number in range(20):
        sent = {"channel": "telegram", "to": "42", "message": f"text {number}", "idempotencyKey": str(number)}
        assert system.gateway.call("send", sent)["status"] == "accepted"
    wait_for_number(system, DeliveryDone, 21)

    assert seen == list(range(1, 22))


@pytest.mark.clause("ANN-8")
@pytest.mark.parametrize("whole_channel", [True, False])
def test_a_limit_of_the_whole_bot_pauses_its_channel_and_one_of_a_chat_the_chat(
    booth: Booth, whole_channel: bool
) -> None:
    clock, asked = ManualClock(), list[str]()
    limits = [DeliveryLater(300, "HTTP 429", whole_channel=whole_channel)]

    def deliver(out: Outbound) -> None:
        asked.append(out.to)
        if limits:
            raise limits.pop()

    channels = {"telegram": deliver, "other": MemoryChannel()}
    system = booth.start({"main": echo()}, channels, PATIENT, clock=clock)
    say(system, "one", "1", chat_type="group")
    wait_for(system, DeliveryFailed)
    say(system, "two", "2", chat_type="group")
    say(system, "three", "1", chat_type="group", channel="other")
    wait_for_number(system, DeliveryDone, 1 if whole_channel else 2)
    assert asked == (["1"] if whole_channel else ["1", "2"])
    paused = system.status()["channelCalls"].get("telegram", {}).get("paused", False)
    assert paused is whole_channel

    pass_time_until(system, clock, 60_000, DeliveryDone, 3)
    assert sorted(asked) == ["1", "1", "2"]
    assert clock.now_ms() >= 1_700_000_000_000 + 300_000


@pytest.mark.clause("ANN-5", "WHY-1")
def test_it_is_said_why_a_text_waits_behind_another_one(booth: Booth) -> None:
    clock, service = ManualClock(), Service()
    system = booth.start({"main": echo()}, {"telegram": service}, clock=clock)
    say(system, "one")
    first = wait_for(system, DeliveryFailed)
    say(system, "two")
    wait_for_number(system, DeliveryDecided, 2)
    _, second = recorded(system, DeliveryDecided)

    later, earlier = system.debug.deliveries()["deliveries"]
    assert (later["id"], later["waitsFor"]) == (second.delivery_id, first.delivery_id)
    assert "waitsFor" not in earlier
    decided = next(item for item in system.log.all() if item.event == second)
    (why,) = system.debug.why(f"#{decided.position}")["explanations"]
    assert (why["code"], why["rule"]) == ("waits_for_earlier", "ANN-5")
