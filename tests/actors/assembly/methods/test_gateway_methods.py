"""The methods from Python: parameters and results of the original where no clause differs (GATE)."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import ConfigError, MemoryChannel, SessionSystem, Turn, echo
from intersession_actors.calls.service.callers import Caller
from intersession_events.facts import RunStarted
from support.as_caller import called_by
from support.running import SEES_ALL, WAIT, Booth, Gate, merged

MAIN = "agent:main:main"
ROOM = "agent:main:signal:group:g1"


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def system(log_url: str, gate: Gate, channel: MemoryChannel) -> Iterator[SessionSystem]:
    def agent(turn: Turn) -> str:
        if "stop" in turn.message:
            gate.stop(turn)
        return f"{turn.context or 'no context'}: {turn.message}"

    models = {"models": {"providers": {"fake": {"models": [{"id": "one"}, {"id": "two"}]}}}}
    with SessionSystem(
        log_url,
        agents={"main": agent, "ops": echo()},
        channels={"signal": channel},
        config=merged(SEES_ALL, models),
    ) as made:
        yield made
        gate.open()


def ran(system: SessionSystem, message: str, key: str, **fields: Any) -> Any:
    accepted = system.gateway.call("agent", {"message": message, "idempotencyKey": key, **fields})
    assert accepted["status"] == "accepted", accepted
    return system.gateway.call("agent.wait", {"runId": accepted["runId"]})


@pytest.mark.clause("GATE-1")
def test_agent_takes_a_context_a_session_id_and_a_label(system: SessionSystem) -> None:
    first = ran(system, "hello", "a", sessionKey=MAIN, extraSystemPrompt="be brief", label="the main one")
    session_id = system.gateway.call("chat.history", {"sessionKey": MAIN})["sessionId"]
    second = ran(system, "again", "b", sessionId=session_id)

    assert first["reply"] == "be brief: hello"
    assert second["reply"] == "no context: again"
    assert system.gateway.call("sessions.resolve", {"label": "the main one"}) == {"ok": True, "key": MAIN}


@pytest.mark.clause("GATE-1", "PROV-2")
@pytest.mark.parametrize(
    ("fields", "code", "named"),
    [
        ({"inputProvenance": {"kind": "inter_session"}}, "invalid_request", "inputProvenance"),
        ({"spawnedBy": MAIN}, "invalid_request", "spawnedBy"),
        ({"attachments": [{}]}, "invalid_request", "attachments[0].content"),
        ({"thinking": "hard"}, "invalid_thinking", "thinking"),
        ({"agentId": "nobody"}, "unknown_agent", "agentId"),
        ({"sessionKey": MAIN, "agentId": "ops"}, "invalid_request", "agentId"),
        ({"sessionKey": MAIN, "sessionId": "x"}, "invalid_request", "sessionId"),
        ({"deliver": True}, "invalid_request", "deliver"),
        ({"deliver": True, "channel": "signal"}, "invalid_request", "to"),
        ({"message": " "}, "invalid_request", "message"),
        ({"message": "a\0b"}, "invalid_request", "message"),
        ({"timeout": -1}, "invalid_request", "timeout"),
        ({"idempotencyKey": ""}, "invalid_request", "idempotencyKey"),
        ({"busy": "maybe"}, "invalid_request", "busy"),
    ],
)
def test_agent_refuses_what_it_can_not_do(
    system: SessionSystem, fields: dict[str, Any], code: str, named: str
) -> None:
    answer = system.gateway.call("agent", {"message": "hi", "idempotencyKey": "k", **fields})

    assert answer["code"] == code
    assert answer["error"].startswith(f"{named}: ")
    assert system.service.runs.recent(5) == []


@pytest.mark.clause("GATE-1")
def test_agent_delivers_where_it_is_told_to(system: SessionSystem, channel: MemoryChannel) -> None:
    ran(system, "say it", "a", sessionKey=MAIN, deliver=True, channel="signal", to="+1")

    for recorded in system.follow(0, timeout=20):
        if recorded.topic == "delivery_done.1":
            break
    assert [(sent.to, sent.text) for sent in channel.delivered] == [("+1", "no context: say it")]


@pytest.mark.clause("GATE-4")
def test_a_queue_that_is_not_wanted_is_refused(system: SessionSystem, gate: Gate) -> None:
    call = {"message": "stop", "idempotencyKey": "a", "sessionKey": MAIN}
    system.gateway.call("agent", call)
    gate.reached()

    refused = system.gateway.call("agent", {**call, "idempotencyKey": "b", "busy": "reject"})
    again = system.gateway.call("agent", call)

    assert refused["code"] == "busy"
    assert again["status"] == "accepted"


@pytest.mark.clause("GATE-4")
def test_a_message_that_is_refused_or_known_interrupts_nothing(system: SessionSystem, gate: Gate) -> None:
    """Before: the run under way was stopped before the new message was judged."""
    call = {"message": "stop", "idempotencyKey": "a", "sessionKey": MAIN, "busy": "interrupt"}
    run_id = system.gateway.call("agent", call)["runId"]
    gate.reached()

    again = system.gateway.call("agent", call)
    system.gateway.call("sessions.patch", {"key": MAIN, "sendPolicy": "deny"})
    denied = system.gateway.call("agent", call | {"idempotencyKey": "b"})
    changed = system.gateway.call("agent", call | {"message": "other"})
    gate.open()

    assert again["runId"] == run_id
    assert (denied["code"], changed["code"]) == ("policy_denied", "idempotency_conflict")
    assert system.gateway.call("agent.wait", {"runId": run_id})["status"] == "ok"


@pytest.mark.clause("GATE-4", "O4")
def test_messages_that_interrupt_each_other_are_never_stopped_by_their_own_second_telling(
    system: SessionSystem,
) -> None:
    """Before: 9 of 60 were stopped by their own duplicate, which was told at the same time."""
    told = threading.Barrier(2)

    def tell(number: int) -> str:
        told.wait(20)
        call = {"message": "hi", "idempotencyKey": f"k{number}", "sessionKey": MAIN, "busy": "interrupt"}
        return str(system.gateway.call("agent", call)["runId"])

    with ThreadPoolExecutor(2) as pool:
        for number in range(20):
            first, second = pool.map(tell, [number, number])
            assert first == second
            assert system.gateway.call("agent.wait", {"runId": first})["status"] == "ok"

    assert [item for item in system.log.all() if item.topic.startswith("run_aborted")] == []


@pytest.mark.clause("GATE-4", "SEND-11")
def test_one_key_told_twice_at_once_with_two_messages_is_a_conflict(system: SessionSystem) -> None:
    told = threading.Barrier(2)

    def tell(message: str) -> Any:
        told.wait(20)
        return system.gateway.call("agent", {"message": message, "idempotencyKey": "k", "sessionKey": MAIN})

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(tell, ["stop one", "stop two"]))

    assert sorted(answer.get("code", "accepted") for answer in answers) == [
        "accepted",
        "idempotency_conflict",
    ]


@pytest.mark.clause("GATE-5")
def test_an_abort_of_a_session_starts_nothing_that_waited(system: SessionSystem, gate: Gate) -> None:
    """Before: its queued runs began, one after the other."""
    runs = [
        system.gateway.call("agent", {"message": text, "idempotencyKey": text, "sessionKey": MAIN})["runId"]
        for text in ("stop", "second", "third")
    ]
    gate.reached()

    stopped = system.gateway.call("chat.abort", {"sessionKey": MAIN})
    after = ran(system, "after", "after", sessionKey=MAIN)

    assert stopped == {"ok": True, "aborted": True, "runIds": runs}
    assert {system.gateway.call("agent.wait", {"runId": run})["status"] for run in runs} == {"aborted"}
    assert after["status"] == "ok"
    started = [item.event.run_id for item in system.log.all() if isinstance(item.event, RunStarted)]
    assert started == [runs[0], after["runId"]]
    assert system.gateway.call("chat.abort", {"sessionKey": MAIN})["aborted"] is False


@pytest.mark.clause("GATE-5")
@pytest.mark.parametrize("word", ["stop", " STOP ", "/stop", "abort"])
def test_a_chat_that_only_says_stop_stops(system: SessionSystem, gate: Gate, word: str) -> None:
    sent = system.gateway.call(
        "chat.send", {"message": "please stop here", "idempotencyKey": "a", "sessionKey": MAIN}
    )
    gate.reached()

    stopped = system.gateway.call("chat.send", {"message": word, "idempotencyKey": "b", "sessionKey": MAIN})

    assert sent["status"] == "started"
    assert stopped == {"ok": True, "aborted": True, "runIds": [sent["runId"]]}
    assert system.gateway.call("agent.wait", {"runId": "a"})["status"] == "aborted"


@pytest.mark.clause("GATE-1")
def test_sessions_are_previewed(system: SessionSystem) -> None:
    ran(system, "hello " + "x" * 100, "a", sessionKey=MAIN)

    answer = system.gateway.call(
        "sessions.preview", {"keys": [MAIN, "agent:main:nope", "not a key"], "maxChars": 20, "limit": 1}
    )

    found, missing, wrong = answer["previews"]
    assert found == {
        "key": MAIN,
        "status": "ok",
        "items": [{"role": "assistant", "text": "no context: hello x…"}],
    }
    assert (missing["status"], wrong["status"]) == ("missing", "error")


@pytest.mark.clause("GATE-1")
def test_the_list_has_the_originals_additions(system: SessionSystem) -> None:
    ran(system, "hello", "a", sessionKey=MAIN)
    system.gateway.call("sessions.patch", {"key": MAIN, "displayName": "Main room"})

    answer = system.gateway.call(
        "sessions.list", {"includeLastMessage": True, "includeDerivedTitles": True, "includeGlobal": True}
    )

    (row,) = answer["sessions"]
    assert (row["lastMessagePreview"], row["derivedTitle"]) == ("no context: hello", "Main room")
    assert "messages" not in row
    assert answer["ts"] > 0


@pytest.mark.clause("GATE-2")
def test_a_patch_says_what_came_of_it(system: SessionSystem) -> None:
    ran(system, "hello", "a", agentId="main")
    ran(system, "hello", "b", sessionKey="agent:main:notes")

    changed = system.gateway.call("sessions.patch", {"key": MAIN, "model": "two", "label": " desk "})
    taken = system.gateway.call("sessions.patch", {"key": "agent:main:notes", "label": "desk"})
    model = system.gateway.call("sessions.patch", {"key": MAIN, "model": "fake/three"})
    level = system.gateway.call("sessions.patch", {"key": MAIN, "thinkingLevel": "much"})
    lineage = system.gateway.call("sessions.patch", {"key": MAIN, "spawnedBy": "agent:ops:main"})
    cleared = system.gateway.call("sessions.patch", {"key": MAIN, "label": None})

    assert changed["resolved"] == {"modelProvider": "fake", "model": "two"}
    assert changed["entry"]["label"] == "desk"
    assert taken["error"].startswith("label: another session")
    assert model["code"] == "invalid_model"
    assert level["code"] == "invalid_thinking"
    assert lineage["error"].startswith("spawnedBy: unknown field")
    assert "label" not in cleared["entry"]


@pytest.mark.clause("GATE-2")
def test_deleting_says_whether_there_was_anything(system: SessionSystem) -> None:
    ran(system, "hello", "a", sessionKey="agent:main:notes")
    ran(system, "hello", "b", sessionKey=MAIN)
    session_id = system.gateway.call("chat.history", {"sessionKey": "agent:main:notes"})["sessionId"]

    first = system.gateway.call("sessions.delete", {"key": "agent:main:notes"})
    second = system.gateway.call("sessions.delete", {"key": "agent:main:notes"})
    main = system.gateway.call("sessions.delete", {"key": MAIN})
    unopened = system.gateway.call("sessions.delete", {"key": "agent:ops:main"})

    assert first == {"ok": True, "key": "agent:main:notes", "deleted": True, "archived": [session_id]}
    assert (second["ok"], second["deleted"]) == (True, False)
    assert main["code"] == unopened["code"] == "main_session"


@pytest.mark.clause("GATE-1")
def test_what_there_is_can_be_asked(system: SessionSystem) -> None:
    assert system.gateway.call("agents.list")["agents"] == [{"id": "main"}, {"id": "ops"}]
    assert [model["id"] for model in system.gateway.call("models.list")["models"]] == ["one", "two"]
    assert system.gateway.call("agent.identity.get", {"sessionKey": "agent:ops:main"}) == {"agentId": "ops"}
    assert system.gateway.call("health")["ok"] is True
    assert system.gateway.call("status")["agents"] == ["main", "ops"]


@pytest.mark.clause("POL-3")
def test_a_send_that_the_policy_forbids_is_refused(system: SessionSystem, channel: MemoryChannel) -> None:
    ran(system, "hello", "a", sessionKey=MAIN)
    system.gateway.call("sessions.patch", {"key": MAIN, "sendPolicy": "deny"})

    answer = system.gateway.call(
        "send", {"channel": "signal", "to": "+1", "message": "hi", "idempotencyKey": "k", "sessionKey": MAIN}
    )

    assert answer["code"] == "policy_denied"
    assert list(channel.delivered) == []


@pytest.mark.clause("GATE-1", "ANN-3")
def test_a_send_to_a_channel_that_is_not_known_here_is_refused_and_names_those_that_are(
    system: SessionSystem, channel: MemoryChannel
) -> None:
    """Before: it was accepted, and the text waited for a channel that nobody will ever register."""
    text = {"to": "+1", "message": "hi", "idempotencyKey": "k", "sessionKey": MAIN}

    refused = system.gateway.call("send", {"channel": "sginal"} | text)
    taken = system.gateway.call("send", {"channel": "signal"} | text)

    assert refused["code"] == "invalid_request"
    assert refused["error"] == "channel: nobody delivers for 'sginal' here, use one of signal"
    assert taken["status"] == "accepted"
    assert [shown.text for shown in channel.wait_for(1, timeout=WAIT)] == ["hi"]
    assert system.service.flows.open_deliveries_to("sginal") == []


@pytest.mark.clause("GATE-1", "ANN-3")
def test_a_text_for_a_channel_that_is_configured_and_not_connected_yet_waits_for_it(booth: Booth) -> None:
    system = booth.start({"main": echo()}, {}, {"channels": {"telegram": {}}})
    send = {"to": "42", "message": "hi", "idempotencyKey": "k"}
    refused = system.gateway.call("send", {"channel": "signal"} | send)
    accepted = system.gateway.call("send", {"channel": "telegram"} | send)
    telegram = MemoryChannel()
    system.register_channel("telegram", telegram)

    assert refused["error"].endswith("use one of telegram")
    assert accepted["status"] == "accepted"
    assert [shown.text for shown in telegram.wait_for(1, timeout=WAIT)] == ["hi"]


@pytest.mark.clause("GATE-1", "SEND-11")
def test_a_send_that_was_accepted_once_is_answered_alike_though_its_channel_has_gone(booth: Booth) -> None:
    send = {"channel": "telegram", "to": "42", "message": "hi", "idempotencyKey": "k"}
    first = booth.start({"main": echo()}, {"telegram": MemoryChannel()})
    accepted = first.gateway.call("send", send)
    first.close()
    second = booth.start({"main": echo()})

    again = second.gateway.call("send", send)
    other = second.gateway.call("send", send | {"idempotencyKey": "other"})

    assert again == accepted
    assert other["error"].endswith("register one first")


@pytest.mark.clause("VIS-6")
def test_who_stands_for_some_sessions_never_hears_of_others_by_their_label(system: SessionSystem) -> None:
    caller = Caller.by_credential("ops", ("agent:ops:*",))
    for key in (MAIN, "agent:ops:main", "agent:ops:notes"):
        ran(system, "hello", key, sessionKey=key)
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "desk"})
    hidden = called_by(caller, system, "sessions.resolve", {"label": "desk"})
    system.gateway.call("sessions.patch", {"key": "agent:ops:notes", "label": "desk"})

    found = called_by(caller, system, "sessions.resolve", {"label": "desk"})
    all_of_them = system.gateway.call("sessions.resolve", {"label": "desk"})
    listed = called_by(caller, system, "sessions.list", {"limit": 1})

    assert hidden["error"] == "session not visible: desk"
    assert found["key"] == "agent:ops:notes"
    assert all_of_them["code"] == "ambiguous_label"
    assert [row["key"] for row in listed["sessions"]] == ["agent:ops:notes"]


@pytest.mark.clause("SEND-11", "VIS-6")
def test_keys_of_different_credentials_are_different_keys(system: SessionSystem) -> None:
    one = Caller.by_credential("one", ("agent:*",))
    other = Caller.by_credential("other", ("agent:*",))
    call = {"message": "hi", "idempotencyKey": "k", "sessionKey": MAIN}

    runs = [called_by(caller, system, "agent", call)["runId"] for caller in (one, other, one)]

    assert runs[0] == runs[2] != runs[1]
    assert called_by(other, system, "agent.wait", {"runId": "k"})["runId"] == runs[1]


@pytest.mark.clause("CFG-4")
def test_a_bad_configuration_changes_nothing_and_shows(system: SessionSystem) -> None:

    with pytest.raises(ConfigError):
        system.reload({"tools": {"sessions": {"visibility": "everything"}}})

    assert str(system.config.tools.sessions.visibility) == "all"
    assert "tools.sessions.visibility" in system.status()["configError"]
    system.reload({"tools": {"sessions": {"visibility": "self"}}})
    assert system.config.tools.sessions.visibility == "self"
    assert system.status()["configError"] is None
    assert system.config.agent_ids == ("main", "ops")


@pytest.mark.clause("GATE-1", "KEY-9")
@pytest.mark.parametrize("name", ["main", "agent:ops:main"])
def test_the_history_of_a_main_session_before_its_first_word_is_empty(
    system: SessionSystem, name: str
) -> None:
    """What the original's terminal asks for first, on a fresh gateway and after `/agent ops` (finding E5)."""
    before = system.gateway.call("chat.history", {"sessionKey": name})
    listed = system.gateway.call("sessions.list")["count"]

    assert before["messages"] == []
    assert before["sessionId"] is None
    assert listed == 0


@pytest.mark.clause("GATE-1", "HIST-6")
@pytest.mark.parametrize("name", ["agent:main:nobody", "agent:nobody:main", "nobody", "subagent:1"])
def test_the_history_of_any_other_session_that_is_not_there_is_refused(
    system: SessionSystem, name: str
) -> None:
    answer = system.gateway.call("chat.history", {"sessionKey": name})

    assert answer["code"] in {"not_visible", "invalid_key"}
    assert "messages" not in answer


@pytest.mark.clause("GATE-1")
def test_status_names_the_sessions_that_were_updated_last(system: SessionSystem) -> None:
    """Before: the count stood beside an empty list."""
    ran(system, "one", "a", sessionKey=MAIN)
    ran(system, "two", "b", sessionKey="agent:ops:main")

    sessions = system.gateway.call("status")["sessions"]

    assert sessions["count"] == 2
    assert [each["key"] for each in sessions["recent"]] == ["agent:ops:main", MAIN]
    assert all(each["age"] >= 0 and each["updatedAt"] > 0 for each in sessions["recent"])
