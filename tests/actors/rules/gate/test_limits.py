"""The table of limits is what the page shows, what the schemas say, and what every door holds (findings A16, B5, B12)."""

import math
import tracemalloc
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from intersession import SessionSystem, echo
from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.receipts import filters_of
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import flaw_of, seconds_of
from intersession_events.facts import AccessRecorded
from support.as_caller import called_by
from support.pages.limits import LIMITS, PAGE, page
from support.running import WAIT as PATIENCE
from support.running import all_said, recorded

MAIN = "agent:main:main"


@pytest.fixture(scope="module")
def system() -> Iterator[SessionSystem]:
    with SessionSystem(":memory:", agents={"main": echo(), "ops": echo()}) as opened:
        opened.inbound(channel="webchat", chat_id="1", text="hi", sender="ann", wait=PATIENCE)
        yield opened


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/support/pages/limits.py --write"


def test_no_two_rows_are_about_the_same() -> None:
    assert len({limit.what for limit in LIMITS}) == len(LIMITS)
    assert all(limit.most > 0 for limit in LIMITS)


@pytest.mark.parametrize(
    ("tool", "field", "most"),
    [
        ("sessions_send", "message", 1_048_576),
        ("sessions_send", "label", 256),
        ("sessions_send", "idempotencyKey", 512),
        ("sessions_spawn", "task", 1_048_576),
        ("sessions_spawn", "label", 256),
        ("sessions_list", "search", 512),
        ("sessions_search", "query", 512),
        ("sessions_history", "sessionKey", 512),
    ],
)
def test_a_tools_schema_says_how_long_a_field_may_be(
    system: SessionSystem, tool: str, field: str, most: int
) -> None:
    schemas = {schema["title"]: schema for schema in system.tools().schemas("json-schema")}
    described = schemas[tool]["properties"][field]

    assert most in {choice.get("maxLength") for choice in described.get("anyOf", [described])}


def test_a_tools_schema_says_how_long_it_waits(system: SessionSystem) -> None:
    (send,) = [item for item in system.tools().schemas("json-schema") if item["title"] == "sessions_send"]

    assert {"minimum": 0, "maximum": 86_400}.items() <= send["properties"]["timeoutSeconds"].items()


# --- what is too long


@pytest.mark.clause("X5")
@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("sessions_list", {"search": "x" * 7_900_000}, "search"),
        ("sessions_list", {"label": "x" * 10_000}, "label"),
        ("sessions_list", {"cursor": "x" * 10_000}, "cursor"),
        ("sessions_list", {"asOf": "x" * 10_000}, "asOf"),
        ("sessions_list", {"kinds": ["main"] * 1000}, "kinds"),
        ("sessions_history", {"sessionKey": "main", "before": "x" * 10_000}, "before"),
        ("sessions_send", {"agentId": "ops", "message": "x" * (1_048_576 + 1)}, "message"),
        (
            "sessions_send",
            {"agentId": "ops", "message": "x", "idempotencyKey": "x" * 7_000_000},
            "idempotencyKey",
        ),
        ("sessions_send", {"label": "x" * 1_000_000, "message": "x"}, "label"),
        ("sessions_spawn", {"task": "x", "label": "x" * 1_000_000}, "label"),
        ("sessions_spawn", {"task": "x", "label": "a\0b"}, "label"),
        ("sessions_spawn", {"task": "x", "model": "x" * 10_000}, "model"),
        ("sessions_spawn", {"task": "x", "thinking": "x" * 10_000}, "thinking"),
    ],
)
def test_a_field_over_its_limit_is_refused_by_name_and_nothing_is_recorded(
    system: SessionSystem, tool: str, arguments: dict[str, Any], field: str
) -> None:
    head = system.log.head()
    answer = system.tools(MAIN).call(tool, arguments)

    assert (answer["status"], answer["code"]) == ("error", "invalid_request")
    assert answer["error"].startswith(f"{field}: ")
    assert len(answer["error"]) < 200
    # What rides with some later commit are receipts of calls, which have a limit of their own.
    assert {item.topic for item in system.log.all(after=head)} <= {"access_recorded.1"}


