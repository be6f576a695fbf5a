"""Each call leaves one receipt of what was decided (VIS-4)."""

import asyncio
import hashlib
import json
from typing import Any

import msgspec
import pytest

from intersession import SessionSystem, echo
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.receipts import filters_of, keys_digest
from intersession_actors.calls.service.resolve import claimed_session
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import AccessRecorded
from support.as_caller import called_by

MAIN = "agent:main:main"
OPS = "agent:ops:main"


def receipts(system: SessionSystem, who: str) -> list[AccessRecorded]:
    """Return what is kept of somebody's calls, once all that was put off is written."""
    system.gateway.call("sessions.patch", {"key": "main", "displayName": "so that something is written"})
    events = [item.event for item in system.log.stream(f"access:{who}")]
    return [event for event in events if isinstance(event, AccessRecorded)]


@pytest.mark.clause("VIS-4")
def test_spawns_and_agent_lists_leave_receipts_too(log_url: str) -> None:
    agents = {"main": echo(), "ops": echo()}
    with SessionSystem(log_url, agents=agents) as system:
        tools = system.tools(MAIN)
        tools.call("agents_list", {})
        spawned = tools.call("sessions_spawn", {"task": "count"})
        refused = tools.call("sessions_spawn", {"task": "count", "agentId": "ops"})
    with SessionSystem(log_url) as system:
        receipts = [item.event for item in system.log.stream(f"access:{MAIN}")]

    assert spawned["status"] == "accepted"
    assert refused["code"] == "agent_not_allowed"
    kept = [
        (event.tool, event.allowed, event.denied) for event in receipts if isinstance(event, AccessRecorded)
    ]
    assert kept == [
        ("agents_list", 0, ()),
        ("sessions_spawn", 1, ()),
        ("sessions_spawn", 0, (("ops", "agent_not_allowed"),)),
    ]


@pytest.mark.clause("VIS-4", "VIS-6")
def test_what_the_gateways_methods_showed_leaves_receipts_too(passing_url: str) -> None:
    with SessionSystem(passing_url, agents={"main": echo(), "ops": echo()}) as system:
        system.gateway.call("sessions.patch", {"key": "main", "label": "front"})
        system.gateway.call("sessions.patch", {"key": OPS, "label": "back"})
        limited = Caller.by_credential("bot", ("agent:ops:*",))
        called_by(limited, system, "sessions.list", {})
        called_by(limited, system, "chat.history", {"sessionKey": OPS})
        called_by(limited, system, "chat.history", {"sessionKey": MAIN})
        called_by(limited, system, "chat.send", {"sessionKey": MAIN, "message": "hi", "idempotencyKey": "k"})
        called_by(limited, system, "sessions.preview", {"keys": [OPS, MAIN, "nope"]})
        system.gateway.call("sessions.list", {})
        kept = receipts(system, "credential:bot")
        operators = receipts(system, "operator")

    assert [(event.tool, event.allowed, event.denied_count, event.denied) for event in kept] == [
        ("sessions.list", 1, 1, ()),
        ("chat.history", 1, 0, ()),
        ("chat.history", 0, 1, ((MAIN, "not_visible"),)),
        ("chat.send", 0, 1, ((MAIN, "not_visible"),)),
        ("sessions.preview", 1, 2, ((MAIN, "not_visible"), ("nope", "not_visible"))),
    ]
    assert {(event.requester, event.credential) for event in kept} == {(None, "bot")}
    assert kept[0].keys_digest == keys_digest([OPS])
    assert [(event.tool, event.allowed, event.credential) for event in operators] == [
        ("sessions.list", 2, None)
    ]


@pytest.mark.clause("VIS-4", "VIS-6")
async def test_a_run_beyond_a_credential_is_denied_with_a_receipt_however_one_waits_for_it(
    passing_url: str,
) -> None:
    async with SessionSystem(passing_url, agents={"main": echo(), "ops": echo()}) as system:
        run = await system.ainbound(channel="telegram", chat_id="1", sender="ann", text="hi", wait=10)
        limited = Caller.by_credential("bot", ("agent:ops:*",))
        wait = {"runId": run["runId"], "timeoutMs": 0}
        with pytest.raises(ToolRefused) as refused:
            await system.gateway.aperform("agent.wait", wait, caller=limited)
        answer = await asyncio.to_thread(called_by, limited, system, "agent.wait", wait)
        known = await system.gateway.acall("agent.wait", wait)
        kept = await asyncio.to_thread(receipts, system, "credential:bot")

    assert (refused.value.code, answer["code"]) == ("unknown_run", "unknown_run")
    assert known["status"] == "ok"
    assert [event.denied for event in kept] == [((run["runId"], "unknown_run"),)] * 2


