"""What is being delivered right now goes on, whoever registers a channel or carries flows on meanwhile (finding A4)."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from intersession import Channel, MemoryChannel, SessionSystem, echo
from intersession_actors.outside.channels.channels import Outbound, ThreadWanted
from intersession_actors.outside.channels.turns import Place
from intersession_actors.owners.delivery.commands import DeliveryReturned
from intersession_actors.owners.streams.commands import Ask, Resume, StreamLoaded
from intersession_events.facts import (
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    DeliveryUnknown,
    SpawnClosed,
    ThreadOpened,
)
from intersession_events.log.recorded import Recorded
from support.running import WAIT, Booth, recorded, wait_for, wait_for_number

THREADS = {"enabled": True, "spawnSubagentSessions": True}


class Held:
    """A channel that stops in its call until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.calls: list[Outbound] = []

    def deliver(self, outbound: Outbound) -> dict[str, int]:
        self.calls.append(outbound)
        self.entered.set()
        assert self.open.wait(WAIT)
        return {"id": len(self.calls)}


def say(system: SessionSystem, text: str = "hi", channel: str = "telegram") -> None:
    answer = system.inbound(channel=channel, chat_id="42", sender="42", text=text, wait=WAIT)
    assert answer["status"] == "ok", answer


def register_others(system: SessionSystem, _: Held) -> None:
    for name in ("discord", "slack", "signal", "imessage", "webchat", "whatsapp"):
        system.register_channel(name, MemoryChannel())


def register_it_again(system: SessionSystem, held: Held) -> None:
    system.register_channel("telegram", held.deliver)


def register_another_in_its_place(system: SessionSystem, _: Held) -> None:
    system.register_channel("telegram", MemoryChannel(idempotent=True))


def resume_all(system: SessionSystem, _: Held) -> None:
    """As after a restart of the outbox, and once a minute for what its session could not say."""
    for _number in range(3):
        for stream in system.service.flows.open_deliveries():
            system.service.supervisor.tell_flow(stream, Resume(stream=stream))


def end_the_outbox(system: SessionSystem, _: Held) -> None:
    """What breaks its handler ends the actor; the supervisor starts another one, which reads the log."""
    no_name: Any = []
    system.service.supervisor.tell_flow("delivery:x", StreamLoaded(stream=no_name, recorded=(), ask=Ask()))


@pytest.mark.clause("ANN-3", "O3")
@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize(
    "meanwhile",
    [register_others, register_it_again, register_another_in_its_place, resume_all, end_the_outbox],
)
def test_a_call_under_way_is_not_taken_for_one_that_a_crash_cut_off(
    booth: Booth, meanwhile: Callable[[SessionSystem, Held], None], idempotent: bool
) -> None:
    held = Held()
    system = booth.start({"main": echo()}, {"telegram": Channel(deliver=held.deliver, idempotent=idempotent)})
    say(system)
    assert held.entered.wait(WAIT)

    meanwhile(system, held)
    # A text that is decided after that is delivered after that: all that was told meanwhile has been heard.
    late = MemoryChannel()
    system.register_channel("late", late)
    say(system, "late", "late")
    assert late.wait_for(1, timeout=WAIT)
    held.open.set()
    wait_for_number(system, DeliveryDone, 2)

    assert len(held.calls) == 1
    assert [event.attempt for event in recorded(system, DeliveryStarted)] == [1, 1]
    assert recorded(system, DeliveryUnknown) == []
    assert recorded(system, DeliveryFailed) == []


@pytest.mark.clause("ANN-3", "O3")
@pytest.mark.parametrize("idempotent", [False, True])
def test_what_a_channel_has_answered_is_recorded_though_the_outbox_was_told_to_carry_on_first(
    booth: Booth, idempotent: bool
) -> None:
    """The channel is back and its outcome on the way: the outbox asks what came of the call before it calls it cut off."""
    answered = threading.Event()

    class Late(MemoryChannel):
        """Lets the outbox be told to carry on from inside the call, as if its outcome had not arrived yet."""

    telegram = Late(idempotent=idempotent)
    system = booth.start({"main": echo()}, {"telegram": telegram})
    tell = system.service.world.mail.tell_flow

    def hold_back(stream: str, command: Any) -> None:
        if isinstance(command, DeliveryReturned) and not answered.is_set():
            answered.set()
            command = Resume(stream=stream)  # and what came of the call is lost on its way
        tell(stream, command)

    system.service.world.mail.tell_flow = hold_back
    say(system)
    wait_for(system, DeliveryDone)

    assert answered.is_set()
    assert telegram.wait_for(1, timeout=WAIT)
    assert len(telegram.delivered) == 1
    assert recorded(system, DeliveryUnknown) == []
    assert len(recorded(system, DeliveryStarted)) == 1


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("idempotent", [False, True])
def test_what_a_crash_cut_off_waits_for_its_channel_which_says_whether_it_may_be_asked_again(
    booth: Booth, idempotent: bool
) -> None:
    """Nobody delivers for it yet when the process starts again: that it is not idempotent was never said."""
    held = Held()
    first = booth.start({"main": echo()}, {"telegram": held.deliver})
    say(first)
    assert held.entered.wait(WAIT)
    first.close(grace=0)

    second = booth.start({"main": echo()})
    say(second, "after it", "late")
    telegram = MemoryChannel(idempotent=idempotent)
    second.register_channel("telegram", telegram)
    wait_for(second, DeliveryDone if idempotent else DeliveryUnknown)
    held.open.set()

    assert len(telegram.delivered) == int(idempotent)
    assert [len(recorded(second, kind)) for kind in (DeliveryDone, DeliveryUnknown)] == [
        int(idempotent),
        int(not idempotent),
    ]


