"""Channels that other processes have: their texts go out there, once, in order, whichever of the two dies (WORK-15 to WORK-17)."""

import base64
import hashlib
import threading

import pytest

from intersession import (
    Channel,
    DeliveryLater,
    DeliveryRefused,
    File,
    MemoryChannel,
    Outbound,
    Reply,
    SessionSystem,
    ToolRefused,
    Turn,
    echo,
)
from intersession_actors.outside.channels.caller import CUT_OFF
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_events.facts import (
    AnswerShown,
    DeliveryDecided,
    DeliveryDone,
    DeliveryFailed,
    DeliveryPartDone,
    DeliveryStarted,
    DeliveryUnknown,
    ThreadOpened,
)
from intersession_events.stores.opened import open_log
from support.channel_worker import ChannelWorker, desk_of
from support.edited_chat import Chat, talking
from support.fakes import ManualClock
from support.running import (
    QUIET,
    WAIT,
    Booth,
    Gate,
    pass_time,
    pass_time_until,
    recorded,
    wait_for,
    wait_for_number,
)
from support.soaking import until
from support.stub_worker import StubWorker, call_of

THREADS = {"session": {"threadBindings": {"enabled": True, "spawnSubagentSessions": True}}}
SHORT = {"deliveries": {"timeoutSeconds": 5}}


def holding(system: SessionSystem, telegram: MemoryChannel, text: str = "hi") -> ChannelWorker:
    """Return a worker that has sent a text, and has not told of it."""
    worker = ChannelWorker(system, {"telegram": telegram})
    worker.held = True
    say(system, text)
    worker.wait_for_answers(1)
    return worker


def say(system: SessionSystem, text: str = "hi", chat: str = "42") -> None:
    answer = system.inbound(channel="telegram", chat_id=chat, sender=chat, text=text, wait=WAIT)
    assert answer["status"] == "ok", answer


