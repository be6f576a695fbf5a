"""What can't be recorded is refused where it comes from, and a flow that can't go on is set aside alone (findings A2)."""

from typing import Any

import pytest

from intersession import DeliveryRefused, MemoryChannel, Outbound, Reply, SessionSystem, Turn
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_events.facts import (
    DeliveryFailed,
    ExchangeAccepted,
    ExchangeClosed,
    RunCompleted,
    RunFailed,
    SpawnClosed,
)
from intersession_events.log.recorded import parts_in
from support.any_log import changed_behind
from support.running import WAIT, Booth, Gate, all_said, closed_spawn, recorded, wait_for

LONE = "caf\udce9"
SPELLED = "caf\\udce9"
"""A text with a lone surrogate, as a file name of another encoding has it: UTF-8 can't say it."""
GROUP = "agent:main:discord:group:42"
THREADS = {
    "session": {"threadBindings": {"enabled": True}},
    "channels": {"discord": {"threadBindings": {"spawnSubagentSessions": True}}},
}


def talker(turn: Turn) -> str | Reply:
    return f"heard {turn.message}" if turn.step == "message" else Reply.skip()


def say(system: SessionSystem, text: str, chat: str = "42", **given: Any) -> Any:
    return system.inbound(
        channel="discord", chat_id=chat, chat_type="group", text=text, sender="p", wait=WAIT, **given
    )


class OddThreads(MemoryChannel):
    """A channel whose first thread has an id that can't be encoded."""

    def __init__(self) -> None:
        super().__init__(idempotent=True)
        self.opened = 0
        self.threads = self._open

    def _open(self, wanted: ThreadWanted) -> str:
        del wanted
        self.opened += 1
        return f"t{LONE}" if self.opened == 1 else f"t{self.opened}"


@pytest.mark.clause("SPAWN-12", "O9")
def test_a_thread_whose_id_cant_be_recorded_is_refused_and_harms_no_other_spawn(booth: Booth) -> None:
    channel = OddThreads()
    system = booth.start({"main": talker}, {"discord": channel}, THREADS)
    say(system, "hi", deliver=False)
    tools = system.tools(GROUP)

    odd = tools.call("sessions_spawn", {"task": "one", "thread": True})
    good = tools.call("sessions_spawn", {"task": "two", "thread": True})

    assert (odd["status"], odd["code"]) == ("error", "no_threads")
    assert good["status"] == "accepted"
    assert closed_spawn(system, good["runId"])
    assert system.status()["degraded"] == {}


@pytest.mark.clause("O9", "L3")
@pytest.mark.parametrize(
    "record",
    [
        lambda turn: turn.record_result(turn.record_call("ls", {}), "ls", f"{LONE}.txt"),
        lambda turn: turn.record_call(f"read{LONE}", {}),
        lambda turn: turn.record_call("read", {"path": LONE}),
        lambda turn: turn.record_call("read", {LONE: 1}),
    ],
    ids=["a result", "a tool's name", "an argument", "an argument's name"],
)
def test_what_an_agent_cant_put_on_record_breaks_its_run_at_most(booth: Booth, record: Any) -> None:
    def agent(turn: Turn) -> str:
        if turn.message == "try":
            record(turn)
        return "done"

    system = booth.start({"main": agent})
    tried = say(system, "try")
    after = say(system, "again")

    assert tried["status"] in {"ok", "error"}
    assert (after["status"], after["reply"]) == ("ok", "done")
    assert system.status()["degraded"] == {}


@pytest.mark.clause("L3")
def test_a_reply_that_cant_be_recorded_as_it_is_is_spelled_out(booth: Booth) -> None:
    def agent(turn: Turn) -> str:
        return LONE if turn.message == "try" else "done"

    system = booth.start({"main": agent})
    tried = say(system, "try")
    after = say(system, "again")

    assert (tried["status"], tried["reply"]) == ("ok", SPELLED)
    assert after["reply"] == "done"
    assert recorded(system, RunFailed) == []


@pytest.mark.clause("L3")
def test_an_error_that_cant_be_recorded_is_spelled_out(booth: Booth) -> None:
    def agent(turn: Turn) -> str:
        if turn.message == "try":
            raise OSError(f"no such file: {LONE}")
        return "done"

    system = booth.start({"main": agent})
    tried = say(system, "try")
    after = say(system, "again")

    assert tried["status"] == "error"
    assert "caf" in recorded(system, RunFailed)[0].error
    assert after["reply"] == "done"