@pytest.mark.clause("X5")
@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("agent", {"message": "x" * (1_048_576 + 1), "idempotencyKey": "k"}, "message"),
        ("agent", {"message": "x", "idempotencyKey": "k" * 7_000_000}, "idempotencyKey"),
        ("agent", {"message": "x", "idempotencyKey": "k", "to": "x" * 10_000}, "to"),
        ("agent", {"message": "x", "idempotencyKey": "k", "channel": "a\nb", "to": "1"}, "channel"),
        ("sessions.list", {"search": "x" * 10_000}, "search"),
        ("sessions.patch", {"key": "main", "displayName": "x" * 10_000}, "displayName"),
        ("sessions.patch", {"key": "main", "displayName": "a\x1b[2Jb"}, "displayName"),
        ("sessions.patch", {"key": "main", "verboseLevel": "x" * 10_000}, "verboseLevel"),
        ("sessions.preview", {"keys": ["main"] * 1001}, "keys"),
        ("send", {"channel": "c", "to": "x" * 600, "message": "x", "idempotencyKey": "k"}, "to"),
        ("import.openclaw", {"directory": "/" + "x" * 5000}, "directory"),
    ],
)
def test_a_parameter_of_a_method_over_its_limit_is_refused_by_name(
    system: SessionSystem, method: str, params: dict[str, Any], field: str
) -> None:
    answer = system.gateway.call(method, params)

    assert (answer["status"], answer["code"]) == ("error", "invalid_request")
    assert answer["error"].startswith(f"{field}: ")


@pytest.mark.parametrize("field", ["channel", "chat_id", "sender", "account", "thread", "message_id", "text"])
def test_a_persons_message_over_a_limit_is_refused_by_name(system: SessionSystem, field: str) -> None:
    given: dict[str, Any] = {"channel": "webchat", "chat_id": "1", "text": "hi", "sender": "ann"}
    answer = system.inbound(**(given | {field: "x" * (1_048_576 + 1)}))

    assert (answer["status"], answer["code"]) == ("error", "invalid_request")
    assert answer["error"].startswith(f"{field}: ")


def test_the_name_of_a_chat_is_cut_and_costs_nobody_a_message(system: SessionSystem) -> None:
    answer = system.inbound(
        channel="telegram",
        chat_id="7",
        chat_type="group",
        text="hi",
        sender="a",
        chat_name="fish\n" * 500,
        wait=PATIENCE,  # other tests look at what is recorded meanwhile
    )
    rows = {row["key"]: row for row in system.tools().call("sessions_list")["sessions"]}

    assert answer["status"] == "ok"
    shown = rows[answer["sessionKey"]]["displayName"]
    assert shown.startswith("fish fish fish")
    assert (len(shown), shown[-1]) == (256, "…")


@pytest.mark.nightly
def test_a_message_of_a_gigabyte_is_refused_without_its_memory_once_more(system: SessionSystem) -> None:
    message = "x" * 10**9
    tracemalloc.start()
    try:
        answer = system.tools(MAIN).call("sessions_send", {"agentId": "ops", "message": message})
        said = system.inbound(channel="webchat", chat_id="1", text=message, sender="ann")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert answer["code"] == said["code"] == "too_large"
    assert most < 10**7


