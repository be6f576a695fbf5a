"""Inside a host that lives on asyncio: its agents and channels run on its own loop, and that loop is never held up."""

import asyncio
from typing import Any

import pytest

from intersession import Outbound, Reply, SessionSystem, Turn
from intersession_events.facts import RunAborted, RunCompleted, RunFailed
from support.running import QUIET, SEES_ALL, WAIT, merged, recorded

MAIN, OPS = "agent:main:main", "agent:ops:main"


def system_on(
    log_url: str, agents: dict[str, Any], channels: dict[str, Any] | None = None, *configs: dict[str, Any]
) -> SessionSystem:
    return SessionSystem(
        log_url, agents=agents, channels=channels or {}, config=merged(SEES_ALL, QUIET, *configs)
    )


@pytest.mark.clause("INB-2")
async def test_agents_and_channels_use_what_is_bound_to_the_hosts_loop(log_url: str) -> None:
    host = asyncio.get_running_loop()
    lock = asyncio.Lock()
    outbox: asyncio.Queue[Outbound] = asyncio.Queue()
    loops: set[asyncio.AbstractEventLoop] = set()

    async def agent(turn: Turn) -> str:
        loops.add(asyncio.get_running_loop())
        async with lock:
            await asyncio.sleep(0)
            return f"you said {turn.message}"

    async def telegram(outbound: Outbound) -> dict[str, int]:
        loops.add(asyncio.get_running_loop())
        await outbox.put(outbound)
        return {"id": outbox.qsize()}

    async with system_on(log_url, {"main": agent}, {"telegram": telegram}) as system:
        answers = await asyncio.gather(
            *(
                system.ainbound(
                    channel="telegram", chat_id=str(n), text=f"{n}", sender="p", chat_type="group", wait=WAIT
                )
                for n in range(8)
            )
        )
        out = [await asyncio.wait_for(outbox.get(), WAIT) for _ in range(8)]

    assert [answer["reply"] for answer in answers] == [f"you said {n}" for n in range(8)]
    assert sorted(item.to for item in out) == [str(n) for n in range(8)]
    assert loops == {host}


@pytest.mark.clause("SEND-5", "SEND-10", "L4")
async def test_the_loop_goes_on_beating_while_twenty_sends_wait(log_url: str) -> None:
    """The answers come only after fifty beats of the heart: were the loop held up, nothing would ever come."""
    waiting = 0
    everybody_waits, beaten = asyncio.Event(), asyncio.Event()

    async def heart() -> None:
        await everybody_waits.wait()
        for _ in range(50):
            await asyncio.sleep(0.001)
        beaten.set()

    async def ops(turn: Turn) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 20:
            everybody_waits.set()
        await beaten.wait()
        return f"re {turn.message}"

    async def main(turn: Turn) -> str:
        room = f"agent:ops:telegram:group:{turn.message}"
        answer = await turn.tools.acall("sessions_send", {"sessionKey": room, "message": turn.message})
        return str(answer.get("reply", answer))

    async with system_on(log_url, {"main": main, "ops": ops}, None, {"runs": {"poolSize": 1}}) as system:
        for n in range(20):
            await system.ainbound(
                channel="telegram",
                chat_id=str(n),
                text="x",
                sender="p",
                chat_type="group",
                agent_id="ops",
                deliver=False,
            )
        beating = asyncio.create_task(heart())
        answers = await asyncio.wait_for(
            asyncio.gather(
                *(
                    system.ainbound(
                        channel="telegram",
                        chat_id=str(n),
                        text=str(n),
                        sender="p",
                        chat_type="group",
                        wait=WAIT,
                    )
                    for n in range(20)
                )
            ),
            WAIT,
        )
        await beating

    assert [answer["reply"] for answer in answers] == [f"re {n}" for n in range(20)]