@pytest.mark.clause("GATE-5")
def test_an_abort_by_a_name_that_cant_be_recorded_is_refused(booth: Booth) -> None:
    gate = Gate()
    agent = gate.saying("done")
    system = booth.start({"main": agent})
    run_id = system.inbound(channel="x", chat_id="1", sender="1", text="hi")["runId"]
    gate.reached()
    with pytest.raises(Exception, match="can't be recorded"):
        system.abort(run_id, by=LONE)
    gate.open()

    assert wait_for(system, RunCompleted).reply == "done"
    assert system.status()["degraded"] == {}


@pytest.mark.clause("ANN-3")
def test_a_channels_error_that_cant_be_recorded_is_spelled_out(booth: Booth) -> None:
    def deliver(outbound: Outbound) -> None:
        raise DeliveryRefused(f"no chat {LONE} of {outbound.channel}")

    system = booth.start({"main": talker}, {"discord": deliver})
    say(system, "hi")
    failed = wait_for(system, DeliveryFailed)

    assert "caf" in failed.error
    assert failed.retry_at_ms is None
    assert system.status()["degraded"] == {}


@pytest.mark.clause("D7", "O9")
def test_a_flow_whose_stream_is_damaged_is_set_aside_alone(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": talker, "ops": gate.before(talker, "message")})
    damaged = system.tools("agent:main:main").call(
        "sessions_send", {"agentId": "ops", "message": "a", "timeoutSeconds": 0}
    )
    gate.reached()
    stream = f"exchange:{recorded(system, ExchangeAccepted)[0].exchange_id}"
    system.close(grace=0)
    changed_behind(booth.url, "UPDATE stored_events SET state=? WHERE originator_id=?", b"\0", stream)
    gate.open()

    again = booth.start({"main": talker, "ops": talker})
    before = again.log.head()
    sent = again.tools("agent:main:main").call(
        "sessions_send", {"agentId": "ops", "message": "b", "timeoutSeconds": 10}
    )
    followed = (item.event for item in parts_in(again.follow(before, timeout=WAIT)))
    closed = next(event for event in followed if isinstance(event, ExchangeClosed))

    assert damaged["status"] == "accepted"
    assert sent["status"] == "ok"
    assert closed.reason == "silent"
    assert list(again.status()["degraded"]) == [stream]
    assert "CorruptEvent" in again.status()["degraded"][stream]


@pytest.mark.clause("SPAWN-9")
def test_a_spawn_and_a_message_of_other_agents_go_on_beside_all_that(
    booth: Booth,
) -> None:
    system = booth.start({"main": talker}, {"discord": MemoryChannel()})
    say(system, "hi")
    spawned = system.tools(GROUP).call("sessions_spawn", {"task": LONE})
    plain = system.tools(GROUP).call("sessions_spawn", {"task": "count"})

    assert spawned["status"] == "error"
    assert any(isinstance(event, SpawnClosed) for event in closed_spawn(system, plain["runId"]))
    assert [event.message.content for event in all_said(system)]


@pytest.mark.clause("D7", "O9")
def test_a_session_whose_last_row_is_damaged_is_degraded_alone(booth: Booth) -> None:
    system = booth.start({"main": talker, "ops": talker})
    say(system, "hi")
    stream = f"session:{GROUP}"
    system.close(grace=0)
    changed_behind(
        booth.url,
        "UPDATE stored_events SET state=? WHERE originator_id=? AND originator_version="
        "(SELECT MAX(originator_version) FROM stored_events WHERE originator_id=?)",
        *(b"\0", stream, stream),
    )

    again = booth.start({"main": talker, "ops": talker})
    damaged = [say(again, "are you there?")]
    while "degraded" not in damaged[-1]["error"] and len(damaged) < 50:  # it is tried again three times
        damaged.append(say(again, "are you there?"))
    other = say(again, "hi", chat="7")

    assert {answer["code"] for answer in damaged} == {"unreadable"}
    assert "degraded" in damaged[-1]["error"]
    assert other["status"] == "ok"
    assert list(again.status()["degraded"]) == [GROUP]