def test_all_texts_of_a_call_together_have_a_limit() -> None:
    half = "x" * (67_108_864 // 2 + 1)

    flaw = flaw_of({"a": half, "b": [half]})

    assert flaw is not None
    assert (flaw.code, flaw.field) == ("too_large", "b")


def test_so_have_its_values() -> None:
    flaw = flaw_of({"a": [[]] * 200_000})

    assert flaw is not None
    assert (flaw.code, flaw.field) == ("too_large", "a")


# --- what is nested too deep


def nested(levels: int, leaf: Any = 1) -> Any:
    value = leaf
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


@pytest.mark.clause("X5")
@pytest.mark.parametrize("levels", [65, 940, 100_000])
def test_arguments_that_are_nested_too_deep_are_refused_at_entry(system: SessionSystem, levels: int) -> None:
    value = nested(levels)

    for tool in system.tools(MAIN).names:
        answer = system.tools(MAIN).call(tool, {"deep": value})
        assert answer["code"] == "invalid_request"
        assert answer["error"].startswith("deep: nested deeper than 64 levels")
    for method in ("sessions.list", "agent", "health", "sessions.preview"):
        assert system.gateway.call(method, {"keys": value})["code"] == "invalid_request"


def test_what_is_just_as_deep_as_may_be_is_looked_at() -> None:
    assert flaw_of({"a": nested(64)}) is None
    assert flaw_of({"a": nested(64, [])}) is not None


# --- numbers


NO_TIMES: list[Any] = ["3", True, -1, 1e10, math.nan, math.inf, -math.inf, 10**400, [3], {"s": 3}, b"3"]


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("wait", NO_TIMES, ids=repr)
def test_a_wait_that_is_no_time_is_refused_before_the_message_is_accepted(
    system: SessionSystem, wait: Any
) -> None:
    before = all_said(system)  # not the head: receipts of other tests' calls may still come
    answer = system.inbound(channel="webchat", chat_id="1", text="hi", sender="ann", wait=wait)

    assert (answer["status"], answer["code"]) == ("error", "invalid_request")
    assert answer["error"].startswith("wait: ")
    assert all_said(system) == before


@pytest.mark.clause("INB-1")
async def test_so_it_is_where_it_is_awaited(system: SessionSystem) -> None:
    head = system.log.head()
    answer = await system.ainbound(channel="webchat", chat_id="1", text="hi", sender="ann", wait="3")  # type: ignore[arg-type]

    assert answer["code"] == "invalid_request"
    # Receipts of calls before this one may still come.
    assert [event for event in system.log.all(after=head) if not event.stream.startswith("access:")] == []


@pytest.mark.parametrize("given", NO_TIMES, ids=repr)
def test_no_time_is_taken_for_one_anywhere(system: SessionSystem, given: Any) -> None:
    with pytest.raises(ToolRefused, match="seconds: "):
        seconds_of("seconds", given)
    with pytest.raises(ToolRefused, match="grace: "):
        system.close(given)
    with pytest.raises(ToolRefused, match="timeout: "):
        system.follow(timeout=given if given != 1e10 else -2)
    for tool, arguments in (
        ("sessions_send", {"agentId": "ops", "message": "x", "timeoutSeconds": given}),
        ("sessions_spawn", {"task": "x", "runTimeoutSeconds": given}),
    ):
        assert system.tools(MAIN).call(tool, arguments)["code"] == "invalid_request"
    for method, params in (
        ("agent.wait", {"runId": "x", "timeoutMs": given}),
        ("agent", {"message": "x", "idempotencyKey": "k", "timeout": given}),
        ("chat.send", {"sessionKey": "main", "message": "x", "idempotencyKey": "k", "timeoutMs": given}),
    ):
        assert system.gateway.call(method, params)["code"] == "invalid_request"
    assert system.status()["position"] <= system.log.head()  # it is still open, and goes on meanwhile


# --- a host's own code


@pytest.mark.parametrize(
    ("name", "arguments"),
    [(3, {}), (None, {}), ("sessions_list", [1]), ("sessions_list", "x"), ("x" * 10**6, {})],
)
def test_what_is_no_call_of_a_tool_is_answered_as_one(
    system: SessionSystem, name: Any, arguments: Any
) -> None:
    answer = system.tools(MAIN).call(name, arguments)

    assert answer["status"] == "error"
    assert answer["code"] in {"invalid_request", "not_supported"}
    assert len(answer["error"]) < 400


@pytest.mark.parametrize("method", [3, None, ["health"], "x" * 10**6, "caf\udce9"])
def test_what_is_no_method_is_answered_as_one(system: SessionSystem, method: Any) -> None:
    answer = system.gateway.call(method)

    assert answer["code"] == "invalid_request"
    assert msgspec.json.encode(answer)
    assert len(answer["error"]) < 200 + len(", ".join(METHODS)), "it names them all"


@pytest.mark.parametrize("name", ["", "x" * 600, "a\0b", "caf\udce9", 3])
def test_a_host_names_nobody_by_what_is_no_name(system: SessionSystem, name: Any) -> None:
    for use in (
        lambda: system.tools(name=name),
        lambda: system.tools(credential=name),
        lambda: system.register_channel(name, print),
        lambda: system.abort("run", by=name),
        lambda: system.abort(name),
    ):
        with pytest.raises(ToolRefused) as refused:
            use()
        assert refused.value.code == "invalid_request"


# --- receipts


@pytest.mark.clause("VIS-4")
def test_a_receipt_keeps_a_few_kilobytes_of_what_was_asked_at_most(system: SessionSystem) -> None:
    reader = Caller.by_credential("reader", ("agent:ops:*",))
    keys = [f"agent:main:telegram:group:{'x' * 450}{number}" for number in range(900)]
    called_by(reader, system, "sessions.preview", {"keys": keys})
    system.gateway.call("sessions.patch", {"key": "main", "displayName": "so that it is written"})
    kept = [event for event in recorded(system, AccessRecorded) if event.tool == "sessions.preview"]

    assert len(kept[-1].filters) <= 4_096
    assert msgspec.json.decode(kept[-1].filters)["keys"]["omitted"] is True


@pytest.mark.parametrize(
    "arguments",
    [{"caf\udce9": 1}, {"a": "caf\udce9"}, {"a": object()}, {"a": nested(2000)}, {"a": "x" * 10**6}, {1: 2}],
)
def test_a_receipt_can_be_made_of_any_arguments(arguments: Any) -> None:
    source = filters_of(arguments)

    assert len(source) <= 4_096
    assert isinstance(msgspec.json.decode(source), dict)
