"""A person speaks: the message goes to the session of the chat, and one run answers it."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import MemoryChannel, Reply, Turn
from intersession_events.facts import (
    DeliveryDecided,
    DeliveryDenied,
    RouteChanged,
    RunCompleted,
    RunQueued,
    SessionOpened,
    SessionPatched,
)
from support.hosts_code import parrot
from support.running import QUIET, WAIT, Booth, Heard, all_said, recorded, speak, texts, wait_for

MAIN = "agent:main:main"


@pytest.mark.clause("INB-1", "INB-2")
def test_a_message_is_answered_on_the_sessions_route(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": parrot}, {"telegram": telegram})

    answer = speak(system, account="bot1", thread="7")

    assert (answer["status"], answer["reply"], answer["sessionKey"]) == ("ok", "you said hi", MAIN)
    (out,) = telegram.wait_for(1, timeout=WAIT)
    assert (out.to, out.account, out.thread, out.text) == ("42", "bot1", "7", "you said hi")
    row = system.tools().call("sessions_list")["sessions"][0]
    assert (row["lastChannel"], row["lastTo"], row["channel"]) == ("telegram", "42", "telegram")
    assert row["deliveryContext"] == {
        "channel": "telegram",
        "to": "42",
        "accountId": "bot1",
        "threadId": "7",
    }
    assert recorded(system, SessionOpened)[0].opened_by == "person"


@pytest.mark.clause("INB-1")
def test_without_waiting_it_answers_once_it_is_durable(booth: Booth) -> None:
    system = booth.start({"main": parrot})

    answer = speak(system, wait=None)

    assert answer == {"runId": answer["runId"], "sessionKey": MAIN, "status": "accepted"}
    assert recorded(system, RunQueued)[0].run_id == answer["runId"]


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize(
    ("chat", "key"),
    [
        ({"chat_type": "group", "chat_id": "-100"}, "agent:main:telegram:group:-100"),
        ({"chat_type": "group", "chat_id": "-100", "thread": "9"}, "agent:main:telegram:group:-100:thread:9"),
        ({"chat_type": "channel", "chat_id": "news"}, "agent:main:telegram:channel:news"),
        ({"chat_type": "direct"}, MAIN),
        ({"chat_type": "group", "chat_id": "-1", "agent_id": "ops"}, "agent:ops:telegram:group:-1"),
    ],
)
def test_each_kind_of_chat_has_its_key(booth: Booth, chat: dict[str, Any], key: str) -> None:
    system = booth.start({"main": parrot, "ops": parrot})

    assert speak(system, **chat)["sessionKey"] == key


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("main", MAIN),
        ("per-peer", "agent:main:direct:ann"),
        ("per-channel-peer", "agent:main:telegram:direct:ann"),
        ("per-account-channel-peer", "agent:main:telegram:bot1:direct:ann"),
    ],
)
def test_direct_chats_go_where_the_scope_says(booth: Booth, scope: str, key: str) -> None:
    system = booth.start({"main": parrot}, None, {"session": {"dmScope": scope}})

    assert speak(system, account="bot1")["sessionKey"] == key


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("given", [{"message_id": "m7"}, {"message_id": "m7", "deliver": False}])
def test_the_same_message_of_the_channel_is_taken_once(booth: Booth, given: dict[str, Any]) -> None:
    first = booth.start({"main": parrot})
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: speak(first, wait=None, **given), range(6)))
    first.close()
    second = booth.start({"main": parrot})
    answers.append(speak(second, wait=None, **given))
    other_chat = speak(second, wait=None, **{**given, "chat_id": "43"})

    name = "messageId" if "deliver" in given else "runId"
    assert len({answer[name] for answer in answers}) == 1
    assert other_chat[name] != answers[0][name]
    said = [event for event in all_said(second) if event.message.role == "user"]
    assert len(said) == 2


@pytest.mark.clause("INB-1", "INB-2")
@pytest.mark.parametrize("given", [{"deliver": False}, {"text": "/send inherit", "owner": True}])
def test_a_message_that_starts_no_run_is_never_recorded_twice(booth: Booth, given: dict[str, Any]) -> None:
    """Before: it was, after 200 events; and a second telling that waits was an unknown run."""
    told: dict[str, Any] = {"message_id": "m7", "chat_type": "group", "chat_id": "-1", **given}
    first = booth.start({"main": parrot})
    before = speak(first, wait=None, **told)
    for number in range(220):
        speak(first, str(number), wait=None, chat_type="group", chat_id="-1", deliver=False)
    again = speak(first, wait=None, **told)
    first.gateway.call("sessions.reset", {"key": before["sessionKey"]})
    after_reset = speak(first, wait=None, **told)
    first.close()
    second = booth.start({"main": parrot})
    after_restart = speak(second, wait=1, **told)
    second.gateway.call("sessions.delete", {"key": before["sessionKey"]})
    after_deletion = speak(second, wait=None, **told | {"deliver": True})

    assert [again, after_reset, after_restart, after_deletion] == [before] * 4
    said = [event.message.content for event in all_said(second)]
    assert said.count(told.get("text", "hi")) == 1
    assert recorded(second, RunQueued) == []


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("deliver", [True, False])
def test_a_message_is_known_again_wherever_its_chat_would_go_by_now(booth: Booth, deliver: bool) -> None:
    """Before: the same channel, account, chat and message are the same run, also under other settings."""
    told: dict[str, Any] = {"message_id": "m7", "wait": None, "deliver": deliver}
    first = booth.start({"main": parrot, "ops": parrot})
    before = speak(first, **told)
    first.close()
    second = booth.start({"main": parrot}, None, {"session": {"dmScope": "per-peer"}})

    again = speak(second, **told)
    of_an_agent_that_is_gone = speak(second, agent_id="ops", **told)

    assert [again, of_an_agent_that_is_gone] == [before, before]
    assert len([event for event in all_said(second) if event.message.role == "user"]) == 1


@pytest.mark.clause("INB-1")
def test_only_a_person_changes_a_route(booth: Booth) -> None:
    system = booth.start({"main": parrot, "ops": parrot}, None, QUIET)
    speak(system, channel="discord", chat_id="9")

    system.tools("agent:ops:main").call("sessions_send", {"sessionKey": MAIN, "message": "x"})
    system.gateway.call("agent", {"message": "x", "sessionKey": MAIN, "idempotencyKey": "k"})
    system.gateway.call(
        "send", {"channel": "telegram", "to": "1", "message": "x", "sessionKey": MAIN, "idempotencyKey": "k2"}
    )

    assert len(recorded(system, RouteChanged)) == 1
    row = next(row for row in system.tools().call("sessions_list")["sessions"] if row["key"] == "main")
    assert row["lastChannel"] == "discord"


@pytest.mark.clause("INB-1")
def test_a_chats_name_is_shown_and_recorded_once(booth: Booth) -> None:
    system = booth.start({"main": parrot})
    chat = {"chat_type": "group", "chat_id": "-100", "chat_name": "Ops room"}

    speak(system, **chat)
    speak(system, **chat)

    assert system.tools().call("sessions_list")["sessions"][0]["displayName"] == "Ops room"
    assert len(recorded(system, RouteChanged)) == 1


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"text": " "}, "invalid_request"),
        ({"channel": ""}, "invalid_request"),
        ({"agent_id": "nobody"}, "unknown_agent"),
        ({"chat_type": "group", "chat_id": "a b\n"}, "invalid_request"),
        ({"text": "\udcff"}, "invalid_request"),
    ],
)
def test_what_is_no_message_is_refused_as_an_answer(booth: Booth, given: dict[str, Any], code: str) -> None:
    system = booth.start({"main": parrot})

    answer = speak(system, **{"text": "hi", **given})

    assert (answer["status"], answer["code"]) == ("error", code)
    assert all_said(system) == []


@pytest.mark.clause("INB-2")
def test_a_message_that_is_only_to_be_recorded_starts_no_run(booth: Booth) -> None:
    system = booth.start({"main": parrot})

    answer = speak(system, deliver=False)

    assert answer["status"] == "accepted"
    history = system.tools().call("sessions_history", {"sessionKey": MAIN})
    assert texts(history) == [("user", "hi")]
    assert recorded(system, RunQueued) == []


@pytest.mark.clause("INB-2", "LOOP-6", "SEND-5")
@pytest.mark.parametrize("said", [None, "", "NO_REPLY", " NO_REPLY\n"])
def test_no_text_is_not_delivered(booth: Booth, said: str | None) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": lambda _turn: said}, {"telegram": telegram})

    assert "reply" not in speak(system)
    assert recorded(system, DeliveryDecided) == []


@pytest.mark.clause("INB-2", "POL-3")
def test_the_send_policy_holds_for_replies(booth: Booth) -> None:
    policy = {"session": {"sendPolicy": {"rules": [{"match": {"channel": "telegram"}, "action": "deny"}]}}}
    telegram = MemoryChannel()
    system = booth.start({"main": parrot}, {"telegram": telegram}, policy)

    answer = speak(system)

    denied = wait_for(system, DeliveryDenied)
    assert answer["reply"] == "you said hi", "it was said, and is in the transcript"
    assert "session.sendPolicy.rules[0]" in denied.rule
    assert telegram.delivered == ()


@pytest.mark.clause("INB-3", "POL-2")
@pytest.mark.parametrize(("text", "shown"), [("/send off", "deny"), ("/send on", "allow")])
def test_an_owner_switches_sending_with_a_message(booth: Booth, text: str, shown: str) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": parrot}, {"telegram": telegram})
    speak(system)
    telegram.wait_for(1, timeout=WAIT)

    answer = speak(system, text, owner=True)

    assert answer["status"] == "accepted"
    row = system.tools().call("sessions_list")["sessions"][0]
    assert row["sendPolicy"] == shown
    assert len(recorded(system, RunQueued)) == 1, "it starts no run"
    history = system.tools().call("sessions_history", {"sessionKey": MAIN})
    assert ("user", text) in texts(history)
    assert recorded(system, SessionPatched)[0].by == "telegram:ann"


@pytest.mark.clause("INB-3", "POL-2")
def test_the_owner_hears_that_sending_was_switched_off(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": parrot}, {"telegram": telegram})

    speak(system, "/send off", owner=True)

    (out,) = telegram.wait_for(1, timeout=WAIT)
    assert "off" in out.text


@pytest.mark.clause("POL-2")
def test_inherit_takes_the_sessions_own_policy_away(booth: Booth) -> None:
    system = booth.start({"main": parrot})
    speak(system, "/send off", owner=True)

    speak(system, "/send inherit", owner=True)

    assert "sendPolicy" not in system.tools().call("sessions_list")["sessions"][0]


@pytest.mark.clause("POL-2")
@pytest.mark.parametrize(
    ("text", "owner"),
    [("/send off", False), ("/send off ", True), ("please /send off", True), ("/send OFF", True)],
)
def test_from_anybody_else_or_with_anything_around_it_is_text(booth: Booth, text: str, owner: bool) -> None:
    system = booth.start({"main": parrot})

    answer = speak(system, text, owner=owner)

    assert answer["reply"] == f"you said {text}"
    assert recorded(system, SessionPatched) == []


@pytest.mark.clause("POL-2")
def test_from_a_session_it_is_text(booth: Booth) -> None:
    system = booth.start({"main": parrot, "ops": parrot}, None, QUIET)

    answer = system.tools("agent:ops:main").call(
        "sessions_send", {"sessionKey": MAIN, "message": "/send off"}
    )

    assert answer["reply"] == "you said /send off"
    assert recorded(system, SessionPatched) == []


@pytest.mark.clause("KEY-9")
def test_nothing_else_opens_a_session(booth: Booth) -> None:
    system = booth.start({"main": parrot})
    tools = system.tools("agent:main:cron:daily")

    tools.call("sessions_list", {"messageLimit": 1})
    for key in (
        "agent:main:notes",
        "agent:main:telegram:group:1",
        "cron:daily",
        "hook:x",
        "agent:main:subagent:8",
    ):
        tools.call("sessions_history", {"sessionKey": key})
        tools.call("sessions_send", {"sessionKey": key, "message": "x"})
    for method in ("chat.history", "chat.abort", "sessions.reset", "sessions.delete"):
        system.gateway.call(method, {"key" if method.startswith("s") else "sessionKey": "agent:main:notes"})
    system.gateway.call("chat.inject", {"sessionKey": "agent:main:notes", "message": "x"})

    assert recorded(system, SessionOpened) == []


@pytest.mark.clause("KEY-9")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("agent", {"sessionKey": "agent:main:cron:daily", "message": "x", "idempotencyKey": "k"}),
        ("chat.send", {"sessionKey": "agent:main:notes", "message": "x", "idempotencyKey": "k"}),
        ("sessions.patch", {"key": "agent:main:notes", "label": "notes"}),
    ],
)
def test_the_operator_opens_sessions_of_configured_agents(
    booth: Booth, method: str, params: dict[str, Any]
) -> None:
    system = booth.start({"main": parrot})

    system.gateway.call(method, params)
    strange = {name: str(value).replace("agent:main", "agent:stranger") for name, value in params.items()}
    refused = system.gateway.call(method, strange)

    assert [event.opened_by for event in recorded(system, SessionOpened)] == ["operator"]
    assert refused["status"] == "error"


@pytest.mark.clause("KEY-9", "INB-2")
def test_two_messages_to_a_busy_session_queue_and_are_answered_in_order(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": parrot}, {"telegram": telegram})

    runs = [speak(system, str(number), wait=None)["runId"] for number in range(10)]
    telegram.wait_for(10, timeout=WAIT)

    assert [event.run_id for event in recorded(system, RunCompleted)] == runs
    assert sorted(out.text for out in telegram.delivered) == sorted(f"you said {n}" for n in range(10))


def test_an_agent_is_told_what_was_said_before(booth: Booth) -> None:
    seen: list[list[str]] = []

    def listening(turn: Turn) -> Reply:
        seen.append([str(message.role) for message in turn.transcript])
        return Reply(text=f"answer {len(seen)}")

    system = booth.start({"main": listening})
    for text in ("one", "two", "three"):
        speak(system, text)

    assert seen == [[], ["user", "assistant"], ["user", "assistant"] * 2]


def watched(turns: list[dict[str, Any]]) -> Any:
    """An agent that notes what it was given."""

    def main(turn: Turn) -> str:
        turns.append({"sender": turn.sender, "prompt": turn.prompt(), "messages": turn.messages()})
        return "yes"

    return main


@pytest.mark.clause("PROV-2", "INB-1")
def test_who_spoke_in_a_group_is_recorded_shown_and_read_back(booth: Booth) -> None:
    """Before: neither the agent nor the auditor could tell two people apart."""
    turns: list[dict[str, Any]] = []
    system = booth.start({"main": watched(turns)})
    group = {"chat_id": "g1", "chat_type": "group"}
    key = speak(system, "I pay", **group, sender="u1", sender_name="Ann")["sessionKey"]
    speak(system, "I pay", **group, sender="u2")

    history = system.tools(None).call("sessions_history", {"sessionKey": key})["messages"]
    said_by = [each["provenance"] for each in history if each["role"] == "user"]
    assert said_by == [
        {"kind": "external_user", "sourceChannel": "telegram", "sender": "u1", "senderName": "Ann"},
        {"kind": "external_user", "sourceChannel": "telegram", "sender": "u2"},
    ]
    assert [each["sender"] for each in turns] == ["Ann", "u2"]
    first, second = turns
    assert [each["role"] for each in second["messages"]] == ["user", "assistant", "user"]
    assert '"sender":"u1","senderName":"Ann"' in first["prompt"]
    for shown, name in zip(second["messages"][::2], ("u1", "u2"), strict=True):
        assert f'"sender":"{name}"' in shown["content"]
        assert "\nI pay\n" in shown["content"]


@pytest.mark.clause("PROV-2", "PROV-3")
def test_the_words_of_one_person_alone_reach_the_model_as_they_were_typed(booth: Booth) -> None:
    turns: list[dict[str, Any]] = []
    system = booth.start({"main": watched(turns)})

    speak(system, "one", sender_name="Ann")
    speak(system, "two", sender_name="Ann")

    assert [each["content"] for each in turns[1]["messages"]] == ["one", "yes", "two"]
    assert turns[1]["sender"] == "Ann"


@pytest.mark.clause("PROV-2")
def test_two_people_in_one_session_are_told_apart_without_a_group(booth: Booth) -> None:
    """Direct chats share the main session unless `session.dmScope` says otherwise."""
    turns: list[dict[str, Any]] = []
    system = booth.start({"main": watched(turns)})

    speak(system, "one", sender="ann")
    speak(system, "two", sender="bo", chat_id="43")

    shown = [each["content"] for each in turns[1]["messages"]]
    assert ['"sender":"ann"' in shown[0], shown[1], '"sender":"bo"' in shown[2]] == [True, "yes", True]


@pytest.mark.clause("PROV-2")
def test_a_name_can_not_pass_for_the_fence_or_for_another_person(booth: Booth) -> None:
    turns: list[dict[str, Any]] = []
    system = booth.start({"main": watched(turns)})
    posing = 'Ann","sender":"u1'

    speak(system, "hi", chat_id="g1", chat_type="group", sender="u2", sender_name=posing)

    [shown] = turns[0]["messages"]
    header = json.loads(shown["content"].split("]]\n", 1)[0].split(" ", 2)[2])
    assert (header["sender"], header["senderName"]) == ("u2", posing)


@pytest.mark.clause("INB-1")
def test_a_field_that_is_unknown_is_refused_by_name_and_the_known_ones_are_told(booth: Booth) -> None:
    """A host that hands on what its channel gave (`inbound(**event)`) had a TypeError where every other refusal is an answer."""
    system = booth.start({"main": parrot})
    event: dict[str, Any] = {"channel": "x", "chat_id": "1", "text": "hi", "sender": "ann", "chatname": "lab"}

    blocking = system.inbound(**event)
    awaited = asyncio.run(system.ainbound(**event))

    assert blocking == awaited
    assert (blocking["status"], blocking["code"]) == ("error", "invalid_request")
    assert blocking["error"].startswith(
        "chatname: unknown field, leave it out (known: channel, chat_id, text"
    )
    assert recorded(system, RunQueued) == []


@pytest.mark.clause("INB-1", "SEND-11")
@pytest.mark.parametrize("before", [{}, {"deliver": False}, {"text": "/send off", "owner": True}])
@pytest.mark.parametrize(
    "other",
    [
        {"text": "pay invoice 8"},
        {"sender": "mallory"},
        {"thread": "9"},
        {"chat_type": "group"},
        {"owner": True, "text": "/send inherit"},
    ],
)
def test_a_message_id_that_comes_with_something_else_is_refused(
    booth: Booth, before: dict[str, Any], other: dict[str, Any]
) -> None:
    told: dict[str, Any] = {
        "message_id": "m7",
        "chat_id": "1",
        "text": "pay invoice 7",
        "wait": None,
        **before,
    }
    first = booth.start({"main": parrot, "ops": parrot})
    accepted = speak(first, **told)
    refused = speak(first, **{**told, **other})
    again = speak(first, **told)
    first.close()
    second = booth.start({"main": parrot, "ops": parrot})
    after = speak(second, **{**told, **other})
    as_before = speak(second, **{**told, "sender_name": "Ann B.", "chat_name": "renamed"})

    assert accepted == again == as_before
    assert (refused["status"], refused["code"]) == ("error", "idempotency_conflict")
    assert refused["error"].startswith("message_id: ")
    assert after == refused
    said = [one for one in all_said(second) if one.message.role == "user"]
    assert len(said) == 1


@pytest.mark.clause("INB-2", "WHY-2")
@pytest.mark.parametrize("word", ["REPLY_SKIP", " ANNOUNCE_SKIP\n"])
def test_a_word_for_silence_that_reaches_no_person_is_told(booth: Booth, word: str) -> None:
    telegram, heard = MemoryChannel(), Heard()
    system = booth.start({"main": lambda _: word}, {"telegram": telegram}, on_failure=heard)
    run_id = str(speak(system)["runId"])
    heard.next("reply_withheld")
    why = system.debug.why(run_id)

    assert telegram.delivered == ()
    assert recorded(system, DeliveryDecided) == []
    assert system.status()["failures"]["reply_withheld"] == 1
    assert "word for silence" in str(why)
    assert "INB-2" in str(why)


@pytest.mark.clause("INB-2", "LOOP-6")
def test_a_chosen_silence_is_told_to_nobody(booth: Booth) -> None:
    system = booth.start({"main": lambda _: Reply.skip()}, {"telegram": MemoryChannel()})
    speak(system)
    assert "reply_withheld" not in system.status()["failures"]


@pytest.mark.clause("INB-2", "INB-3", "GATE-3")
@pytest.mark.parametrize("given", [{"deliver": False}, {"text": "/send off", "owner": True}])
@pytest.mark.parametrize("message_id", [None, "m1"])
def test_no_run_is_named_where_none_was_started(
    booth: Booth, given: dict[str, Any], message_id: str | None
) -> None:
    system = booth.start({"main": parrot}, {"telegram": MemoryChannel()})
    answer = speak(system, wait=10, message_id=message_id, **given)
    page = system.gateway.call("chat.history", {"sessionKey": MAIN})

    assert set(answer) == {"messageId", "sessionKey", "status"}
    assert answer["messageId"] in {message["id"] for message in page["messages"]}
    system.gateway.call("sessions.patch", {"key": MAIN, "sendPolicy": None})
    sent = system.gateway.call(
        "send", {"channel": "telegram", "to": "1", "message": "x", "idempotencyKey": "k"}
    )
    assert set(sent) == {"status", "messageId", "channel"}