@pytest.mark.clause("SPAWN-12")
def test_a_thread_that_is_being_opened_is_not_asked_for_twice(booth: Booth) -> None:
    entered, go_on = threading.Event(), threading.Event()
    asked: list[ThreadWanted] = []

    def threads(wanted: ThreadWanted) -> str:
        asked.append(wanted)
        entered.set()
        assert go_on.wait(WAIT)
        return "t1"

    channel = Channel(deliver=MemoryChannel().deliver, threads=threads)
    system = booth.start({"main": echo()}, {"telegram": channel}, {"session": {"threadBindings": THREADS}})
    say(system)
    answers: list[Any] = []
    tools = system.tools("agent:main:main")
    spawning = threading.Thread(
        target=lambda: answers.append(tools.call("sessions_spawn", {"task": "x", "thread": True}))
    )
    spawning.start()
    assert entered.wait(WAIT)

    for _ in range(3):
        for stream in system.service.flows.open_spawns():
            system.service.supervisor.tell_flow(stream, Resume(stream=stream))
    go_on.set()
    spawning.join(WAIT)
    wait_for(system, ThreadOpened)

    assert answers[0]["status"] == "accepted"
    assert len(asked) == 1
    assert [event for event in recorded(system, SpawnClosed) if event.code is not None] == []


ONE_SEAT = {"deliveries": {"perChannel": 1}}


@pytest.mark.clause("ANN-3", "O3")
@pytest.mark.parametrize("meanwhile", [None, resume_all, end_the_outbox])
def test_a_text_that_waits_for_its_channels_seat_has_not_started(
    booth: Booth, meanwhile: Callable[[SessionSystem, Held], None] | None
) -> None:
    """What had started was in doubt after a crash and never sent, though its channel had not been called."""
    held = Held()
    system = booth.start({"main": echo()}, {"telegram": held.deliver}, ONE_SEAT)

    for text in ("one", "two", "three"):
        say(system, text)
    assert held.entered.wait(WAIT)
    wait_for_number(system, DeliveryDecided, 3)
    if meanwhile is not None:
        meanwhile(system, held)
        say(system, "four", channel="elsewhere")  # what was told before is done by then
    started = recorded(system, DeliveryStarted)
    held.open.set()
    wait_for_number(system, DeliveryDone, 3)

    assert len(started) == 1
    assert [call.text for call in held.calls] == ["one", "two", "three"]
    assert system.service.world.channels.lanes.calls() == {}


@pytest.mark.clause("ANN-4")
def test_a_text_that_may_not_go_out_any_more_frees_the_seat_that_it_waited_for(booth: Booth) -> None:
    held = Held()
    system = booth.start({"main": echo()}, {"telegram": held.deliver}, ONE_SEAT)
    for text in ("one", "two"):
        say(system, text)
    assert held.entered.wait(WAIT)
    wait_for_number(system, DeliveryDecided, 2)

    system.gateway.call("sessions.patch", {"key": "agent:main:main", "sendPolicy": "deny"})
    held.open.set()
    wait_for(system, DeliveryDenied)
    system.gateway.call("sessions.patch", {"key": "agent:main:main", "sendPolicy": None})
    say(system, "three")
    wait_for_number(system, DeliveryDone, 2)

    assert [call.text for call in held.calls] == ["one", "three"]


@pytest.mark.clause("ANN-5")
def test_a_text_has_its_turn_before_anybody_is_told_that_it_is_decided(booth: Booth) -> None:
    """Of two that were decided in one commit the later one could go out first: the outbox was told before their order was known."""
    telegram, entered = MemoryChannel(), list[bool]()
    system = booth.start({"main": echo()}, {"telegram": telegram})
    turns = system.service.world.channels.turns

    def decided(batch: Sequence[Recorded]) -> None:
        entered.extend(
            not turns.is_idle(Place.of(one.event.route))
            for one in batch
            if isinstance(one.event, DeliveryDecided)
        )

    system.log.on_committed(decided, DeliveryDecided, first=True)
    say(system)
    wait_for(system, DeliveryDone)

    assert entered == [True]
