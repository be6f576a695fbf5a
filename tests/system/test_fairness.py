"""Who is flooded delays itself: other sessions, channels and doors get their turns. By order and by counts, never by time."""

import asyncio
import threading
from queue import Queue
from typing import Any

import pytest

from intersession import Channel, MemoryChannel, SessionSystem, Turn, echo
from intersession_actors.outside.channels.channels import Outbound, ThreadWanted
from intersession_events.facts import DeliveryDone, message_in
from support.fakes import ManualClock
from support.running import QUIET, SEES_ALL, WAIT, merged, pass_time, wait_for

FLOOD = 300
PEERS = {"session": {"dmScope": "per-peer"}, "runs": {"inboxMax": 10_000}}
THREADS = {"session": {"threadBindings": {"enabled": True, "spawnSubagentSessions": True}}}


@pytest.mark.clause("O9", "SEND-10")
async def test_a_flooded_session_lets_the_messages_of_others_in_between(log_url: str) -> None:
    """Before: the message of another person waited until the last one of the flood was taken in."""

    async def agent(turn: Turn) -> str:
        await asyncio.sleep(0)
        return f"re {turn.message}"

    async with SessionSystem(
        log_url, agents={"main": agent}, config=merged(SEES_ALL, QUIET, PEERS)
    ) as system:

        async def say(peer: str, text: str) -> None:
            answer = await system.ainbound(channel="webchat", chat_id=peer, sender=peer, text=text)
            assert answer["status"] == "accepted", answer

        flood = [asyncio.create_task(say("flood", f"{n}")) for n in range(FLOOD)]
        others = [asyncio.create_task(say(peer, "hi")) for peer in ("ann", "bob", "eve")]
        await asyncio.wait_for(asyncio.gather(*others), WAIT)
        await asyncio.wait_for(asyncio.gather(*flood), WAIT)
        recorded = [
            item.stream.rpartition(":")[2]
            for item in system.log.all()
            if (message := message_in(item.event)) is not None and message.role == "user"
        ]

    assert len(recorded) == FLOOD + 3
    for peer in ("ann", "bob", "eve"):
        assert recorded[: recorded.index(peer)].count("flood") < FLOOD // 5


@pytest.mark.clause("SPAWN-12", "GATE-1")
async def test_health_is_answered_while_twenty_channels_think_about_threads(log_url: str) -> None:
    """Before: each of these spawns held one of the sixteen threads of the doors."""
    began: Queue[str] = Queue()
    go_on = threading.Event()

    def threads(wanted: ThreadWanted) -> str:
        began.put(wanted.title)
        assert go_on.wait(WAIT)
        return f"thread of {wanted.title}"

    slow = Channel(deliver=MemoryChannel().deliver, threads=threads)
    names = [f"chat{number}" for number in range(20)]
    async with SessionSystem(
        log_url,
        agents={"main": echo()},
        channels=dict.fromkeys(names, slow),
        config=merged(SEES_ALL, QUIET, THREADS),
    ) as system:
        for name in names:
            answer = await system.ainbound(
                channel=name, chat_id="1", sender="p", text="hi", chat_type="group", wait=WAIT
            )
            assert answer["status"] == "ok", answer
        spawns = [
            asyncio.create_task(
                system.tools(f"agent:main:{name}:group:1").acall(
                    "sessions_spawn", {"task": "x", "label": name, "thread": True}
                )
            )
            for name in names
        ]
        # All twenty are at work at once: none of them holds up another, and none holds a thread of the doors.
        for _ in names:
            await asyncio.to_thread(began.get, timeout=WAIT)
        health = await asyncio.wait_for(system.gateway.acall("health"), WAIT)
        listed = await asyncio.wait_for(system.tools().acall("sessions_list", {"limit": 1}), WAIT)
        assert not any(spawn.done() for spawn in spawns)
        go_on.set()
        answers = await asyncio.wait_for(asyncio.gather(*spawns), WAIT)

    assert health["ok"] is True
    assert listed["count"] == 1
    assert [answer["status"] for answer in answers] == ["accepted"] * 20


@pytest.mark.clause("ANN-3", "L3")
def test_eight_calls_of_a_channel_that_hang_delay_no_other_channel_and_show_in_status(
    log_url: str,
) -> None:
    """Calls that hang are given up, with the limit of time that the configuration sets."""
    began: Queue[str] = Queue()
    go_on = threading.Event()

    def hang(outbound: Outbound) -> None:
        began.put(outbound.to)
        assert go_on.wait(WAIT)

    fast, clock = MemoryChannel(), ManualClock()
    limits: dict[str, Any] = {"deliveries": {"timeoutSeconds": 1, "perChannel": 8}}
    with SessionSystem(
        log_url,
        agents={"main": echo()},
        channels={"hung": hang, "fast": fast},
        config=merged(SEES_ALL, QUIET, limits),
        clock=clock,
    ) as system:
        for number in range(8):
            system.inbound(channel="hung", chat_id=f"{number}", sender="p", text="hi", chat_type="group")
        for _ in range(8):
            began.get(timeout=WAIT)
        system.inbound(channel="fast", chat_id="1", sender="p", text="hi", chat_type="group")
        wait_for(system, DeliveryDone)
        pass_time(system, clock, 1_000)
        for item in system.follow(0, timeout=WAIT):
            if item.topic == "delivery_unknown.1" and not system.service.flows.open_deliveries():
                break
        status = system.status()
        go_on.set()

    assert [shown.to for shown in fast.delivered] == ["1"]
    assert status["channelCalls"] == {"hung": {"underWay": 0, "waiting": 0, "lost": 8}}
    assert status["channelZombies"] == 8


@pytest.mark.clause("SPAWN-2")
async def test_what_reads_settings_alone_is_answered_while_all_threads_are_held(log_url: str) -> None:
    """Before: `agents_list` went to a thread and back, which took longer than the answer."""
    go_on = threading.Event()
    async with SessionSystem(log_url, agents={"main": echo()}) as system:
        held = [system.threads.submit(lambda: go_on.wait(WAIT), lane) for lane in range(16)]
        try:
            answer = await asyncio.wait_for(system.tools().acall("agents_list"), WAIT)
        finally:
            go_on.set()
        await asyncio.gather(*map(asyncio.wrap_future, held))

    assert answer["requester"] == "main"
    closed = await system.tools().acall("agents_list")
    assert (closed["status"], closed["code"]) == ("error", "unavailable")
