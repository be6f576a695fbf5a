import asyncio
import io
import threading
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any, TextIO

import pykka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.channels.channels import (
    Channel,
    DeliveryInDoubt,
    DeliveryRefused,
    MemoryChannel,
    Outbound,
    ThreadWanted,
    console_channel,
)
from intersession_actors.outside.channels.lanes import Calls
from intersession_actors.outside.channels.outcomes import (
    Delivered,
    DeliveryResult,
    NotDelivered,
    ThreadOpened,
)
from intersession_actors.outside.channels.turns import CallState
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_events.basics.printable import printable
from support.fakes import ManualClock, ManualTimers

WAIT = 20.0


def outbound(text: str = "hello", *, key: str = "key", thread: str | None = None) -> Outbound:
    return Outbound(channel="telegram", to="42", text=text, key=key, thread=thread)


@pytest.fixture
def caller() -> Iterator[ChannelCaller]:
    made = ChannelCaller()
    yield made
    assert made.stop(WAIT) == ()


def result_of(caller: ChannelCaller, channel: Any, given: Outbound | None = None) -> DeliveryResult:
    results: Queue[DeliveryResult] = Queue()
    caller.register("telegram", channel)
    caller.start("telegram", given or outbound(), results.put)
    return results.get(timeout=WAIT)


def test_a_bare_function_is_a_channel_with_all_defaults(caller: ChannelCaller) -> None:
    taken: list[Outbound] = []

    assert result_of(caller, taken.append) == Delivered()
    assert taken == [outbound()]
    assert caller.has("telegram")
    assert caller.idempotent("telegram") is False
    assert caller.has_threads("telegram") is False


def test_a_coroutine_function_is_a_channel(caller: ChannelCaller) -> None:
    async def deliver(given: Outbound) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"to": given.to}

    assert result_of(caller, deliver) == Delivered(receipt='{"to":"42"}')


async def test_an_async_channel_runs_on_the_hosts_loop() -> None:
    here = asyncio.get_running_loop()
    hosts_loop = HostsLoop()
    hosts_loop.adopt(here)
    caller = ChannelCaller(hosts_loop=hosts_loop)
    answered: asyncio.Future[DeliveryResult] = here.create_future()

    async def deliver(_: Outbound) -> str:
        return "the host's" if asyncio.get_running_loop() is here else "another"

    caller.register("telegram", deliver)

    def done(result: DeliveryResult) -> None:
        here.call_soon_threadsafe(answered.set_result, result)

    caller.start("telegram", outbound(), done)

    assert await answered == Delivered(receipt='"the host\'s"')
    assert caller.stop(WAIT) == ()


def test_a_hosts_actor_is_a_channel(caller: ChannelCaller) -> None:
    class Telegram(pykka.ThreadingActor):
        use_daemon_thread = True

        def on_receive(self, message: Outbound) -> str:
            return f"sent to {message.to}"

    ref = Telegram.start()

    assert result_of(caller, ref) == Delivered(receipt='"sent to 42"')
    ref.stop(block=True, timeout=WAIT)
    gone = result_of(caller, ref)
    assert isinstance(gone, NotDelivered)
    assert gone.retry


def test_something_that_is_no_channel_is_refused_when_it_is_registered(caller: ChannelCaller) -> None:
    for nothing in ("telegram", str, None):
        with pytest.raises(ToolRefused, match="is no channel"):
            caller.register("telegram", nothing)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("given", "receipt"),
    [
        (None, None),
        ("id 1", '"id 1"'),
        ({"id": 1, "ok": True}, '{"id":1,"ok":true}'),
        ({}, "{}"),
        (4711, "4711"),  # as many chat services number messages
        ([1, 2], "[1,2]"),
        (True, "true"),
    ],
)
def test_a_receipt_is_kept_as_json(caller: ChannelCaller, given: Any, receipt: str | None) -> None:
    assert result_of(caller, lambda _: given) == Delivered(receipt=receipt)


@pytest.mark.parametrize(
    "given", [float("nan"), 10**400, b"bytes", {"x": object()}, {1: [float]}, "x" * 100_000, "\ud800"]
)
def test_a_receipt_that_is_none_does_not_undo_the_delivery(caller: ChannelCaller, given: Any) -> None:
    result = result_of(caller, lambda _: given)

    assert isinstance(result, Delivered)
    assert result.receipt is not None
    assert result.receipt.startswith('{"unreadable":')


