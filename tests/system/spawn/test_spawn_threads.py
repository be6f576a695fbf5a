"""A thread for a sub-agent: what is said there goes to it, and what it says goes there."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from intersession import Channel, DeliveryRefused, MemoryChannel, Outbound, Reply, SessionSystem, Turn
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_events.facts import (
    AttachmentsRemoved,
    ChildArchived,
    Route,
    RunQueued,
    SessionOpened,
    SpawnAccepted,
    SpawnClosed,
    ThreadBound,
    ThreadOpened,
    ThreadUnbound,
)
from support.fakes import ManualClock, look_at_clock
from support.running import WAIT, Booth, Gate, all_said, closed_spawn, one, pass_time, recorded, wait_for

MAIN = "agent:main:main"
GROUP = "agent:main:discord:group:42"
HOUR = 3_600_000
THREAD = Route(channel="discord", to="42", thread="t1")


class Threads(MemoryChannel):
    """A channel that opens threads: t1, t2 …; the same key gives the same thread."""

    def __init__(self) -> None:
        super().__init__(idempotent=True)
        self.wanted: list[ThreadWanted] = []
        self.threads = self._open

    def _open(self, wanted: ThreadWanted) -> str:
        self.wanted.append(wanted)
        keys = list(dict.fromkeys(each.key for each in self.wanted))
        return f"t{keys.index(wanted.key) + 1}"


def talker(turn: Turn) -> str | Reply:
    match turn.step:
        case "message" | "compaction":
            return f"heard {turn.message}"
        case "reply":
            return Reply.skip()
        case "announce":
            return "It is done."


def started(
    booth: Booth, channel: Any, *configs: dict[str, Any], agent: Any = talker, **given: Any
) -> SessionSystem:
    system = booth.start({"main": agent}, {"discord": channel}, *configs, **given)
    say(system, "hi", deliver=False)
    return system


def say(system: SessionSystem, text: str, **given: Any) -> Any:
    return system.inbound(channel="discord", chat_id="42", chat_type="group", text=text, sender="p", **given)


def spawn(system: SessionSystem, **given: Any) -> Any:
    arguments = {"task": "count the files", "thread": True, **given}
    answer: Any = system.tools(GROUP).call("sessions_spawn", arguments)
    return answer


def places(shown: tuple[Outbound, ...]) -> list[tuple[str, str | None, str]]:
    return [(outbound.to, outbound.thread, outbound.text.partition("\n")[0]) for outbound in shown]


@pytest.mark.clause("SPAWN-12", "SPAWN-1")
def test_the_requesters_channel_opens_a_thread_that_is_bound_to_the_child(booth: Booth) -> None:
    discord = Threads()
    system = started(booth, discord)

    answer = spawn(system, label="counter")

    child = answer["childSessionKey"]
    assert (answer["status"], answer["mode"]) == ("accepted", "session")
    (wanted,) = discord.wanted
    assert (wanted.channel, wanted.to, wanted.title) == ("discord", "42", "counter")
    assert recorded(system, ThreadOpened) == [ThreadOpened(route=THREAD)]
    assert recorded(system, ThreadBound, f"session:{child}") == [ThreadBound(route=THREAD)]
    (row,) = system.tools().call("sessions_list", {"search": child})["sessions"]
    assert row["deliveryContext"] == {"channel": "discord", "to": "42", "threadId": "t1"}


@pytest.mark.clause("SPAWN-12")
def test_what_is_said_there_goes_to_the_child_and_its_words_go_there(booth: Booth) -> None:
    discord = Threads()
    system = started(booth, discord)
    answer = spawn(system)
    closed = closed_spawn(system, answer["runId"])

    said = say(system, "and the folders?", thread="t1", message_id="m1", wait=20)
    again = say(system, "and the folders?", thread="t1", message_id="m1")
    elsewhere = say(system, "hello", thread="t2", wait=20)
    beside = say(system, "hello", wait=20)

    assert one(closed, SpawnClosed).reason == "announced"
    assert said["sessionKey"] == again["sessionKey"] == answer["childSessionKey"]
    assert said["reply"] == "heard and the folders?"
    assert again["runId"] == said["runId"]
    assert elsewhere["sessionKey"] == f"{GROUP}:thread:t2"
    assert beside["sessionKey"] == GROUP
    shown = places(discord.wait_for(4, timeout=20))
    assert [place for place in shown if place[1] == "t1"] == [
        ("42", "t1", "Status: success"),
        ("42", "t1", "heard and the folders?"),
    ]
    # Two other chats: which of them is shown first is nobody's promise.
    assert {place for place in shown if place[1] != "t1"} == {
        ("42", "t2", "heard hello"),
        ("42", None, "heard hello"),
    }
    heard = [
        event.message.provenance.kind
        for event in all_said(system, f"session:{answer['childSessionKey']}")
        if event.message.content == "and the folders?" and event.message.provenance is not None
    ]
    assert heard == ["external_user"]


@pytest.mark.clause("SPAWN-12", "SPAWN-6")
def test_the_task_itself_is_answered_by_the_announce_alone(booth: Booth) -> None:
    discord = Threads()
    system = started(booth, discord)

    answer = spawn(system)
    closed_spawn(system, answer["runId"])

    task = next(event for event in recorded(system, RunQueued) if event.run_id == answer["runId"])
    assert task.route is None
    assert len(discord.wait_for(1, timeout=20)) == 1


@pytest.mark.clause("SPAWN-12")
@pytest.mark.parametrize(
    ("configs", "named"),
    [
        ({"session": {"threadBindings": {"enabled": False}}}, "session.threadBindings.enabled"),
        (
            {"channels": {"discord": {"threadBindings": {"enabled": False}}}},
            "channels.discord.threadBindings.enabled",
        ),
        (
            {"channels": {"discord": {"threadBindings": {"spawnSubagentSessions": False}}}},
            "channels.discord.threadBindings.spawnSubagentSessions",
        ),
    ],
)
def test_threads_that_are_off_are_refused_and_the_setting_is_named(
    booth: Booth, configs: dict[str, Any], named: str
) -> None:
    discord = Threads()
    system = started(booth, discord, configs)

    answer = spawn(system)

    assert (answer["status"], answer["code"]) == ("error", "no_threads")
    assert named in answer["error"]
    assert discord.wanted == []


@pytest.mark.clause("SPAWN-12")
def test_a_channel_of_its_own_settings_overrules_the_sessions(booth: Booth) -> None:
    system = started(
        booth,
        Threads(),
        {
            "session": {"threadBindings": {"enabled": False, "idleHours": 1, "maxAgeHours": 5}},
            "channels": {"discord": {"threadBindings": {"enabled": True, "idleHours": 2}}},
        },
    )

    assert spawn(system)["status"] == "accepted"

    assert recorded(system, ThreadBound) == [ThreadBound(route=THREAD, idle_ms=2 * HOUR, max_age_ms=5 * HOUR)]


@pytest.mark.clause("SPAWN-12")
def test_a_channel_without_threads_is_an_error_and_nothing_is_left_behind(booth: Booth) -> None:
    system = started(booth, MemoryChannel())
    before = system.log.head()

    answers = [spawn(system), system.tools(MAIN).call("sessions_spawn", {"task": "t", "thread": True})]

    assert [answer["code"] for answer in answers] == ["no_threads", "no_threads"]
    assert "has no threads" in answers[0]["error"]
    assert "no channel" in answers[1]["error"]
    assert recorded(system, SpawnAccepted) == []
    left = [item.topic for item in system.log.all(after=before)]
    assert left in ([], ["session_opened.1"])


@pytest.mark.clause("SPAWN-12")
@pytest.mark.parametrize("problem", ["raises", "gives no id"])
def test_a_thread_that_is_not_opened_is_an_error_and_leaves_no_session(
    booth: Booth, beside_log: Path, problem: str
) -> None:
    asked: list[str] = []

    def refuse(wanted: ThreadWanted) -> Any:
        asked.append(wanted.key)
        if problem == "raises":
            raise DeliveryRefused("not in this room")
        return {"id": 7}

    channel = Channel(deliver=lambda _: None, threads=refuse)
    config: dict[str, Any] = {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}
    system = started(booth, channel, config)

    answer = spawn(system, idempotencyKey="k", attachments=[{"name": "a", "content": "x"}])

    assert (answer["status"], answer["code"]) == ("error", "no_threads")
    assert spawn(system, idempotencyKey="k", attachments=[{"name": "a", "content": "x"}]) == answer
    assert len(asked) == 1
    assert [event.key for event in recorded(system, SessionOpened)] == [GROUP]
    assert recorded(system, SpawnClosed)[0].reason == "not_started"
    assert system.service.flows.running_children(GROUP) == 0
    wait_for(system, AttachmentsRemoved)
    system.close()
    attachments = beside_log / "workspaces" / "main" / ".openclaw" / "attachments"
    assert [path.name for path in attachments.iterdir()] == [".staging"]


@pytest.mark.clause("SPAWN-12")
def test_two_children_have_two_threads(booth: Booth) -> None:
    system = started(booth, Threads())
    first, second = spawn(system), spawn(system)

    said = [say(system, "you?", thread=thread, wait=20)["sessionKey"] for thread in ("t2", "t1")]

    assert said == [second["childSessionKey"], first["childSessionKey"]]


@pytest.mark.clause("SPAWN-12", "SPAWN-11")
def test_an_archived_child_has_no_thread_any_more(booth: Booth) -> None:
    clock = ManualClock()
    system = started(booth, Threads(), clock=clock)
    answer = spawn(system, mode="run")
    closed_spawn(system, answer["runId"])

    pass_time(system, clock, HOUR + 1)
    wait_for(system, ChildArchived)

    assert wait_for(system, ThreadUnbound) == ThreadUnbound(route=THREAD, reason="archived")
    assert say(system, "still there?", thread="t1", wait=20)["sessionKey"] == f"{GROUP}:thread:t1"


@pytest.mark.clause("SPAWN-11", "SPAWN-12")
def test_a_child_of_mode_session_is_never_archived(booth: Booth) -> None:
    clock = ManualClock()
    system = started(booth, Threads(), clock=clock)
    answer = spawn(system)
    closed_spawn(system, answer["runId"])

    pass_time(system, clock, 1000 * HOUR)

    assert say(system, "still there?", thread="t1", wait=20)["sessionKey"] == answer["childSessionKey"]
    assert recorded(system, ChildArchived) == []


@pytest.mark.clause("SPAWN-12")
@pytest.mark.parametrize(("setting", "reason"), [("idleHours", "idle"), ("maxAgeHours", "max_age")])
@pytest.mark.parametrize("down", [False, True])
def test_a_thread_is_unbound_when_it_has_had_its_time(
    booth: Booth, setting: str, reason: str, *, down: bool
) -> None:
    clock = ManualClock()
    config = {"session": {"threadBindings": {setting: 2}}}
    system = started(booth, Threads(), config, clock=clock)
    answer = spawn(system)
    closed_spawn(system, answer["runId"])
    clock.advance(HOUR)
    assert say(system, "you?", thread="t1", wait=20)["sessionKey"] == answer["childSessionKey"]

    later = HOUR if reason == "max_age" else 2 * HOUR
    if down:
        system.close()
        clock.advance(later)
        system = booth.start({"main": talker}, {"discord": Threads()}, config, clock=clock)
    else:
        pass_time(system, clock, later - 1)
        assert (
            say(system, "still you?", thread="t1", deliver=False)["sessionKey"] == answer["childSessionKey"]
        )
        pass_time(system, clock, 1 if reason == "max_age" else 2 * HOUR)

    assert say(system, "and now?", thread="t1", wait=20)["sessionKey"] == f"{GROUP}:thread:t1"
    look_at_clock(system._parts.timers)
    assert wait_for(system, ThreadUnbound).reason == reason
    (row,) = system.tools().call("sessions_list", {"search": answer["childSessionKey"]})["sessions"]
    assert "deliveryContext" not in row


@pytest.mark.clause("SPAWN-12", "SPAWN-9")
def test_an_unbound_child_announces_to_its_requesters_route_again(booth: Booth) -> None:
    discord, gate = Threads(), Gate()
    system = started(booth, discord, agent=gate.before(talker, "message"))
    answer = spawn(system)
    gate.reached()

    assert system.unbind_thread(answer["childSessionKey"]) is True
    assert system.unbind_thread(answer["childSessionKey"]) is False
    gate.open()
    closed_spawn(system, answer["runId"])

    unbound = ThreadUnbound(route=THREAD, reason="unbound", by="operator")
    assert recorded(system, ThreadUnbound) == [unbound]
    assert places(discord.wait_for(1, timeout=20)) == [("42", None, "Status: success")]


@pytest.mark.clause("SPAWN-12")
def test_a_binding_survives_a_restart(booth: Booth) -> None:
    system = started(booth, Threads())
    answer = spawn(system)
    closed_spawn(system, answer["runId"])
    system.close()

    again = booth.start({"main": talker}, {"discord": Threads()})

    assert say(again, "still there?", thread="t1", wait=20)["sessionKey"] == answer["childSessionKey"]


@pytest.mark.clause("SPAWN-12", "POL-3")
def test_the_send_policy_is_asked_of_the_childs_words_too(booth: Booth) -> None:
    discord = Threads()
    match = {"keyPrefix": "subagent:", "channel": "discord"}
    policy = {"session": {"sendPolicy": {"rules": [{"action": "deny", "match": match}]}}}
    system = started(booth, discord, policy)

    answer = spawn(system)

    assert one(closed_spawn(system, answer["runId"]), SpawnClosed).reason == "announce_denied"
    assert discord.delivered == ()


@pytest.mark.clause("SPAWN-1")
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"cleanup": "delete"}, "invalid_request"),
        ({"mode": "session", "cleanup": "delete"}, "invalid_request"),
    ],
)
def test_a_session_in_a_thread_is_kept(booth: Booth, given: dict[str, Any], code: str) -> None:
    discord = Threads()
    system = started(booth, discord)

    assert spawn(system, **given)["code"] == code
    assert discord.wanted == []


@pytest.mark.clause("SPAWN-12", "P2")
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_thread_that_may_have_been_opened_before_a_stop_is_asked_for_again_only_where_that_is_safe(
    booth: Booth, *, idempotent: bool
) -> None:
    gate = Gate()

    def never(_: ThreadWanted) -> str:
        gate.stop(cast("Turn", None))
        return "t9"

    system = started(booth, Channel(deliver=lambda _: None, threads=never, idempotent=idempotent))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(spawn, system, idempotencyKey="k")
        gate.reached()
        system.close(grace=0)
        assert answer.result(timeout=WAIT)["code"] == "unavailable"
    gate.open()
    again = Threads()
    again.idempotent = idempotent

    system = booth.start({"main": talker}, {"discord": again})

    (accepted,) = recorded(system, SpawnAccepted)
    closed = one(closed_spawn(system, accepted.run_id), SpawnClosed)
    assert closed.reason == ("announced" if idempotent else "not_started")
    assert len(again.wanted) == (1 if idempotent else 0)
    assert spawn(system, idempotencyKey="k")["status"] == ("accepted" if idempotent else "error")


class OneThread(MemoryChannel):
    """A channel that gives the same thread to whoever asks."""

    def __init__(self) -> None:
        super().__init__(idempotent=True)
        self.threads = self._open

    def _open(self, wanted: ThreadWanted) -> str:
        del wanted
        return "t1"


@pytest.mark.clause("SPAWN-12")
@pytest.mark.parametrize("restarts", [False, True])
def test_a_thread_that_belongs_to_a_child_is_not_taken_from_it(booth: Booth, *, restarts: bool) -> None:
    clock = ManualClock()
    system = started(booth, OneThread(), clock=clock)
    first = spawn(system, mode="run")
    if restarts:
        closed_spawn(system, first["runId"])
        system.close()
        system = booth.start({"main": talker}, {"discord": OneThread()}, clock=clock)

    second = spawn(system)
    said = say(system, "you?", thread="t1", wait=20)
    closed_spawn(system, first["runId"])
    pass_time(system, clock, HOUR + 1)
    wait_for(system, ThreadUnbound)
    third = spawn(system)

    assert (second["status"], second["code"]) == ("error", "no_threads")
    assert "another session" in second["error"]
    assert said["sessionKey"] == first["childSessionKey"]
    assert third["status"] == "accepted"
    refused = [event for event in recorded(system, SpawnClosed) if event.reason == "not_started"]
    assert [event.code for event in refused] == ["no_threads"]


@pytest.mark.clause("SPAWN-12")
def test_of_two_children_that_are_given_one_thread_at_once_one_has_it(booth: Booth) -> None:
    system = started(booth, OneThread())
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: spawn(system, task=f"count {number}"), range(4)))

    assert sorted(answer["status"] for answer in answers) == ["accepted", "error", "error", "error"]
    assert len(recorded(system, ThreadBound)) == 1