@pytest.mark.clause("VIS-4", "VIS-6")
def test_a_session_that_is_claimed_beyond_a_credential_leaves_a_receipt(passing_url: str) -> None:
    with SessionSystem(passing_url, agents={"main": echo(), "ops": echo()}) as system:
        limited = Caller.by_credential("bot", ("agent:ops:*",))
        claims = {"main": "not_visible", "agent:ops:nobody": "not_visible", "agent::": "invalid_key"}
        for claim, code in claims.items():
            with pytest.raises(ToolRefused) as refused:
                claimed_session(
                    system.service, limited, claim, field="sessionKey", what="sessions_list", arguments={}
                )
            assert refused.value.code == code
        granted = claimed_session(
            system.service, limited, OPS, field="sessionKey", what="sessions_list", arguments={}
        )
        kept = receipts(system, "credential:bot")

    assert str(granted) == OPS
    assert [event.denied for event in kept] == [
        (("main", "not_visible"),),
        (("agent:ops:nobody", "not_visible"),),
    ]


@pytest.mark.clause("VIS-4")
def test_calls_of_a_credential_that_acts_as_a_session_name_both(passing_url: str) -> None:
    with SessionSystem(passing_url, agents={"main": echo()}) as system:
        system.tools(MAIN, credential="bot").call("sessions_list", {})
        kept = receipts(system, MAIN)

    assert [(event.requester, event.credential) for event in kept] == [(MAIN, "bot")]


@pytest.mark.clause("VIS-4")
@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (
            {"query": "a word of Ada's", "limit": 5},
            '{"limit":5,"query":{"omitted":true,"characters":15}}',
        ),
        (
            {"words": "hunter2", "kind": ["exchange"]},
            '{"kind":["exchange"],"words":{"omitted":true,"characters":7}}',
        ),
        ({"search": "ada", "agentId": "ops"}, '{"agentId":"ops","search":{"omitted":true,"characters":3}}'),
        ({"text": "said instead", "runId": "r"}, '{"runId":"r"}'),
        ({"extraSystemPrompt": "you are", "edits": [{"value": "x"}]}, "{}"),
        ({"args": "hunter2", "tool": "login"}, '{"args":{"omitted":true,"characters":7},"tool":"login"}'),
        ({"run": "r", "agents": {"ops": {"script": ["say it"]}}}, '{"run":"r"}'),
        ({"words": None, "search": 5}, '{"search":5,"words":null}'),
    ],
)
def test_what_somebody_looked_for_is_kept_by_its_size_alone(asked: dict[str, Any], kept: str) -> None:
    """The words stayed in the receipt, which nothing erases, when they had been erased where they were said."""
    assert json.loads(filters_of(asked)) == json.loads(kept)


@pytest.mark.clause("VIS-4")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((name, tool.arguments) for name, tool in TOOLS.items()),
        *((name, verb.arguments) for name, verb in VERBS.items()),
    ],
)
def test_no_field_that_words_are_looked_for_in_is_kept_whole(name: str, arguments: type) -> None:
    kinds = {field.encode_name: repr(field.type) for field in msgspec.structs.fields(arguments)}
    long = repr(msgspec.Meta(max_length=512))
    fields = [
        field
        for field, kind in kinds.items()
        if long in kind and ("words" in kind.lower() or "A part of" in kind)
    ]

    assert [field for field in fields if "hunter2" in filters_of({field: "hunter2"})] == []
    assert fields or name not in {"search", "calls", "runs", "sessions_search"}, "it has such fields"


def test_the_digest_of_a_receipt_is_that_of_the_sorted_keys_as_compact_json() -> None:
    expected = hashlib.sha256('["agent:main:main","agent:ops:é"]'.encode()).hexdigest()

    assert keys_digest(["agent:ops:é", "agent:main:main"]) == expected
    assert keys_digest(["agent:main:main"]) != expected
