"""Tools of an agent's own: what a model is told of a function, how its arguments are checked, what stands on record."""

import asyncio
import enum
import inspect
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, get_type_hints

import msgspec
import pytest

from intersession import SessionSystem, Turn, openai_agent, own_tool
from intersession_actors.outside.agents.own_tools.functions import function_tool
from intersession_actors.outside.agents.recorded import RecordedAgent
from intersession_actors.outside.agents.recording import Recording
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ToolCallHeld, message_in, text_of
from support.endpoint import Endpoint, Said, an_endpoint, calling
from support.history import check_sealed
from support.running import WAIT, Booth, Gate, all_said


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Address:
    street: str
    floor: int = 0


class Contact(TypedDict, total=False):
    mail: str


class Loop(msgspec.Struct):
    inner: "Loop | None" = None


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with an_endpoint() as served:
        yield served


def agent_on(endpoint: Endpoint, *tools: Any, **options: Any) -> Any:
    return openai_agent(model="asked", base_url=endpoint.url, api_key="none", tools=tools, **options)


def said(system: SessionSystem, text: str = "Is order 7 paid?") -> JsonObject:
    return {**system.inbound(channel="telegram", chat_id="42", sender="ann", text=text, wait=WAIT)}


def transcript(system: SessionSystem) -> list[JsonObject]:
    history = system.tools().call("sessions_history", {"sessionKey": "main", "includeTools": True})
    messages: list[JsonObject] = history["messages"]
    return messages


def will_call(endpoint: Endpoint, *calls: Said, then: str = "Done.") -> None:
    """Let the model make these calls in its first round, all at once, and answer with a text in its second."""
    answered = {"content": then}
    asked: Said = {
        "content": None,
        "tool_calls": [{**call["tool_calls"][0], "id": f"c{number}"} for number, call in enumerate(calls)],
    }
    endpoint.say = lambda request: answered if request["messages"][-1]["role"] == "tool" else asked


def told(endpoint: Endpoint) -> list[str]:
    """Return what the model was told of its calls."""
    return [item["content"] for item in endpoint.taken[-1]["messages"] if item["role"] == "tool"]


@pytest.mark.clause("TOOL-1")
def test_a_model_is_told_of_a_function_what_its_signature_and_docstring_say() -> None:
    async def book(
        turn: Turn,
        to: Address,
        size: Size,
        way: Literal["air", "road"] = "road",
        notes: Annotated[list[str] | None, "What else is to be said."] = None,
        *,
        contact: Contact | None = None,
        prices: dict[str, float] = {},  # noqa: B006 - as somebody writes it
    ) -> str:
        """Book a parcel.

        It is fetched the same day.

        Args:
            to: Where it goes,
                house and floor.
            size (Size): How large it is.
        """
        del turn, to, size, way, notes, contact, prices
        return "booked"

    tool = function_tool(book)

    assert (tool.name, tool.description) == ("book", "Book a parcel.\n\nIt is fetched the same day.")
    properties = tool.schema["properties"]
    assert set(properties) == {"to", "size", "way", "notes", "contact", "prices"}
    assert tool.schema["required"] == ["to", "size"]
    assert tool.schema["additionalProperties"] is False
    assert properties["to"]["description"] == "Where it goes, house and floor."
    assert properties["to"]["properties"]["street"] == {"type": "string"}
    assert properties["size"] == {"description": "How large it is.", "enum": ["l", "s"], "title": "Size"}
    assert properties["way"] == {"enum": ["air", "road"], "default": "road"}
    assert properties["notes"]["description"] == "What else is to be said."
    assert "$ref" not in json.dumps(tool.schema)


def test_a_docstring_in_rest_is_read_as_well() -> None:
    def add(first: int, second: int = 2) -> int:
        """Add numbers.

        :param first: The one,
            and no other.
        :param int second: The other.
        :returns: Their sum.
        """
        return first + second

    tool = function_tool(add)

    assert tool.description == "Add numbers."
    assert tool.schema["properties"]["first"]["description"] == "The one, and no other."
    assert tool.schema["properties"]["second"] == {
        "type": "integer",
        "description": "The other.",
        "default": 2,
    }


def _takes_all(*everything: str) -> None:
    del everything


def _takes_object(thing: threading.Thread) -> None:
    del thing


def _takes_loop(loop: Loop) -> None:
    del loop