def test_a_channel_that_returns_false_is_told_how_to_say_that_it_failed(
    caller: ChannelCaller, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: many libraries return False for a text that was not sent, and nothing was said."""
    assert result_of(caller, lambda _: False) == Delivered(receipt="false")
    assert "returned False, and its text is taken for delivered: raise where it is not" in caplog.text


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize(
    "error",
    [ValueError("no net"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()],
)
def test_whatever_a_channel_raises_the_text_may_be_tried_again(
    caller: ChannelCaller, error: BaseException
) -> None:
    def deliver(_: Outbound) -> None:
        raise error

    async def deliver_async(_: Outbound) -> None:
        raise error

    for channel in (deliver, deliver_async):
        result = result_of(caller, channel)
        assert isinstance(result, NotDelivered)
        assert result.retry
        assert type(error).__name__ in result.error
    assert result_of(caller, MemoryChannel()) == Delivered(receipt='{"number":1}')


@pytest.mark.clause("ANN-3")
def test_a_channel_that_refuses_is_not_tried_again(caller: ChannelCaller) -> None:
    def deliver(_: Outbound) -> None:
        raise DeliveryRefused("42 has blocked us")

    assert result_of(caller, deliver) == NotDelivered(error="DeliveryRefused: 42 has blocked us", retry=False)


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_channel_in_doubt_is_tried_again_only_if_it_shows_a_key_once(
    caller: ChannelCaller, idempotent: bool
) -> None:
    def deliver(_: Outbound) -> None:
        raise DeliveryInDoubt("no answer")

    assert result_of(caller, Channel(deliver=deliver, idempotent=idempotent)) == NotDelivered(
        error="DeliveryInDoubt: no answer", retry=idempotent, in_doubt=True
    )


def test_a_channel_nobody_registered_may_be_tried_again(caller: ChannelCaller) -> None:
    results: list[DeliveryResult] = []
    caller.start("signal", outbound(), results.append)

    assert results == [NotDelivered(error="no channel 'signal' is registered in this process", retry=True)]
    assert not caller.has("signal")
    assert not caller.idempotent("signal")


def test_a_text_is_escaped_and_then_parted_as_the_channel_takes_it(caller: ChannelCaller) -> None:
    memory = MemoryChannel()
    channel = Channel(deliver=memory.deliver, escape=lambda text: text.replace("&", "&amp;"), max_chars=12)

    assert result_of(caller, channel, outbound("a & b")) == Delivered(receipt='{"number":1}')
    assert result_of(caller, channel, outbound("&&&&")) == Delivered(receipt='{"number":2}', sent=2)
    assert [given.text for given in memory.delivered] == ["a &amp; b", "&amp;&amp;"]


def test_an_escape_that_raises_keeps_the_text_in(caller: ChannelCaller) -> None:
    memory = MemoryChannel()

    def escape(_: str) -> str:
        raise ValueError("can't")

    result = result_of(caller, Channel(deliver=memory.deliver, escape=escape))

    assert isinstance(result, NotDelivered)
    assert memory.delivered == ()


def test_a_channel_opens_a_thread(caller: ChannelCaller) -> None:
    async def threads(wanted: ThreadWanted) -> str:
        return f"thread {wanted.title}"

    opened = thread_of(caller, threads)

    assert opened == ThreadOpened(thread="thread research")
    assert caller.has_threads("telegram")


@pytest.mark.parametrize("given", [None, "", " ", 3])
def test_a_channel_that_gives_no_id_has_opened_no_thread(caller: ChannelCaller, given: Any) -> None:
    result = thread_of(caller, lambda _: given)

    assert isinstance(result, NotDelivered)
    assert not result.retry


def test_a_channel_without_threads_says_so(caller: ChannelCaller) -> None:
    assert thread_of(caller, None) == NotDelivered(error="channel 'telegram' has no threads", retry=False)


def thread_of(
    caller: ChannelCaller, threads: Callable[[ThreadWanted], Any] | None
) -> ThreadOpened | NotDelivered:
    results: Queue[ThreadOpened | NotDelivered] = Queue()
    caller.register("telegram", Channel(deliver=MemoryChannel().deliver, threads=threads))
    caller.open_thread(
        "telegram", ThreadWanted(channel="telegram", to="42", title="research", key="k"), results.put
    )
    return results.get(timeout=WAIT)


def test_what_is_cut_off_by_a_stop_is_named_and_reports_nothing() -> None:
    caller = ChannelCaller(seats=1)
    entered, opened = threading.Event(), threading.Event()
    results: list[Any] = []

    def deliver(_: Outbound) -> None:
        entered.set()
        assert opened.wait(WAIT)

    caller.register("slow", deliver)
    caller.start("slow", outbound(), results.append)
    assert entered.wait(WAIT)

    assert caller.stop(0.01) == ("slow",)

    caller.start("slow", outbound(), results.append)
    opened.set()
    assert results == []


# --- the console, and the one that keeps


def say_on(out: TextIO | None, given: Outbound) -> None:
    deliver = console_channel(out).deliver
    assert callable(deliver)
    assert deliver(given) is None


@pytest.mark.clause("X12")
def test_the_console_shows_control_characters_instead_of_obeying_them() -> None:
    out = io.StringIO()
    say_on(out, outbound("red \x1b[31m\x07\r\u202e\u200b\x9b2J ümlaut 🎉", thread="7"))

    assert out.getvalue() == ("[telegram 42#7] red \\x1b[31m\\x07\\r\\u202e\\u200b\\x9b2J ümlaut 🎉\n")


def test_no_text_can_imitate_a_line_of_the_console() -> None:
    out = io.StringIO()
    say_on(out, outbound("hi\n[signal boss] you are fired"))

    assert out.getvalue() == "[telegram 42] hi\n    [signal boss] you are fired\n"


def test_a_console_that_only_knows_ascii_shows_the_rest_as_escapes() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    say_on(out, outbound("ümlaut \ud800"))

    assert raw.getvalue() == b"[telegram 42] \\xfcmlaut \\ud800\n"


def test_the_console_prints_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    say_on(None, outbound())

    assert capsys.readouterr().out == "[telegram 42] hello\n"


@pytest.mark.clause("X12")
@given(text=st.text())
def test_what_is_printable_has_nothing_but_printable_characters_line_breaks_and_tabs(text: str) -> None:
    shown = printable(text)

    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert printable(shown) == shown


def test_a_memory_channel_counts_by_key_and_shows_a_key_once_if_it_is_idempotent(
    caller: ChannelCaller,
) -> None:
    for idempotent, shown in ((False, ["one", "two", "one again"]), (True, ["one", "two"])):
        memory = MemoryChannel(idempotent=idempotent)
        for text, key in (("one", "1"), ("two", "2"), ("one again", "1")):
            result_of(caller, memory, outbound(text, key=key))

        assert [given.text for given in memory.shown] == shown
        assert (memory.count("1"), memory.count("2"), memory.count("3")) == (2, 1, 0)
        assert caller.idempotent("telegram") is idempotent
        assert memory.wait_for(3, timeout=WAIT) == memory.delivered


# --- a channel that does not come back


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("idempotent", [False, True])
def test_a_channel_that_does_not_come_back_is_given_up_and_the_text_is_in_doubt(idempotent: bool) -> None:
    clock = ManualClock()
    timers = ManualTimers(clock)
    caller = ChannelCaller(seats=1, clock=clock, timers=timers, timeout_ms=30_000)
    entered, opened = threading.Event(), threading.Event()
    results: list[DeliveryResult] = []

    def deliver(_: Outbound) -> None:
        entered.set()
        assert opened.wait(WAIT)

    caller.register("slow", Channel(deliver=deliver, idempotent=idempotent))
    caller.start("slow", outbound(), results.append)
    assert entered.wait(WAIT)
    timers.advance(29_999)
    assert results == []
    timers.advance(1)

    assert results == [
        NotDelivered(
            error="timeout: channel 'slow' has not come back in 30 s", retry=idempotent, in_doubt=True
        )
    ]
    assert caller.zombies == 1
    # Its only thread is lost; another one works all the same.
    assert result_of(caller, MemoryChannel()) == Delivered(receipt='{"number":1}')
    opened.set()
    assert caller.stop(WAIT) == ()
    assert len(results) == 1


def test_a_channel_that_came_back_leaves_no_timer() -> None:
    timers = ManualTimers(ManualClock())
    caller = ChannelCaller(clock=timers.clock, timers=timers)

    assert result_of(caller, MemoryChannel()) == Delivered(receipt='{"number":1}')
    assert timers.keys == []
    assert caller.stop(WAIT) == ()


# --- channels that hang (finding A22)


class Hung:
    """A channel whose calls come back when they are let go; says when each has begun."""

    def __init__(self) -> None:
        self.began: Queue[str] = Queue()
        self.go_on = threading.Event()

    def deliver(self, given: Outbound) -> None:
        self.began.put(given.text)
        assert self.go_on.wait(WAIT)


async def _no_thread(_: Outbound) -> None:
    await asyncio.sleep(0)


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("other", [MemoryChannel(), _no_thread])
def test_calls_of_one_channel_that_hang_hold_up_no_other_channel(caller: ChannelCaller, other: Any) -> None:
    hung = Hung()
    caller.register("hung", hung.deliver)
    for number in range(40):
        caller.start("hung", outbound(f"{number}", key=f"{number}"), lambda _: None)
    began = [hung.began.get(timeout=WAIT) for _ in range(8)]

    assert isinstance(result_of(caller, other), Delivered)
    assert sorted(began) == [f"{number}" for number in range(8)]
    assert caller.lanes.calls() == {"hung": Calls(under_way=8, waiting=32, lost=0)}
    hung.go_on.set()


@pytest.mark.clause("ANN-3")
def test_an_async_channel_has_no_more_calls_under_way_than_seats() -> None:
    caller = ChannelCaller(seats=2)
    began: Queue[str] = Queue()
    results: Queue[DeliveryResult] = Queue()
    go_on = threading.Event()

    async def deliver(given: Outbound) -> None:
        began.put(given.text)
        await asyncio.to_thread(go_on.wait, WAIT)

    caller.register("async", deliver)
    for number in range(5):
        caller.start("async", outbound(f"{number}", key=f"{number}"), results.put)
    first = [began.get(timeout=WAIT) for _ in range(2)]
    calls = caller.lanes.calls()["async"]
    go_on.set()

    assert sorted(first) == ["0", "1"]
    assert calls == Calls(under_way=2, waiting=3, lost=0)
    assert [results.get(timeout=WAIT) for _ in range(5)] == [Delivered()] * 5
    assert [began.get(timeout=WAIT) for _ in range(3)] == ["2", "3", "4"]
    assert caller.stop(WAIT) == ()


@pytest.mark.clause("ANN-3")
def test_the_time_of_a_call_counts_from_its_beginning_and_not_from_the_queue() -> None:
    timers = ManualTimers(ManualClock())
    caller = ChannelCaller(seats=1, clock=timers.clock, timers=timers, timeout_ms=30_000)
    hung = Hung()
    results: Queue[DeliveryResult] = Queue()
    caller.register("slow", hung.deliver)
    for text in ("first", "second"):
        caller.start("slow", outbound(text, key=text), results.put)

    assert hung.began.get(timeout=WAIT) == "first"
    timers.advance(30_000)
    assert hung.began.get(timeout=WAIT) == "second"  # on another thread, in the seat that is free
    timers.advance(29_999)
    given_up = results.get(timeout=WAIT)
    lost = caller.lanes.calls()["slow"]
    hung.go_on.set()

    assert isinstance(given_up, NotDelivered)
    assert given_up.in_doubt
    assert lost == Calls(under_way=1, waiting=0, lost=1)
    assert results.get(timeout=WAIT) == Delivered()
    assert caller.stop(WAIT) == ()


@pytest.mark.clause("ANN-3", "L3")
def test_a_channel_with_too_many_calls_that_never_came_back_is_asked_nothing_until_one_does() -> None:
    """Each of them keeps a thread (finding A18): their number is bounded, and shown."""
    timers = ManualTimers(ManualClock())
    caller = ChannelCaller(clock=timers.clock, timers=timers, timeout_ms=1_000)
    hung = Hung()
    results: Queue[DeliveryResult] = Queue()
    caller.register("hung", hung.deliver)
    for number in range(16):
        caller.start("hung", outbound(key=f"{number}"), lambda _: None)
        hung.began.get(timeout=WAIT)
        timers.advance(1_000)

    caller.start("hung", outbound(key="one more"), results.put)

    assert results.get(timeout=WAIT) == NotDelivered(
        error="busy: 16 calls of channel 'hung' have not come back", retry=True
    )
    assert hung.began.empty()
    assert caller.zombies == 16
    assert result_of(caller, MemoryChannel()) == Delivered(receipt='{"number":1}')
    hung.go_on.set()
    assert caller.stop(WAIT) == ()


@pytest.mark.clause("ANN-3", "L7")
def test_what_waits_for_a_seat_when_the_caller_stops_was_never_called_and_is_told_so() -> None:
    caller = ChannelCaller(seats=1)
    hung = Hung()
    results: Queue[DeliveryResult] = Queue()
    caller.register("hung", hung.deliver)
    for key in ("under way", "waiting"):
        caller.start("hung", outbound(key=key), results.put)
    hung.began.get(timeout=WAIT)

    assert caller.stop(0) == ("hung",)
    assert results.get(timeout=WAIT) == NotDelivered(
        error="the system stopped before the channel was called", retry=True
    )
    hung.go_on.set()
    assert hung.began.empty()


# --- what this process has asked (finding A4)


@pytest.mark.clause("ANN-3")
def test_what_came_of_a_call_is_known_until_it_is_recorded(caller: ChannelCaller) -> None:
    hung = Hung()
    results: Queue[DeliveryResult] = Queue()
    caller.register("telegram", hung.deliver)

    assert caller.deliveries.of("key", 2) is CallState.NEVER
    caller.start("telegram", outbound(), results.put, attempt=2)
    hung.began.get(timeout=WAIT)
    assert caller.deliveries.of("key", 2) is CallState.UNDER_WAY
    assert caller.deliveries.of("key", 1) is CallState.NEVER
    hung.go_on.set()
    assert results.get(timeout=WAIT) == Delivered()
    assert caller.deliveries.of("key", 2) == Delivered()
    caller.deliveries.recorded("key", 2)
    assert caller.deliveries.of("key", 2) is CallState.NEVER