@pytest.mark.clause("WORK-15")
def test_a_text_goes_to_the_channel_that_only_a_worker_has(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": echo()})
    with ChannelWorker(system, {"telegram": telegram}) as worker:
        say(system)
        done = wait_for(system, DeliveryDone)

    (shown,) = telegram.delivered
    assert (shown.channel, shown.to, shown.text, shown.number) == ("telegram", "42", "hi", 1)
    assert (done.attempt, done.receipt) == (1, '{"number":1}')
    (taken,) = worker.taken
    assert (taken.kind, taken.name, taken.id, taken.stream) == (
        "channel", "telegram", done.delivery_id, f"delivery:{done.delivery_id}"
    )  # fmt: skip


@pytest.mark.clause("WORK-15")
def test_a_worker_fits_a_text_to_its_channel_and_each_part_is_on_record(booth: Booth) -> None:
    shouts = Channel(deliver=(calls := MemoryChannel()).deliver, escape=str.upper, max_chars=8)
    system = booth.start({"main": echo()})
    with ChannelWorker(system, {"telegram": shouts}):
        say(system, "one two three four")
        wait_for(system, DeliveryDone)

    assert [shown.text for shown in calls.delivered] == ["ONE TWO", "THREE", "FOUR"]
    assert len({shown.key for shown in calls.delivered}) == 3
    assert [part.receipt for part in recorded(system, DeliveryPartDone)] == ['{"number":1}', '{"number":2}']
    assert len(recorded(system, DeliveryStarted)) == 1
    until(lambda: system.log.work.standing() == [])


@pytest.mark.clause("WORK-15")
def test_what_a_channel_at_a_worker_refuses_is_given_up_and_says_why(booth: Booth) -> None:
    def refuse(_: Outbound) -> None:
        raise DeliveryRefused("blocked by the person")

    system = booth.start({"main": echo()})
    with ChannelWorker(system, {"telegram": refuse}):
        say(system)
        failed = wait_for(system, DeliveryFailed)

    assert (failed.error, failed.retry_at_ms) == ("DeliveryRefused: blocked by the person", None)


@pytest.mark.ci
@pytest.mark.clause("WORK-15")
def test_a_channel_at_a_worker_that_fails_is_called_again_with_the_same_key(booth: Booth) -> None:
    calls: list[Outbound] = []

    def flaky(outbound: Outbound) -> str:
        calls.append(outbound)
        if len(calls) == 1:
            raise ConnectionError("away")
        return "m1"

    system = booth.start({"main": echo()})
    with ChannelWorker(system, {"telegram": flaky}):
        say(system)
        done = wait_for(system, DeliveryDone)

    failed = recorded(system, DeliveryFailed)
    assert [(one.error, one.attempt) for one in failed] == [("ConnectionError: away", 1)]
    assert "flaky" in (failed[0].traceback or "")
    assert (done.attempt, done.receipt, calls[0].key == calls[1].key) == (2, '"m1"', True)


@pytest.mark.clause("WORK-15", "ANN-8")
def test_a_service_that_wants_to_be_left_alone_is_called_by_no_worker(booth: Booth) -> None:
    clock = ManualClock()
    calls: list[str] = []

    def busy(outbound: Outbound) -> None:
        calls.append(outbound.text)
        if len(calls) == 1:
            raise DeliveryLater(60, "flood", whole_channel=True)

    system = booth.start({"main": echo()}, clock=clock)
    with ChannelWorker(system, {"telegram": busy}):
        say(system, "first")
        wait_for(system, DeliveryFailed)
        say(system, "second", chat="43")
        assert system.status()["channelCalls"]["telegram"]["paused"] is True
        assert calls == ["first"]
        pass_time(system, clock, 60_000)
        pass_time_until(system, clock, 100, DeliveryDone, 2)  # the worker is heard of again meanwhile

    assert sorted(calls[1:]) == ["first", "second"]


@pytest.mark.clause("WORK-15", "ANN-5")
def test_texts_to_one_place_go_out_in_order_by_however_many_workers(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": echo()})
    with (
        ChannelWorker(system, {"telegram": telegram}),
        ChannelWorker(system, {"telegram": telegram}, "w2"),
    ):
        for number in range(10):
            say(system, f"{number}")
        wait_for_number(system, DeliveryDone, 10)

    assert [shown.text for shown in telegram.delivered] == [f"{number}" for number in range(10)]
    assert [shown.number for shown in telegram.delivered] == [*range(1, 11)]


@pytest.mark.clause("WORK-15")
def test_texts_for_a_channel_that_no_worker_has_wait_and_are_seen(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": echo()})
    say(system, "early")
    assert system.status()["deliveries"]["waiting"] == {"telegram": 1}
    with ChannelWorker(system, {"telegram": telegram}) as worker:
        wait_for(system, DeliveryDone)
        assert "telegram" in system.status()["channels"]
        worker.announce(is_draining=True)
        until(lambda: "telegram" not in system.status()["channels"])
        say(system, "late")
        assert system.status()["deliveries"]["waiting"] == {"telegram": 1}
        worker.announce()
        wait_for_number(system, DeliveryDone, 2)

    assert [shown.text for shown in telegram.delivered] == ["early", "late"]
    assert {started.attempt for started in recorded(system, DeliveryStarted)} == {1}


@pytest.mark.clause("WORK-15")
def test_a_channel_that_is_left_to_workers_is_never_called_by_its_host(booth: Booth) -> None:
    own, theirs = MemoryChannel(), MemoryChannel()
    system = booth.start({"main": echo()}, {"telegram": own}, {"channels": {"telegram": {"worker": True}}})
    say(system, "early")
    assert own.delivered == ()
    with ChannelWorker(system, {"telegram": theirs}):
        wait_for(system, DeliveryDone)

    assert ([shown.text for shown in theirs.delivered], own.delivered) == (["early"], ())


@pytest.mark.clause("WORK-15")
def test_a_host_calls_its_own_channel_though_a_worker_has_one_of_that_name(booth: Booth) -> None:
    own, theirs = MemoryChannel(), MemoryChannel()
    system = booth.start({"main": echo()}, {"telegram": own})
    with ChannelWorker(system, {"telegram": theirs}):
        say(system)
        wait_for(system, DeliveryDone)

    assert (len(own.delivered), len(theirs.delivered)) == (1, 0)


@pytest.mark.clause("WORK-17")
@pytest.mark.parametrize("idempotent", [False, True])
def test_a_text_of_a_worker_that_died_is_in_doubt_or_goes_out_again_by_its_key(
    booth: Booth, *, idempotent: bool
) -> None:
    telegram = MemoryChannel(idempotent=idempotent)
    system = booth.start({"main": echo()})
    dead = holding(system, telegram)
    with ChannelWorker(system, {"telegram": telegram}, "w2") as other:
        dead.stop(leaves=True)
        over = wait_for(system, DeliveryDone if idempotent else DeliveryUnknown)
        late = dead.answer()

    assert late == [False]
    assert over.attempt == (2 if idempotent else 1)
    assert len(other.taken) == int(idempotent)
    assert len({shown.key for shown in telegram.delivered}) == 1
    assert len(telegram.shown) == 1
    if isinstance(over, DeliveryUnknown):
        assert over.error == (
            "the worker that called channel 'telegram' has not said for too long that it lives"
        )
    until(lambda: not system.log.work.standing())
    assert len(recorded(system, DeliveryDone)) == int(idempotent)


@pytest.mark.clause("WORK-17")
def test_a_text_that_no_worker_takes_in_time_has_not_gone_out_and_is_tried_again(booth: Booth) -> None:
    clock = ManualClock()
    telegram = MemoryChannel()
    system = booth.start({"main": echo()}, {}, SHORT, clock=clock)
    first = ChannelWorker(system, {"telegram": telegram})
    first.stop()  # it lives, and takes nothing
    say(system)
    failed = pass_time_until(system, clock, 5_000, DeliveryFailed)
    assert failed.error == "timeout: no worker has taken it for channel 'telegram' in 5 s"
    assert failed.retry_at_ms is not None

    with ChannelWorker(system, {"telegram": telegram}, "w2"):
        done = pass_time_until(system, clock, 1_000, DeliveryDone)

    assert (done.attempt, len(telegram.delivered)) == (2, 1)


@pytest.mark.clause("WORK-17")
@pytest.mark.parametrize("idempotent", [False, True])
def test_a_text_of_a_worker_that_says_nothing_is_given_up(booth: Booth, *, idempotent: bool) -> None:
    clock = ManualClock()
    telegram = MemoryChannel(idempotent=idempotent)
    system = booth.start({"main": echo()}, {}, SHORT, clock=clock)
    with ChannelWorker(system, {"telegram": telegram}) as silent:
        silent.held = True
        say(system)
        silent.wait_for_answers(1)
        kind: type[DeliveryFailed | DeliveryUnknown] = DeliveryFailed if idempotent else DeliveryUnknown
        over = pass_time_until(system, clock, 5_000, kind)
        error = "timeout: the worker that called channel 'telegram' has said nothing in 5 s"
        assert (over.attempt, over.error) == (1, error)
        assert silent.answer() == [False]


@pytest.mark.clause("WORK-17")
@pytest.mark.parametrize(
    "answer",
    [
        b"[[[",
        b'{"delivered":{"sent":99}}',
        b"9" * 1_000_000,
    ],
)
def test_an_answer_that_no_channel_could_give_leaves_the_text_in_doubt(booth: Booth, answer: bytes) -> None:
    system = booth.start({"main": echo()})
    with ChannelWorker(system, {"telegram": MemoryChannel()}) as worker:
        worker.held = True
        say(system)
        worker.wait_for_answers(1)
        worker.answers = [(call, answer) for call, _ in worker.answers]
        assert worker.answer() == [True]
        unknown = wait_for(system, DeliveryUnknown)

    assert unknown.error is not None
    assert unknown.error.startswith("the worker's answer is invalid: ")


@pytest.mark.clause("WORK-15", "FILE-6")
def test_the_files_of_a_text_are_read_by_the_worker(booth: Booth) -> None:
    got: list[tuple[str, bytes]] = []

    def deliver(outbound: Outbound) -> None:
        got.extend((file.name, file.read()) for file in outbound.files)

    def agent(_: Turn) -> Reply:
        return Reply("here", files=(File(data=b"what is in it", name="a.txt"),))

    system = booth.start({"main": agent})
    with ChannelWorker(system, {"telegram": deliver}):
        say(system)
        wait_for(system, DeliveryDone)

    assert got == [("a.txt", b"what is in it")]


def killed(system: SessionSystem) -> None:
    """End a writer as a crash does: nothing that it had begun is told to anybody."""
    system.close(grace=0)


@pytest.mark.ci
@pytest.mark.clause("WORK-16")
@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("answered", ["before", "between", "after"])
def test_a_text_that_a_worker_sends_while_the_writer_dies_goes_out_once(
    booth: Booth, answered: str, *, idempotent: bool
) -> None:
    telegram = MemoryChannel(idempotent=idempotent)
    first = booth.start({"main": echo()})
    worker = holding(first, telegram)
    worker.stop()
    if answered == "before":
        # Its writer knows, and dies before that is on record.
        desk_of(first).leave()
        assert worker.answer() == [True]
    killed(first)
    if answered == "between":
        with open_log(booth.url) as log:
            assert log.work.to_take.answer(worker.name, *worker.answers[0])
    second = booth.start({"main": echo()})
    worker.serve(second)
    if answered == "after":
        assert worker.answer() == [True]
    done = wait_for(second, DeliveryDone)

    assert (done.attempt, done.receipt) == (1, '{"number":1}')
    assert len(telegram.delivered) == 1
    assert len(recorded(second, DeliveryStarted)) == 1
    until(lambda: not second.log.work.standing())


@pytest.mark.clause("WORK-16")
def test_a_text_that_waits_in_the_queue_while_the_writer_dies_is_taken_once(booth: Booth) -> None:
    telegram = MemoryChannel()
    first = booth.start({"main": echo()})
    worker = ChannelWorker(first, {"telegram": telegram})
    worker.stop()
    say(first)
    until(first.log.work.standing)
    killed(first)
    second = booth.start({"main": echo()})
    with ChannelWorker(second, {"telegram": telegram}, "w2"):
        done = wait_for(second, DeliveryDone)

    assert (done.attempt, len(telegram.delivered)) == (1, 1)


@pytest.mark.ci
@pytest.mark.clause("WORK-16", "WORK-17")
@pytest.mark.parametrize("idempotent", [False, True])
def test_a_text_whose_worker_and_writer_both_died_is_as_after_a_crash(
    booth: Booth, *, idempotent: bool
) -> None:
    telegram = MemoryChannel(idempotent=idempotent)
    first = booth.start({"main": echo()})
    worker = holding(first, telegram)
    worker.stop()
    killed(first)
    with open_log(booth.url) as log:
        log.work.to_take.leave(worker.name)
    second = booth.start({"main": echo()})
    until(lambda: not second.log.work.standing())
    assert recorded(second, DeliveryUnknown) == []
    with ChannelWorker(second, {"telegram": telegram}, "w2"):
        over = wait_for(second, DeliveryDone if idempotent else DeliveryUnknown)

    assert over.attempt == (2 if idempotent else 1)
    assert len(telegram.shown) == 1


@pytest.mark.clause("WORK-16")
def test_a_part_that_a_worker_sends_while_the_writer_dies_is_not_sent_again(booth: Booth) -> None:
    telegram = MemoryChannel(max_chars=8)
    first = booth.start({"main": echo()})
    worker = holding(first, telegram, "one two three four")
    worker.answer()
    worker.wait_for_answers(2)
    worker.stop()
    killed(first)
    second = booth.start({"main": echo()})
    with ChannelWorker(second, {"telegram": telegram}, "w2"):
        worker.serve(second)
        del worker.answers[0]
        assert worker.answer() == [True]
        wait_for(second, DeliveryDone)

    assert [shown.text for shown in telegram.delivered] == ["one two", "three", "four"]
    assert [part.sent for part in recorded(second, DeliveryPartDone)] == [8, 14]


@pytest.mark.clause("WORK-16")
def test_a_stop_waits_for_no_worker(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": echo()})
    worker = holding(system, telegram)
    worker.stop()
    system.close(grace=3600)
    with open_log(booth.url) as log:
        (standing,) = log.work.standing()

    assert not standing.is_over


@pytest.mark.clause("WORK-15", "STREAM-5")
def test_an_answer_grows_in_the_chat_of_a_worker(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    system = booth.start({"main": talking(gate, "Good ", "morning.")}, {}, QUIET)
    with ChannelWorker(system, {"telegram": chat.channel}):
        system.inbound(channel="telegram", chat_id="42", sender="ann", text="Hello")
        chat.until("Good ")
        shown = wait_for(system, AnswerShown, lambda shown: shown.receipt is not None)
        gate.open()
        done = wait_for(system, DeliveryDone)
        until(lambda: not system.log.work.standing())

    chat.until("Good morning.")
    assert (shown.receipt, done.receipt) == ('{"id":1}', '{"id":1}')
    assert (chat.calls[0], chat.calls[-1]) == (
        ("deliver", "Good ", True),
        ("edit", "Good morning.", False),
    )


@pytest.mark.clause("WORK-15", "WORK-16", "STREAM-5")
def test_a_begun_answer_is_nobodys_after_the_writer_died_and_its_text_says_so(
    booth: Booth, gate: Gate
) -> None:
    chat = Chat()
    first = booth.start({"main": talking(gate, "Good ", "morning.")}, {}, QUIET)
    worker = ChannelWorker(first, {"telegram": chat.channel})
    worker.held = True
    first.inbound(channel="telegram", chat_id="42", sender="ann", text="Hello")
    worker.wait_for_answers(1)
    worker.stop()
    killed(first)
    gate.open()
    second = booth.start({"main": talking(gate, "Good ", "morning.")}, {}, QUIET)
    worker.serve(second)
    until(lambda: worker.answers[0][0] not in [one.call for one in second.log.work.standing()])
    assert worker.answer() == [False]
    with ChannelWorker(second, {"telegram": chat.channel}, "w2"):
        wait_for(second, DeliveryDone)

    assert chat.messages == {1: "Good ", 2: f"{CUT_OFF}\n\nGood morning."}


@pytest.mark.clause("WORK-15", "SPAWN-12")
@pytest.mark.parametrize("dies", [False, True])
def test_a_thread_is_opened_by_the_worker_that_has_the_channel(booth: Booth, *, dies: bool) -> None:
    asked: list[ThreadWanted] = []

    def threads(wanted: ThreadWanted) -> str:
        asked.append(wanted)
        return "t1"

    telegram = {"telegram": Channel(deliver=MemoryChannel().deliver, threads=threads)}
    system = booth.start({"main": echo()}, {}, THREADS)
    worker = ChannelWorker(system, telegram)
    say(system)
    wait_for(system, DeliveryDone)
    worker.held = dies
    spawning = threading.Thread(
        target=system.tools("agent:main:main").call,
        args=("sessions_spawn", {"task": "x", "thread": True}),
        daemon=True,
    )
    spawning.start()
    if dies:
        until(lambda: asked)
        worker.wait_for_answers(1)
        worker.stop()
        killed(system)
        system = booth.start({"main": echo()}, {}, THREADS)
        worker.serve(system)
        assert worker.answer() == [True]
    opened = wait_for(system, ThreadOpened)

    assert opened.route.thread == "t1"
    assert len(asked) == 1


@pytest.mark.clause("WORK-15")
def test_a_channel_reads_the_files_of_its_text_while_it_sends_it_and_nothing_else(booth: Booth) -> None:
    def agent(_: Turn) -> Reply:
        return Reply("here", files=(File(data=b"what is in it", name="a.txt"),))

    first = booth.start({"main": agent})
    first.inbound(channel="telegram", chat_id="42", sender="42", text="look", files=[File(data=b"secret")])
    worker = StubWorker(first, channels={"telegram": "{}"})
    worker.announce()
    offer = worker.one()
    (named,) = recorded(first, DeliveryDecided)[0].files
    for dies in (False, True):
        if dies:
            killed(first)
            worker.system = booth.start({"main": agent})
        content = worker.act(offer, "file", sha256=named.sha256)["content"]
        assert base64.b64decode(content) == b"what is in it"
        for act, code in (
            ({"type": "file", "sha256": hashlib.sha256(b"secret").hexdigest()}, "invalid_request"),
            (
                {"type": "call", "name": "sessions_list", "args": {}, "number": 1, "place": 1},
                "invalid_request",
            ),
        ):
            with pytest.raises(ToolRefused) as refused:
                worker.ask("act", **call_of(offer), secret=offer["secret"], act=act)
            assert refused.value.code == code
        with pytest.raises(ToolRefused, match="attempt is over"):
            worker.ask("act", **call_of(offer), secret="x", act={"type": "file", "sha256": named.sha256})
    assert worker.ask("answer", **call_of(offer), worker="one", content='{"delivered":{}}')["counts"]
    wait_for(worker.system, DeliveryDone)
    with pytest.raises(ToolRefused, match="attempt is over"):
        worker.act(offer, "file", sha256=named.sha256)