def sessions_list() -> None:
    """Do something else."""


def look_up(order: int) -> str:
    """Look an order up."""
    return f"Order {order} is paid."


@pytest.mark.clause("TOOL-1")
@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ([_takes_all], r"tools\[0\]: _takes_all: parameter \*everything.* can't be given by name"),
        ([_takes_object], r"tools\[0\]: _takes_object: parameter 'thing' has a type .* use str, int"),
        ([_takes_loop], r"tools\[0\]: _takes_loop: a parameter's type contains itself"),
        ([lambda order: order], r"tools\[0\]: '<lambda>' can't be the name of a tool"),
        ([7], r"tools\[0\]: 7 is no tool"),
        ([look_up, look_up], r"tools\[1\]: there is another tool 'look_up'"),
        ([sessions_list], r"tools\[0\]: 'sessions_list' is a tool of the system"),
        ({"look_up": look_up}, r"tools: is dict, give a list"),
    ],
    ids=("all", "object", "loop", "lambda", "number", "twice", "of the system", "mapping"),
)
def test_what_can_not_be_a_tool_is_refused_when_the_agent_is_made(tools: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        openai_agent(model="asked", api_key="none", tools=tools)


@pytest.mark.clause("TOOL-2")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_is_called_and_its_call_and_result_are_recorded(
    endpoint: Endpoint, log_url: str, is_async: bool
) -> None:
    async def look_up_slowly(order: int) -> str:
        await asyncio.sleep(0)
        return look_up(order)

    tool: Any = look_up_slowly if is_async else look_up
    will_call(endpoint, calling(tool.__name__, {"order": 7}))

    with SessionSystem(log_url, agents={"main": agent_on(endpoint, tool)}) as system:
        assert said(system)["reply"] == "Done."
        _, call, result, _ = transcript(system)

    assert tool.__name__ in [one["function"]["name"] for one in endpoint.taken[0]["tools"]]
    assert told(endpoint) == ["Order 7 is paid."]
    [block] = call["content"]
    assert (block["name"], block["arguments"]) == (tool.__name__, {"order": 7})
    assert (result["toolCallId"], result["toolName"]) == (block["id"], tool.__name__)
    assert result["content"] == [{"type": "text", "text": "Order 7 is paid."}]
    assert not result["isError"]


def _raises(order: int) -> str:
    raise LookupError(f"no order {order}")


def _leaves() -> str:
    raise SystemExit(3)


@pytest.mark.clause("TOOL-3")
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (calling("look_up", {"order": "seven"}), "Expected `int`, got `str` - at `$.order`"),
        (calling("look_up", {}), "missing required field `order`"),
        (calling("look_up", {"order": 7, "fast": True}), "unknown field `fast`"),
        (calling("look_down", {}), "there is no tool 'look_down' here, use one of look_up, _raises"),
        (calling("_raises", {"order": 7}), "LookupError: no order 7"),
        (calling("_leaves", {}), "SystemExit: 3"),
    ],
    ids=("type", "missing", "unknown field", "unknown tool", "raises", "leaves"),
)
def test_a_call_that_fails_is_an_error_that_the_model_is_told_and_that_is_recorded(
    endpoint: Endpoint, call: Said, error: str
) -> None:
    will_call(endpoint, call)

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, look_up, _raises, _leaves)}) as system:
        assert said(system)["reply"] == "Done."
        *_, result, _ = transcript(system)

    [answer] = told(endpoint)
    assert json.loads(answer)["status"] == "error"
    assert error in json.loads(answer)["error"]
    assert "Traceback" not in answer
    assert result["isError"]


@pytest.mark.clause("TOOL-3")
@pytest.mark.parametrize("source", ["[1, 2", "[1, 2]", '"order"'])
def test_arguments_that_are_no_object_are_answered_with_an_error(endpoint: Endpoint, source: str) -> None:
    call = calling("look_up", {})
    call["tool_calls"][0]["function"]["arguments"] = source
    will_call(endpoint, call)

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, look_up)}) as system:
        said(system)

    assert "the arguments are no JSON object" in told(endpoint)[0]


