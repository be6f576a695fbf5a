"""Whatever comes in by whichever way: each answer is typed, the system serves on, and no actor is told what no log can hold."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intersession import MemoryChannel, Outbound, Reply, SessionSystem, Turn
from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.outside.channels.channels import Channel, DeliveryRefused, ThreadWanted
from intersession_actors.rules.errors import REFUSAL_CODES, ToolRefused
from intersession_events.basics.errors import IntersessionError
from intersession_events.facts import (
    ImageBlock,
    Message,
    OtherBlock,
    RunCompleted,
    RunFailed,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from support.any_log import Logs
from support.running import SEES_ALL, WAIT, merged
from support.watching import WatchingRuntime, flaw_of_command

MAIN = "agent:main:main"
GROUP = "agent:main:discord:group:42"
CONFIG = merged(
    SEES_ALL,
    {
        "session": {
            "threadBindings": {"enabled": True},
            "agentToAgent": {"maxPingPongTurns": 0, "limits": {"runs": 0, "hops": 0, "tokens": 1000}},
        },
        "channels": {"discord": {"threadBindings": {"spawnSubagentSessions": True}}},
        "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
        "agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 20}}},
    },
)


def deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


NAMED = {
    "empty": "",
    "blank": " ",
    "a lone surrogate": "caf\udce9",
    "half a pair": "\ud800",
    "a NUL": "a\0b",
    "a control sequence": "\x1b[2J",
    "a line break": "\n",
    "reversed": "\u202ereversed",
    "composed of two": "e\u0301",
    "a filler": "\u3164",
    "a word of the protocol": "REPLY_SKIP",
    "a key": MAIN,
    "another key": GROUP,
    "600 long": "x" * 600,
    "70 kilobytes": "x" * 70_000,
    "more than a message": "x" * 1_100_000,
    "300 pictures": "\U0001f600" * 300,
    "JSON, very deep": '{"a":' * 940 + "1" + "}" * 940,
}


class Odd(NamedTuple):
    """The name of a value that is too long or too deep to be shown."""

    name: str


def real(given: Any) -> Any:
    """Return what was drawn with the values in the place of their names."""
    if isinstance(given, Odd):
        return NAMED[given.name] if given.name in NAMED else ODD_NAMED[given.name]
    if isinstance(given, dict):
        return {real(name): real(value) for name, value in given.items()}
    if isinstance(given, list):
        return [real(value) for value in given]
    return given


TEXTS = st.sampled_from(sorted(NAMED)).map(Odd) | st.text(st.characters(exclude_categories=()), max_size=20)
NUMBERS = st.sampled_from(
    [
        0,
        -1,
        1,
        3,
        2**53,
        2**63,
        2**64,
        10**30,
        10**400,
        -(2**70),
        0.5,
        1e10,
        1e308,
        math.nan,
        math.inf,
        -math.inf,
    ]
)
ODD_NAMED: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "bytes": b"bytes",
    "an object of the host": object(),
    "deep": deep(70),
    "deeper": deep(940),
    "deepest": deep(20_000),
    "no items": [],
    "no fields": {},
    "a list of a list": [[]],
    "a name that is a number": {1: 2},
}


ODD = st.sampled_from(sorted(ODD_NAMED)).map(Odd)
VALUES = st.one_of(
    TEXTS, NUMBERS, ODD, st.lists(TEXTS, max_size=3), st.dictionaries(TEXTS, TEXTS, max_size=3)
)

FIELDS = sorted(
    {field.encode_name for tool in TOOLS.values() for field in msgspec.structs.fields(tool.arguments)}
)
GIVEN: dict[str, Any] = {"sessionKey": GROUP, "message": "hi", "task": "count", "idempotencyKey": None}
PARAMETERS = sorted(
    [
        "sessionKey",
        "message",
        "idempotencyKey",
        "sessionId",
        "agentId",
        "thinking",
        "deliver",
        "channel",
        "to",
        "accountId",
        "threadId",
        "replyChannel",
        "replyTo",
        "timeout",
        "timeoutMs",
        "extraSystemPrompt",
        "label",
        "busy",
        "attachments",
        "lane",
        "runId",
        "limit",
        "activeMinutes",
        "search",
        "spawnedBy",
        "keys",
        "maxChars",
        "key",
        "sendPolicy",
        "model",
        "thinkingLevel",
        "verboseLevel",
        "displayName",
        "reason",
        "directory",
        "onTaken",
    ]
)


class Wild:
    """An agent and a channel that do what the test tells them next."""

    def __init__(self) -> None:
        self.answer: Callable[[Turn], Any] = lambda _: "done"
        self.receipt: Any = None
        self.thread: Any = "t1"

    def agent(self, turn: Turn) -> Any:
        """Answer one turn."""
        return self.answer(turn) if turn.message == "be wild" else "done"

    def deliver(self, outbound: Outbound) -> Any:
        """Take a text."""
        del outbound
        if isinstance(self.receipt, Exception):
            raise self.receipt
        return self.receipt

    def open(self, wanted: ThreadWanted) -> Any:
        """Open a thread."""
        del wanted
        return self.thread


class World:
    """A system whose actors are watched."""

    def __init__(self, log_url: str) -> None:
        self.wild = Wild()
        self.runtime = WatchingRuntime()
        self.system = SessionSystem(
            log_url,
            agents={"main": self.wild.agent, "ops": self.wild.agent},
            channels={
                "discord": Channel(deliver=self.wild.deliver, threads=self.wild.open),
                "quiet": MemoryChannel(),
            },
            config=CONFIG,
            runtime=self.runtime,
        )
        self.say("hello")

    def say(self, text: str) -> Any:
        """Let a person of the group speak, and wait for the answer."""
        return self.system.inbound(
            channel="discord", chat_id="42", chat_type="group", text=text, sender="p", wait=WAIT
        )

    def serves_on(self) -> None:
        """Check that nothing was harmed."""
        assert self.runtime.seen == []
        assert self.system.status()["degraded"] == {}
        answer = self.say("are you there?")
        assert (answer["status"], answer["reply"]) == ("ok", "done")


@pytest.fixture(scope="module")
def world(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    opened = World(logs.at(tmp_path_factory.mktemp("gate")))
    yield opened
    opened.system.close(grace=0)


many = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def check_typed(answer: Any) -> None:
    assert isinstance(answer, dict)
    assert msgspec.json.encode(answer)
    if answer.get("status") in {"error", "forbidden"} and "runId" not in answer:
        assert answer["code"] in set(REFUSAL_CODES) - {"internal", "unavailable", "busy"}
        assert len(answer["error"]) < 2_000


@pytest.mark.clause("X5", "L3", "O9")
@given(
    tool=st.sampled_from(sorted(TOOLS)),
    odd=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3),
    more=st.dictionaries(TEXTS, VALUES, max_size=1),
)
@many
def test_any_arguments_of_any_tool(
    world: World, tool: str, odd: dict[str, Any], more: dict[str, Any]
) -> None:
    odd, more = real(odd), real(more)
    names = {field.encode_name for field in msgspec.structs.fields(TOOLS[tool].arguments)}
    usual = {name: value for name, value in GIVEN.items() if name in names and value is not None}
    zero = {"timeoutSeconds": 0} if "timeoutSeconds" in names else {}

    check_typed(
        world.system.tools(MAIN).call(
            tool, zero | usual | {k: v for k, v in odd.items() if k in names} | more
        )
    )
    world.serves_on()


@pytest.mark.clause("X5", "L3", "O9")
@given(
    method=st.sampled_from(sorted(METHODS)),
    odd=st.dictionaries(st.sampled_from(PARAMETERS), VALUES, max_size=4),
)
@many
def test_any_parameters_of_any_method(world: World, method: str, odd: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "idempotencyKey": "k",
        "message": "hi",
        "sessionKey": MAIN,
        "key": GROUP,
        "runId": "r",
        "timeoutMs": 0,
    }
    needed = {
        "agent": {"idempotencyKey", "message"},
        "agent.wait": {"runId", "timeoutMs"},
        "chat.send": {"idempotencyKey", "message", "sessionKey"},
    }.get(method, set())

    odd = real(odd)
    given_params: dict[str, Any] = {name: usual[name] for name in needed} | odd
    if method == "import.openclaw" and isinstance(given_params.get("directory"), str):
        given_params["directory"] = "/nowhere" + given_params["directory"][:300]
    if method in {"sessions.delete", "sessions.reset"}:
        given_params["key"] = odd.get("key", "agent:main:quiet:group:9")
        if given_params["key"] in (GROUP, MAIN, "main"):
            return
    if method == "sessions.patch" and given_params.get("key") in (GROUP, MAIN, "main"):
        given_params.pop("sendPolicy", None)
    check_typed(world.system.gateway.call(method, given_params))
    world.serves_on()


@pytest.mark.clause("X5", "L3", "INB-1")
@given(
    odd=st.dictionaries(
        st.sampled_from(
            [
                "channel",
                "chat_id",
                "text",
                "sender",
                "chat_type",
                "chat_name",
                "account",
                "thread",
                "agent_id",
                "owner",
                "message_id",
                "deliver",
                "wait",
                "sender_name",
            ]
        ),
        VALUES,
        min_size=1,
        max_size=3,
    )
)
@many
def test_any_message_of_a_person(world: World, odd: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "channel": "quiet",
        "chat_id": "1",
        "text": "hi",
        "sender": "ann",
        "deliver": False,
    }
    odd = real(odd)
    check_typed(world.system.inbound(**(usual | odd)))
    world.serves_on()


@pytest.mark.clause("GATE-5", "X5")
@given(value=VALUES)
@many
def test_any_value_for_what_a_host_calls(world: World, value: Any) -> None:
    system, value = world.system, real(value)
    for use in (
        lambda: system.abort(value),
        lambda: system.abort("no-such-run", by=value),
        lambda: system.tools(name=value).call("sessions_list", {"limit": 1}),
        lambda: system.tools(credential=value),
        lambda: system.tools(value) if value is not None else None,
        lambda: system.tools(MAIN).call(value, {}),
        lambda: system.tools(MAIN).call("sessions_list", value),
        lambda: system.gateway.call(value),
        lambda: system.gateway.call("sessions.list", value),
        lambda: system.unbind_thread(value),
        lambda: next(system.follow(value, timeout=0), None),
        lambda: system.follow(timeout=value) if value is not None else None,
        lambda: system.register_channel(value, world.wild.deliver),
    ):
        try:
            answer = use()
        except (IntersessionError, TypeError):
            continue
        if isinstance(answer, dict):
            check_typed(answer)
    world.serves_on()


# --- what agents and models give


class Later(NamedTuple):
    """What is made of what was drawn, once it is needed: `kind(**given)`."""

    kind: Any
    given: dict[str, Any]

    def __call__(self) -> Any:
        return self.kind(**{name: _made(value) for name, value in self.given.items()})


def _made(value: Any) -> Any:
    if isinstance(value, Later):
        return value()
    if isinstance(value, tuple) and not isinstance(value, Odd):
        return tuple(_made(item) for item in value)
    return real(value)


def later(kind: Any, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(given).map(lambda drawn: Later(kind, drawn))


BLOCKS = st.one_of(
    later(TextBlock, text=TEXTS, extra=st.none() | TEXTS),
    later(ThinkingBlock, thinking=TEXTS, thinking_signature=TEXTS),
    later(ToolCallBlock, id=TEXTS, name=TEXTS, arguments=TEXTS),
    later(ImageBlock, data=TEXTS),
    later(OtherBlock, json=TEXTS),
)
USAGES = later(Usage, input=NUMBERS, total_tokens=NUMBERS, cost_micros=NUMBERS)
MESSAGES = later(
    Message,
    id=TEXTS,
    role=st.just("assistant"),
    content=TEXTS | st.tuples(BLOCKS),
    timestamp=NUMBERS,
    model=TEXTS,
    tool_name=TEXTS,
    tool_call_id=TEXTS,
    usage=st.none() | USAGES,
    extra=st.none() | TEXTS,
)
REPLIES = VALUES | later(
    Reply,
    text=st.none() | TEXTS,
    usage=st.none() | USAGES | VALUES,
    model=st.none() | TEXTS | VALUES,
    messages=st.none() | st.tuples(MESSAGES) | VALUES,
    stop_reason=st.none() | TEXTS,
)


@pytest.mark.clause("L3", "X5")
@given(reply=REPLIES)
@many
def test_any_answer_of_an_agent(world: World, reply: Any) -> None:
    made = _made(reply)
    world.wild.answer = lambda _: made

    answer = world.say("be wild")

    assert answer["status"] in {"ok", "error"}
    if answer["status"] == "error":
        assert answer["error"].partition(":")[0] in {"bad_reply", "reply_too_large"}
    assert "can't be recorded" not in answer.get("error", "")
    world.serves_on()


@pytest.mark.clause("L3", "X5")
@given(word=TEXTS, value=VALUES, blocks=st.lists(BLOCKS, max_size=2))
@many
def test_anything_that_an_agent_puts_on_record(
    world: World, word: str, value: Any, blocks: list[Any]
) -> None:
    word, value, said_beside = real(word), real(value), [block() for block in blocks]

    def answer(turn: Turn) -> str:
        call = turn.record_call(word, {word: word, "value": word}, call_id=word or None)
        turn.record_result(call, word, word)
        turn.recorder.tool_call(word, word, word)
        if isinstance(value, str | int | float | list | dict) and value == value:  # noqa: PLR0124 - NaN is no result
            turn.recorder.tool_result(
                word, word, str(value)[:100_000] if not isinstance(value, dict | list) else word, True
            )
        turn.recorder.said(said_beside)
        turn.tools.call(word, {word: word})
        return "recorded"

    world.wild.answer = answer
    said = world.say("be wild")

    assert (said["status"], said.get("reply")) == ("ok", "recorded"), said
    world.serves_on()


@pytest.mark.clause("L3", "X5")
@given(error=TEXTS)
@many
def test_any_error_of_an_agent(world: World, error: str) -> None:
    def fail(_turn: Turn) -> str:
        raise ValueError(real(error))

    world.wild.answer = fail

    assert world.say("be wild")["error"].startswith("backend: ")
    world.serves_on()


# --- what channels give


@pytest.mark.clause("ANN-3", "L3")
@given(receipt=VALUES, error=st.none() | st.sampled_from([DeliveryRefused, ValueError]))
@many
def test_any_receipt_of_a_channel(world: World, receipt: Any, error: type[Exception] | None) -> None:
    world.wild.receipt = real(receipt) if error is None else error(real(receipt))
    world.say("be wild")
    world.wild.receipt = None
    world.serves_on()


@pytest.mark.clause("SPAWN-12", "L3")
@given(thread=VALUES)
@settings(many, max_examples=8)
def test_any_thread_that_a_channel_opens(world: World, thread: Any) -> None:
    world.wild.thread = real(thread)
    answer = world.system.tools(GROUP).call("sessions_spawn", {"task": "count", "thread": True})

    check_typed(answer)
    assert answer.get("code") in {None, "no_threads", "spawn_limit"}
    world.serves_on()


# --- the watch itself


def test_the_watch_would_notice(world: World) -> None:
    odd = Message(id="", role="user", content=(TextBlock(text="caf\udce9"),), timestamp=0)
    forged = RunCompleted(run_id="r", attempt=2**60)
    unreadable = Message(id="", role="user", content=(OtherBlock(json="no"),), timestamp=0)

    assert [flaw_of_command(each) is not None for each in (odd, forged, unreadable)] == [True, True, True]
    assert flaw_of_command(RunFailed(run_id="r", attempt=1, code="backend", error="e")) is None
    assert world.system.tools(MAIN).call("sessions_list")["count"]
    with pytest.raises(ToolRefused):
        world.system.tools(name="caf\udce9")
