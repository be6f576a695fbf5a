"""What a session sees of the others through its tools, and the record of who looked."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, Reply, Turn, Usage
from intersession_events.facts import AccessRecorded, DeliveryDone, SendRefused
from intersession_events.log.recorded import Recorded
from support.running import QUIET, Booth, Gate, closed_exchange, recorded, speak, texts, wait_for

MAIN, OPS = "agent:main:main", "agent:ops:main"


def fine(turn: Turn) -> str:
    return f"fine, {turn.message}"


# --- sessions_list


@pytest.mark.clause("LIST-5", "LIST-7")
def test_a_row_says_what_a_session_is_and_does(booth: Booth) -> None:
    gate = Gate()

    def slow(turn: Turn) -> Reply:
        gate.stop(turn)
        return Reply("done", model="open/a", usage=Usage(input=40, output=2, cache_read=1_000))

    system = booth.start({"main": slow}, {"telegram": MemoryChannel()})
    speak(system, wait=None)
    gate.reached()
    during = system.tools().call("sessions_list")
    gate.open()
    wait_for(system, DeliveryDone)
    after = system.tools().call("sessions_list")

    (row,) = during["sessions"]
    assert (row["key"], row["kind"], row["channel"]) == ("main", "main", "telegram")
    assert row["runState"] == "running"
    assert row["abortedLastRun"] is False
    assert (row["model"], row["totalTokens"]) == (None, None)
    assert "messages" not in row
    assert "transcriptPath" not in row
    assert after["count"] == 1
    assert after["sessions"][0]["runState"] == "idle"
    assert after["sessions"][0]["systemSent"] is True
    assert (after["sessions"][0]["model"], after["sessions"][0]["totalTokens"]) == ("open/a", 1_042)
    assert after["asOf"] > during["asOf"]


@pytest.mark.clause("LIST-5")
def test_a_row_names_the_file_that_the_transcript_is_mirrored_in(booth: Booth, beside_log: Path) -> None:
    system = booth.start({"main": fine}, None, {"transcripts": {"mirror": True}})
    speak(system)
    (row,) = system.tools().call("sessions_list")["sessions"]
    system.close()

    path = Path(row["transcriptPath"])
    assert path.name == f"{row['sessionId']}.jsonl"
    assert path.parent.parent == beside_log
    assert path.parent.name.endswith(".transcripts")
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    assert [line["message"]["role"] for line in lines if line["type"] == "message"] == ["user", "assistant"]


@pytest.mark.clause("LIST-5")
def test_settings_of_a_session_are_in_its_row_and_absent_again_when_they_are_cleared(booth: Booth) -> None:
    system = booth.start({"main": fine})
    speak(system, deliver=False)
    given = {
        "label": "desk",
        "displayName": "The desk",
        "sendPolicy": "deny",
        "model": "open/b",
        "thinkingLevel": "high",
        "verboseLevel": "on",
    }
    system.gateway.call("sessions.patch", {"key": MAIN, **given})
    (row,) = system.tools().call("sessions_list")["sessions"]
    assert {name: value for name, value in row.items() if name in given} == given
    system.gateway.call("sessions.patch", {"key": MAIN, **dict.fromkeys(given)})
    (row,) = system.tools().call("sessions_list")["sessions"]
    assert not {"label", "displayName", "sendPolicy"} & set(row)
    assert (row["thinkingLevel"], row["verboseLevel"]) == (None, None)


@pytest.mark.clause("LIST-2", "LIST-3")
def test_the_list_is_sorted_by_the_last_message_and_filtered_before_the_limit(booth: Booth) -> None:
    system = booth.start({"main": fine, "ops": fine}, None, QUIET)
    for number in range(6):
        kind = "group" if number % 2 else "direct"
        chat = {"chat_type": kind, "chat_id": str(number), "agent_id": "ops" if number == 5 else "main"}
        speak(system, **chat)
    speak(system, chat_type="group", chat_id="1")

    groups = system.tools(MAIN).call("sessions_list", {"kinds": ["group"], "limit": 2})
    mine = system.tools(MAIN).call("sessions_list", {"agentId": "main"})

    assert [row["key"] for row in groups["sessions"]] == [
        "agent:main:telegram:group:1",
        "agent:ops:telegram:group:5",
    ]
    assert "nextCursor" in groups
    rest = system.tools(MAIN).call("sessions_list", {"kinds": ["group"], "cursor": groups["nextCursor"]})
    assert [row["key"] for row in rest["sessions"]] == ["agent:main:telegram:group:3"]
    assert [row["key"] for row in mine["sessions"]] == [
        "agent:main:telegram:group:1",
        "main",
        "agent:main:telegram:group:3",
    ]


@pytest.mark.clause("LIST-4", "HIST-2")
def test_the_last_messages_come_with_a_row_and_tool_results_do_not_count(booth: Booth) -> None:
    def handy(turn: Turn) -> str:
        call = turn.record_call("shell", {"command": "ls"})
        turn.record_result(call, "shell", "a b c")
        return "three files"

    system = booth.start({"main": handy})
    speak(system, "how many?")

    (row,) = system.tools().call("sessions_list", {"messageLimit": 2})["sessions"]

    assert [message["role"] for message in row["messages"]] == ["assistant", "assistant"]
    assert row["messages"][-1]["content"] == [{"type": "text", "text": "three files"}]


@pytest.mark.clause("LIST-8")
def test_the_list_as_it_stood(booth: Booth) -> None:
    system = booth.start({"main": fine})
    speak(system)
    then = system.log.head()
    speak(system, chat_type="group", chat_id="-1")

    assert system.tools().call("sessions_list", {"asOf": then})["count"] == 1
    assert system.tools().call("sessions_list")["count"] == 2


# --- sessions_history


@pytest.mark.clause("HIST-6")
def test_absent_and_invisible_are_the_same_bytes(booth: Booth) -> None:
    tree = {"tools": {"sessions": {"visibility": "tree"}}}
    system = booth.start({"main": fine}, None, QUIET, tree)
    speak(system, chat_type="group", chat_id="-1")
    tools = system.tools(MAIN)

    for name in ("sessions_history", "sessions_send"):
        there = tools.call(name, {"sessionKey": "agent:main:telegram:group:-1", **_message(name)})
        absent = tools.call(name, {"sessionKey": "agent:main:telegram:group:-2", **_message(name)})
        assert str(there) == str(absent).replace("group:-2", "group:-1")
        assert there["code"] == "not_visible"
        by_id = system.tools().call("sessions_list")["sessions"][0]["sessionId"]
        unseen = tools.call(name, {"sessionKey": by_id, **_message(name)})
        nobody = tools.call(name, {"sessionKey": by_id[:-4] + "0000", **_message(name)})
        assert str(unseen) == str(nobody).replace(by_id[:-4] + "0000", by_id)


def _message(name: str) -> dict[str, str]:
    return {"message": "x"} if name == "sessions_send" else {}


@pytest.mark.clause("HIST-7", "GATE-2", "KEY-5")
def test_an_earlier_generation_is_read_by_its_id_and_nothing_else(booth: Booth) -> None:
    system = booth.start({"main": fine, "ops": fine}, None, QUIET)
    speak(system, "before")
    old = system.tools().call("sessions_list")["sessions"][0]["sessionId"]
    reset = system.gateway.call("sessions.reset", {"key": MAIN})
    speak(system, "after")

    by_id = system.tools(OPS).call("sessions_history", {"sessionKey": old})
    by_key = system.tools(OPS).call("sessions_history", {"sessionKey": MAIN})
    sent = system.tools(OPS).call("sessions_send", {"sessionKey": old, "message": "x"})

    assert reset["ok"] is True
    assert texts(by_id) == [("user", "before"), ("assistant", "fine, before")]
    assert texts(by_key) == [("user", "after"), ("assistant", "fine, after")]
    assert sent["code"] == "old_generation"


@pytest.mark.clause("HIST-7")
def test_what_was_deleted_is_out_of_the_list_and_still_read_by_its_id(booth: Booth) -> None:
    system = booth.start({"main": fine})
    key = speak(system, chat_type="group", chat_id="-1")["sessionKey"]
    session_id = system.tools().call("sessions_list")["sessions"][0]["sessionId"]
    system.gateway.call("sessions.delete", {"key": key})

    assert system.tools().call("sessions_list")["sessions"] == []
    assert system.tools(MAIN).call("sessions_history", {"sessionKey": key})["code"] == "not_visible"
    assert len(system.tools(MAIN).call("sessions_history", {"sessionKey": session_id})["messages"]) == 2
    again = speak(system, "hello again", chat_type="group", chat_id="-1")
    history = system.tools(MAIN).call("sessions_history", {"sessionKey": again["sessionKey"]})
    assert texts(history) == [("user", "hello again"), ("assistant", "fine, hello again")]


# --- secrets

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n-----END PRIVATE KEY-----"
SECRETS = {
    "an assignment": ("export API_KEY=hunter2secretvalue99", "hunter2secretvalue99"),
    "a JSON field": ('{"password": "correct-horse-battery"}', "correct-horse-battery"),
    "a flag": ("deploy --token s3cr3t-flag-value-1234", "s3cr3t-flag-value-1234"),
    "a bearer header": ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
    "a PEM block": (PEM, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"),
    "an OpenAI key": ("use sk-proj-0123456789abcdefghijABCDEFGHIJ", "sk-proj-0123456789abcdefghijABCDEFGHIJ"),
    "a GitHub token": (
        "ghp_0123456789abcdefghijABCDEFGHIJ456789",
        "ghp_0123456789abcdefghijABCDEFGHIJ456789",
    ),
    "a Telegram token": ("123456789:AAExampleExampleExampleExample", "AAExampleExampleExampleExample"),
    "a web token": ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl", "eyJzdWIiOiIxMjM0.c2lnbmF0dXJl"),
    "a password in a URL": ("psql postgresql://app:pa55-of-the-app@db/x", "pa55-of-the-app"),
    "an AWS key": ("aws AKIA0123456789ABCDEF", "AKIA0123456789ABCDEF"),
    "a Google key": ("AIza0123456789abcdefghijABCDEFGHIJ", "AIza0123456789abcdefghijABCDEFGHIJ"),
    "a Stripe key": ("rk_live_0123456789abcdef", "rk_live_0123456789abcdef"),
    "a Slack token": ("xoxb-123456789012-abcdefABCDEF0123456789", "xoxb-123456789012-abcdefABCDEF0123456789"),
}


@pytest.mark.clause("HIST-4", "HIST-5", "X11")
@pytest.mark.parametrize("kind", sorted(SECRETS))
def test_a_secret_is_hidden_from_others_wherever_in_a_tool_call_it_lies(booth: Booth, kind: str) -> None:
    text, secret = SECRETS[kind]

    def careless(turn: Turn) -> str:
        nested = {"steps": [{"run": {"command": ["sh", "-c", text]}}], "env": {"note": [text]}}
        call = turn.record_call("shell", nested)
        turn.record_result(call, "shell", f"ran it: {text}")
        turn.tools.call("sessions_send", {"sessionKey": OPS, "message": f"look: {text}", "timeoutSeconds": 0})
        return f"I used {text}"

    system = booth.start({"main": careless, "ops": fine}, None, QUIET)
    speak(system, f"please use {text}")
    request = {"sessionKey": MAIN, "includeTools": True}

    others = system.tools(OPS).call("sessions_history", request)
    own = system.tools(MAIN).call("sessions_history", request)
    listed = system.tools(OPS).call("sessions_list", {"messageLimit": 20})
    operator = system.gateway.call("chat.history", {"sessionKey": MAIN})

    assert len(others["messages"]) == 6
    assert others["contentRedacted"] is True
    assert secret not in str(others)
    main_row = next(row for row in listed["sessions"] if row["key"] == MAIN)
    assert secret not in str(main_row["messages"])
    for message in others["messages"][:1] + others["messages"][-1:]:
        assert secret not in str(message)
    assert own["contentRedacted"] is False
    for uncut in (own, operator):
        calls = [
            block for message in uncut["messages"] for block in message["content"] if "arguments" in block
        ]
        assert calls[0]["arguments"]["steps"][0]["run"]["command"][2] == text, "the log keeps what was said"


@pytest.mark.clause("HIST-5", "X11")
def test_a_secret_under_a_telling_name_is_hidden_however_it_looks(booth: Booth) -> None:
    def careless(turn: Turn) -> str:
        turn.record_call("http", {"headers": [{"x-api-key": "plain"}], "auth": {"client_secret": ["plain"]}})
        return "done"

    system = booth.start({"main": careless, "ops": fine})
    speak(system)

    history = system.tools(OPS).call("sessions_history", {"sessionKey": MAIN})

    (call,) = history["messages"][1]["content"]
    assert call["arguments"] == {"headers": [{"x-api-key": "***"}], "auth": {"client_secret": ["***"]}}


# --- receipts


def receipts(system: Any) -> list[AccessRecorded]:
    return recorded(system, AccessRecorded)


@pytest.mark.clause("VIS-4")
def test_each_call_leaves_one_receipt_of_what_was_decided(booth: Booth) -> None:
    tree = {"tools": {"sessions": {"visibility": "tree"}}}
    system = booth.start({"main": fine}, None, QUIET, tree)
    speak(system)
    speak(system, chat_type="group", chat_id="-1")
    tools = system.tools(MAIN)

    listed = tools.call("sessions_list", {"kinds": ["main", "group"]})
    tools.call("sessions_history", {"sessionKey": "main"})
    tools.call("sessions_history", {"sessionKey": "agent:main:telegram:group:-1"})
    tools.call("sessions_send", {"sessionKey": "agent:other:main", "message": "psst"})
    system.tools().call("sessions_list")

    wait_for(system, AccessRecorded, lambda event: event.requester is None)
    listing, reading, peeking, sending, operating = receipts(system)
    assert (listing.requester, listing.tool, listing.allowed, listing.denied_count) == (
        MAIN,
        "sessions_list",
        1,
        1,
    )
    assert listing.filters == '{"kinds":["main","group"]}'
    assert listing.keys_digest == reading.keys_digest
    assert peeking.denied == (("agent:main:telegram:group:-1", "not_visible"),)
    assert sending.denied == (("agent:other:main", "forbidden"),)
    assert "psst" not in sending.filters
    assert (operating.requester, operating.allowed) == (None, 2)
    receipt = next(item for item in system.log.all() if isinstance(item.event, AccessRecorded))
    assert receipt.stream == f"access:{MAIN}"
    assert receipt.position > listed["asOf"], "the answer's position excludes its own receipt"


@pytest.mark.clause("VIS-4")
@pytest.mark.parametrize(("level", "tools"), [("denied", ["sessions_history"]), ("off", [])])
def test_less_is_recorded_where_less_is_asked_for(booth: Booth, level: str, tools: list[str]) -> None:
    system = booth.start({"main": fine}, None, {"audit": {"access": level}})
    speak(system)

    system.tools(MAIN).call("sessions_list")
    system.tools(MAIN).call("sessions_history", {"sessionKey": "agent:main:nothing"})
    speak(system, "a barrier: what was appended before it is in the log")

    assert [event.tool for event in receipts(system)] == tools


@pytest.mark.clause("VIS-4")
def test_receipts_stay_out_of_lists_and_times(booth: Booth) -> None:
    system = booth.start({"main": fine})
    speak(system)
    before = system.tools(MAIN).call("sessions_list")["sessions"]

    for _ in range(5):
        system.tools(MAIN).call("sessions_history", {"sessionKey": "main"})
    wait_for(system, AccessRecorded, lambda event: event.tool == "sessions_history")

    assert system.tools(MAIN).call("sessions_list")["sessions"] == before


@pytest.mark.clause("VIS-4", "LOOP-5", "SEND-10")
def test_a_refused_cycle_is_on_record(booth: Booth) -> None:
    def back(turn: Turn) -> str:
        return str(
            turn.tools.call("sessions_send", {"sessionKey": "agent:a:main", "message": "and you?"})["code"]
        )

    def there(turn: Turn) -> str:
        return str(turn.tools.call("sessions_send", {"sessionKey": "agent:b:main", "message": "?"})["reply"])

    system = booth.start({"a": there, "b": back}, None, QUIET)

    answer = system.tools().call("sessions_send", {"sessionKey": "agent:a:main", "message": "begin"})

    assert answer["reply"] == "cycle"
    refused = wait_for(system, SendRefused)
    assert (refused.requester, refused.target, refused.code) == ("agent:b:main", "agent:a:main", "cycle")
    assert refused.chain == ("agent:a:main", "agent:b:main", "agent:a:main")


@pytest.mark.clause("VIS-4", "PROV-2")
def test_everything_of_one_exchange_carries_its_root(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": fine, "ops": fine}, {"telegram": telegram})
    speak(system, agent_id="ops", deliver=False)
    start = system.log.head()
    run_id = system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "x"})["runId"]
    closed_exchange(system, run_id)

    def is_of_it(item: Recorded) -> bool:
        return not item.stream.startswith("access:") and item.topic != "session_opened.1"

    correlations = {item.correlation for item in system.log.all(after=start) if is_of_it(item)}
    assert correlations == {run_id}


@pytest.mark.clause("HIST-3")
def test_three_messages_to_a_busy_session_read_as_question_and_answer(booth: Booth) -> None:
    """At every door that shows a transcript, as it stands and as it stood."""
    gate = Gate()

    def slow(turn: Turn) -> str:
        if turn.message == "Q0":
            gate.stop(turn)
        return turn.message.replace("Q", "A")

    system = booth.start({"main": slow}, None, QUIET)
    runs = [speak(system, "Q0", wait=None)["runId"]]
    gate.reached()
    runs += [speak(system, text, wait=None)["runId"] for text in ("Q1", "Q2")]
    busy = system.log.head()
    gate.open()
    for run_id in runs:
        system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})

    def shown(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [
            (
                message["content"] if isinstance(message["content"], str) else message["content"][0]["text"],
                message["runId"],
            )
            for message in messages
        ]

    told = [(f"{word}{number}", runs[number]) for number in range(3) for word in "QA"]
    tools, history = system.tools(None), {"sessionKey": MAIN}
    assert shown(tools.call("sessions_history", history)["messages"]) == told
    assert shown(system.gateway.call("chat.history", history)["messages"]) == told
    assert shown(tools.call("sessions_list", {"messageLimit": 6})["sessions"][0]["messages"]) == told
    assert [
        text for text, _ in shown(tools.call("sessions_history", {**history, "asOf": busy})["messages"])
    ] == [
        "Q0",
        "Q1",
        "Q2",
    ]
    last = tools.call("sessions_history", {**history, "limit": 4})
    first = tools.call("sessions_history", {**history, "limit": 4, "before": last["before"]})
    assert shown(first["messages"] + last["messages"]) == told