@pytest.mark.clause("TOOL-3")
def test_a_long_result_is_cut_for_the_model_and_on_record_alike(endpoint: Endpoint) -> None:
    def read_all() -> str:
        return "x" * 100_007

    will_call(endpoint, calling("read_all", {}))
    agent = agent_on(endpoint, read_all, context_tokens=200_000)

    with SessionSystem(":memory:", agents={"main": agent}) as system:
        said(system)
        messages = map(message_in, (recorded.event for recorded in system.log.all()))
        [result] = [one for one in messages if one is not None and one.role == "toolResult"]

    [answer] = told(endpoint)
    assert answer.endswith("xx\n… [7 characters cut; ask for less]")
    assert text_of(result) == answer


@pytest.mark.clause("TOOL-2")
def test_calls_that_are_made_together_run_side_by_side_and_are_one_message(endpoint: Endpoint) -> None:
    both = threading.Barrier(2, timeout=WAIT)

    def meet(name: str) -> str:
        both.wait()
        return f"{name} has met"

    will_call(endpoint, calling("meet", {"name": "Ann"}), calling("meet", {"name": "Bob"}))

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, meet)}) as system:
        said(system)
        said(system, "And now?")
        _, calls, *_ = transcript(system)

    assert [block["arguments"]["name"] for block in calls["content"]] == ["Ann", "Bob"]
    # The next turn shows them in the form of the API, which takes results only behind all calls of a message.
    shown = endpoint.taken[-1]["messages"]
    [asked] = [item for item in shown if item.get("tool_calls")][:1]
    assert len(asked["tool_calls"]) == 2
    assert {item["tool_call_id"] for item in shown if item["role"] == "tool"} >= {
        call["id"] for call in asked["tool_calls"]
    }


@pytest.mark.clause("TOOL-5")
def test_the_settings_decide_which_of_its_own_tools_an_agent_has(endpoint: Endpoint) -> None:
    will_call(endpoint, calling("look_up", {"order": 7}))
    config = {"tools": {"deny": ["look_*"]}}

    with SessionSystem(
        ":memory:", config=config, agents={"main": agent_on(endpoint, look_up, _raises)}
    ) as system:
        said(system)

    offered = [one["function"]["name"] for one in endpoint.taken[0]["tools"]]
    assert "_raises" in offered
    assert "look_up" not in offered
    assert "there is no tool 'look_up' here" in told(endpoint)[0]


@pytest.mark.clause("TOOL-4")
@pytest.mark.clause("SEND-13")
def test_a_second_attempt_has_the_results_of_the_first_and_says_again_by_which_id_it_calls(
    endpoint: Endpoint, booth: Booth, gate: Gate
) -> None:
    looked, paid = list[int](), list[tuple[int, str | None, bool]]()

    def look(order: int) -> str:
        """Look an order up."""
        looked.append(order)
        return f"Order {order} is open."

    def pay(turn: Turn, order: int) -> str:
        """Pay for an order."""
        paid.append((turn.attempt, turn.call_id, (turn.call_id or "") in turn.made_before))
        if turn.attempt == 1:
            gate.stop(turn)
        return f"Order {order} is paid."

    agents = {"main": agent_on(endpoint, look, pay)}
    will_call(endpoint, calling("look", {"order": 7}), calling("pay", {"order": 7}))
    first = booth.start(agents)
    run = first.inbound(channel="x", chat_id="1", sender="ann", text="pay", message_id="1")["runId"]
    gate.reached()
    for item in first.follow(0, timeout=WAIT):
        if (message := message_in(item.event)) is not None and message.role == "toolResult":
            break
    first.close(grace=0)
    gate.open()
    endpoint.taken.clear()

    second = booth.start(agents)
    answer = second.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})

    assert answer["status"] == "ok", answer
    assert looked == [7]
    [(_, call_id, _), again] = paid
    assert again == (2, call_id, True)
    assert call_id is not None
    assert told(endpoint)[-2:] == ["Order 7 is open.", "Order 7 is paid."]
    results = [
        one.message for one in all_said(second, "session:agent:main:main") if one.message.role == "toolResult"
    ]
    assert [text_of(one) for one in results] == ["Order 7 is open.", "Order 7 is paid."]