@pytest.mark.clause("SEND-6", "GATE-3")
async def test_waits_and_calls_from_coroutines_answer_as_their_blocking_forms(log_url: str) -> None:
    go_on = asyncio.Event()

    async def ops(turn: Turn) -> str:
        await go_on.wait()
        return f"re {turn.message}"

    async with system_on(log_url, {"main": ops, "ops": ops}) as system:
        tools = system.tools(MAIN)
        late = await tools.acall("sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0.05})
        early = await system.gateway.acall("agent.wait", {"runId": late["runId"], "timeoutMs": 1})
        bad = await tools.acall("sessions_send", {"sessionKey": OPS})
        unknown = await system.gateway.acall("agent.wait", {"runId": "nothing"})
        refused = await system.ainbound(channel="telegram", chat_id="1", text=" ", sender="p", wait=1)
        noted = await system.ainbound(
            channel="telegram", chat_id="1", text="note", sender="p", wait=1, chat_type="group", deliver=False
        )
        go_on.set()
        waited = await system.gateway.acall("agent.wait", {"runId": late["runId"]})
        listed = await tools.acall("sessions_list")

        assert (late["status"], late["delivered"]) == ("timeout", True)
        assert early["status"] == "timeout"
        assert bad["code"] == "invalid_request"
        assert unknown["code"] == "unknown_run"
        assert noted["status"] == "accepted"
        assert refused["code"] == "invalid_request"
        assert waited["reply"] == "re x"
        assert {row["key"] for row in listed["sessions"]} == {
            "main",
            OPS,
            "agent:main:telegram:group:1",
        }
        blocking = await asyncio.to_thread(system.gateway.call, "agent.wait", {"runId": late["runId"]})
        assert blocking == waited


@pytest.mark.clause("GATE-5", "L3")
async def test_an_async_agent_is_cancelled_where_it_waits(log_url: str) -> None:
    reached, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn) -> str:
        if turn.message == "again":
            return "free"
        try:
            reached.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "never"

    async with system_on(log_url, {"main": slow}) as system:
        speak: dict[str, Any] = {"channel": "telegram", "chat_id": "1", "sender": "p"}
        accepted = await system.ainbound(text="first", **speak)
        await asyncio.wait_for(reached.wait(), WAIT)
        assert await asyncio.to_thread(system.abort, accepted["runId"])
        await asyncio.wait_for(cancelled.wait(), WAIT)
        again = await system.ainbound(text="again", wait=WAIT, **speak)

        assert len(recorded(system, RunAborted)) == 1
        assert again["reply"] == "free"
        assert system.status()["zombies"] == 0


@pytest.mark.clause("LOOP-7", "L3")
async def test_what_an_async_agent_raises_stays_its_own(log_url: str) -> None:
    async def rude(turn: Turn) -> str:
        match turn.message:
            case "exit":
                raise SystemExit(1)
            case "cancel":
                raise asyncio.CancelledError
            case "hang":
                await asyncio.Event().wait()
            case _:
                pass
        return "fine"

    async with system_on(log_url, {"main": rude}) as system:
        answers: list[Any] = []
        for text in ("exit", "cancel", "hang", "hello"):
            told = {"sessionKey": MAIN, "message": text, "idempotencyKey": text}
            limit = {"timeoutMs": 200} if text == "hang" else {}
            run = await system.gateway.acall("chat.send", told | limit)
            answers.append(await system.gateway.acall("agent.wait", {"runId": run["runId"]}))

        assert [answer["status"] for answer in answers] == ["error", "error", "timeout", "ok"]
        assert [event.code for event in recorded(system, RunFailed)] == ["backend", "backend", "timeout"]


async def test_leaving_the_block_ends_in_order_and_the_next_one_carries_on(log_url: str) -> None:
    reached = asyncio.Event()

    async def hanging(_turn: Turn) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "never"

    async with system_on(log_url, {"main": hanging}) as first:
        accepted = await first.ainbound(channel="telegram", chat_id="1", text="x", sender="p")
        await asyncio.wait_for(reached.wait(), WAIT)

    async def quick(turn: Turn) -> Reply:
        return Reply(f"attempt {turn.attempt}")

    async with system_on(log_url, {"main": quick}) as second:
        waited = await second.gateway.acall("agent.wait", {"runId": accepted["runId"]})

        assert waited["reply"] == "attempt 2"
        assert len(recorded(second, RunCompleted)) == 1