@pytest.mark.clause("TOOL-8")
def test_a_tool_of_a_framework_is_recorded_and_has_its_result_again(booth: Booth, gate: Gate) -> None:
    acted = list[tuple[int, str | None]]()

    @own_tool
    def book(turn: Turn, order: int, way: Literal["air", "road"] = "road") -> dict[str, object]:
        """Book an order."""
        acted.append((order, turn.call_id))
        if order < 0:
            raise LookupError("no such order")
        return {"order": order, "way": way}

    async def agent(turn: Turn) -> str:
        # Frameworks call tools in tasks of their own, and sync ones on threads.
        said = await asyncio.gather(book(7), book(order=-1))
        if turn.attempt == 1:
            await asyncio.to_thread(gate.stop, turn)
        return " ".join(said)

    first = booth.start({"main": agent})
    run = first.inbound(channel="x", chat_id="1", sender="ann", text="book", message_id="1")["runId"]
    gate.reached()
    first.close(grace=0)
    gate.open()
    second = booth.start({"main": agent})
    answer = second.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})

    booked, failed = '{"order":7,"way":"road"}', '{"error":"LookupError: no such order","status":"error"}'
    assert answer["reply"] == f"{booked} {failed}"
    assert sorted(order for order, _ in acted) == [-1, 7]
    messages = [one.message for one in all_said(second, "session:agent:main:main")]
    results = [(one.tool_call_id, text_of(one)) for one in messages if one.role == "toolResult"]
    assert sorted(results) == sorted((call_id, booked if order == 7 else failed) for order, call_id in acted)
    signature = inspect.signature(book)
    assert list(signature.parameters) == ["order", "way"]
    assert get_type_hints(book) == {"order": int, "way": Literal["air", "road"], "return": str}
    assert book.__doc__ == "Book an order."


async def test_a_tool_of_a_framework_needs_an_agent_that_answers() -> None:
    with pytest.raises(RuntimeError, match="look_up is a tool of an agent, and no agent is answering here"):
        await own_tool(look_up)(7)


@pytest.mark.clause("TOOL-2")
@pytest.mark.clause("FORK-7")
def test_calls_that_were_made_together_are_replayed_as_they_were_and_call_nothing(
    endpoint: Endpoint,
) -> None:
    looked = list[int]()

    def look(order: int) -> str:
        """Look an order up."""
        looked.append(order)
        return f"Order {order} is paid."

    def shape(system: SessionSystem) -> list[tuple[str, list[str], str]]:
        messages = [one.message for one in all_said(system, "session:agent:main:main")]
        blocks = [() if isinstance(one.content, str) else one.content for one in messages]
        return [
            (one.role, [type(block).__name__ for block in of_it], text_of(one))
            for one, of_it in zip(messages, blocks, strict=True)
        ]

    will_call(endpoint, calling("look", {"order": 7}), calling("look", {"order": 8}))
    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, look)}) as system:
        said(system)
        assert check_sealed(system.log.log_id, list(system.log.all())) == []
        again = RecordedAgent(Recording.of(system.log), match="meaning")
        with SessionSystem(":memory:", agents={"main": again}) as other:
            said(other)
            assert shape(other) == shape(system)
        assert ("assistant", ["ToolCallBlock", "ToolCallBlock"], "") in shape(system)

    assert sorted(looked) == [7, 8]


@pytest.mark.clause("ASK-1")
@pytest.mark.parametrize("kind", ["endpoint", "framework"])
def test_a_tool_that_a_setting_names_acts_only_once_somebody_has_released_it(
    endpoint: Endpoint, kind: str
) -> None:
    looked = list[int]()

    def look(order: int) -> str:
        """Look an order up."""
        looked.append(order)
        return f"Order {order} is paid."

    tool = own_tool(look)

    async def framework(_: Turn) -> str:
        return await tool(7)

    will_call(endpoint, calling("look", {"order": 7}))
    agent = agent_on(endpoint, look) if kind == "endpoint" else framework
    config = {"tools": {"ask": ["look"]}}
    with SessionSystem(":memory:", agents={"main": agent}, config=config) as system:
        run = system.inbound(channel="x", chat_id="1", sender="ann", text="look")["runId"]
        held = next(
            item.event for item in system.follow(0, timeout=WAIT) if isinstance(item.event, ToolCallHeld)
        )
        assert looked == []
        system.release_call(held.hold_id, arguments={"order": 8})
        answer = system.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})
        results = [
            text_of(one.message)
            for one in all_said(system, "session:agent:main:main")
            if one.message.role == "toolResult"
        ]

    assert answer["status"] == "ok"
    assert looked == [8]
    assert results == ['(operator changed the arguments to {"order":8}.)\nOrder 8 is paid.']
