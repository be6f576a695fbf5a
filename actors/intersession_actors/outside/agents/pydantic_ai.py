"""A pydantic-ai agent as an agent of ours. Needs the extra `models`.

It gets the session's transcript, fenced (PROV-3), as its history, and the system's tools beside its own. What it does
with its own tools is recorded while it does it; the system's tools record themselves.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any, cast

import msgspec
import pydantic_core
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, ReinjectSystemPrompt
from pydantic_ai.messages import (
    AgentStreamEvent,
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, infer_model
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from intersession_actors.outside.agents.result import Broke
from intersession_actors.outside.agents.turn import Reply, ToolBox, Turn, is_blank
from intersession_actors.rules.gate.texts import arguments_of
from intersession_actors.rules.gate.values import is_storable, storable, storable_value
from intersession_actors.rules.policy.windows import ModelWindow
from intersession_actors.running.failures.failure import described
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import Block, Message, TextBlock, ThinkingBlock, Usage


def pydantic_ai_agent(
    agent: Agent[Any, Any],  # of the host's own kinds: neither is looked at
    *,
    deps: Callable[[Turn], object] | None = None,
    text: Callable[..., str | None] | None = None,
    context_tokens: int | None = None,
    images: bool | None = None,
    stream: bool = False,
) -> "PydanticAiAnswers":
    """Make an agent of ours from a pydantic-ai agent; `deps` makes its dependencies for a turn, `text` renders an output.

    With `stream` the model is asked for its answer in chunks, which are shown as they come (STREAM-1).

    Raises:
        TypeError: the agent has no model, or one that can't be made, such as for want of a key.
    """
    model = agent.model
    if model is None:
        raise TypeError("this pydantic-ai Agent has no model, give it one: Agent(model, …)")
    if isinstance(model, str):
        try:
            model = infer_model(model)
        except Exception as error:
            raise TypeError(
                f"this pydantic-ai Agent's model {model!r} can't be used: {described(error)}"
            ) from error
    window = ModelWindow(model=model.model_name, tokens=context_tokens, images=images)
    return PydanticAiAnswers(agent, deps, text, window, stream=stream)


class PydanticAiAnswers:
    """Answers turns with a pydantic-ai agent."""

    def __init__(
        self,
        agent: Agent[Any, Any],  # of the host's own kinds
        deps: Callable[[Turn], object] | None,
        text: Callable[..., str | None] | None,
        model_window: ModelWindow,
        *,
        stream: bool = False,
    ) -> None:
        self._agent = agent
        self._deps = deps
        self._text = text
        self.model_window = model_window
        self._stream = stream

    async def __call__(self, turn: Turn) -> Reply | Broke:
        """Answer one turn."""
        agent, deps = self._agent, self._deps
        tools = toolset_of(turn.tools)
        result = await agent.run(
            message_history=await turn.amessages("pydantic-ai"),
            instructions=turn.context or None,
            deps=None if deps is None else deps(turn),
            toolsets=[tools],
            # With a history, pydantic-ai takes the system prompt for said; ours never has it.
            capabilities=[ReinjectSystemPrompt(), _Recording(turn, frozenset(tools.tools))],
            infer_name=False,
            event_stream_handler=partial(_shown, turn) if self._stream else None,
        )
        output = result.output
        if output is not None and not isinstance(output, str) and self._text is not None:
            output = self._text(output)
        if output is not None and not isinstance(output, str):
            return Broke(code="bad_reply", error=_no_text(turn, output))
        return _reply(output, result.response, result.usage)


async def _shown(turn: Turn, ctx: RunContext[object], events: AsyncIterable[AgentStreamEvent]) -> None:
    """Show the model's text as it comes; what it says after a tool call is on a line of its own."""
    del ctx
    async for event in events:
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ) if text:
                turn.stream(text)
            case PartEndEvent(part=TextPart(content=text), next_part_kind=str()) if text:
                turn.stream("\n")
            case _:
                pass


def _no_text(turn: Turn, output: object) -> str:
    """Describe an output that is not text, without its content: it may be a picture, or a call that waits for approval."""
    kind = type(output).__name__
    if isinstance(output, DeferredToolRequests):
        tools = ", ".join(sorted({call.tool_name for call in (*output.calls, *output.approvals)}))
        return f"agent {turn.agent_id!r} asks for {kind} ({tools}), which nobody here can answer; give it tools that need no approval"
    return (
        f"agent {turn.agent_id!r} gave an output of the type {kind}, which is no text; "
        "give pydantic_ai_agent a text=… that says it in words, or the agent an output_type of str"
    )


def toolset_of(tools: ToolBox) -> FunctionToolset[object]:
    """Return the system's tools as a pydantic-ai toolset."""
    return FunctionToolset([_tool(tools, schema["function"]) for schema in tools.schemas("openai")])


def _tool(tools: ToolBox, schema: JsonObject) -> Tool[object]:
    name: str = schema["name"]

    async def call(**arguments: object) -> JsonObject:
        answer: JsonObject = await tools.acall(name, arguments)
        return answer

    return Tool.from_schema(
        call, name=name, description=schema.get("description"), json_schema=schema["parameters"]
    )


@dataclass
class _Recording(AbstractCapability[object]):
    """Records the agent's use of its own tools, each step durable before the next."""

    turn: Turn
    of_the_system: frozenset[str]

    async def after_model_request(
        self, ctx: RunContext[object], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Record the model's text beside a tool call; its last text is the reply."""
        del ctx, request_context
        response = _spelled_out(response)
        blocks = _blocks(response)
        if blocks and any(isinstance(part, ToolCallPart) for part in response.parts):
            await off_loop(self.turn.recorder.said, blocks)
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[object],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: JsonObject,
        handler: Callable[[JsonObject], Awaitable[object]],
    ) -> object:
        """Record a call before it is made and its result when it is there."""
        del ctx, tool_def
        if call.tool_name in self.of_the_system:
            return await handler(args)
        recorder, identity, name = self.turn.recorder, call.tool_call_id, call.tool_name
        await off_loop(recorder.tool_call, identity, name, call.args_as_json_str())
        approval = await self.turn.aapprove(identity, name, call.args_as_dict(), is_new=True)
        if approval.refused is not None:
            await off_loop(recorder.tool_result, identity, name, approval.refused, is_error=True)
            return approval.refused
        edited = approval.edited_by is not None
        try:
            result = _spelled_result(await handler({**approval.arguments} if edited else args))
            result = approval.told(_text(result)) if edited else result
        except Exception as error:
            await off_loop(recorder.tool_result, identity, name, described(error), is_error=True)
            raise
        await off_loop(recorder.tool_result, identity, name, _text(result), is_error=False)
        return result


def _spelled_out(response: ModelResponse) -> ModelResponse:
    """Return what a model said with halves of surrogate pairs spelled out: no server could be told of them again."""
    return replace(response, parts=[_spelled_part(part) for part in response.parts])


def _spelled_part(part: ModelResponsePart) -> ModelResponsePart:
    match part:
        case TextPart(content=text) | ThinkingPart(content=text):
            return part if is_storable(text) else replace(part, content=storable(text))
        case ToolCallPart():
            args = arguments_of(part.args) if isinstance(part.args, str) else storable_value(part.args)
            names = {"tool_name": storable(part.tool_name), "tool_call_id": storable(part.tool_call_id)}
            return replace(part, args=args, **cast("JsonObject", names))
        case _:
            return part


def _spelled_result(result: object) -> object:
    if isinstance(result, ToolReturn):
        known = cast("ToolReturn[object]", result)
        return replace(known, return_value=_spelled_result(known.return_value))
    if isinstance(result, str):
        return storable(result)
    if not isinstance(result, dict | list):
        return result
    said = cast("JsonObject", result)
    try:
        msgspec.json.encode(said)
    except UnicodeEncodeError:
        return storable_value(said)
    except (TypeError, ValueError):
        pass  # of the host's own kinds, which pydantic-ai has a form for
    return said


def _reply(text: str | None, response: ModelResponse, usage: RunUsage) -> Reply:
    if is_blank(text) and response.finish_reason not in {None, "stop", "tool_call"}:
        raise RuntimeError(f"the model gave no text: it ended with {response.finish_reason!r}")
    cost: Decimal | None = getattr(usage, "cost", None)  # the first versions that are taken have none
    spent = Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        cost_micros=None if cost is None else round(cost * 1_000_000),
    )
    reason = "toolUse" if response.finish_reason == "tool_call" else response.finish_reason
    model = response.model_name
    thinking = [block for block in _blocks(response) if isinstance(block, ThinkingBlock)]
    messages: tuple[Message, ...] | None = None
    if thinking and text is not None:
        content: tuple[Block, ...] = (*thinking, TextBlock(text=text))
        messages = (
            Message(
                id="",
                role="assistant",
                content=content,
                timestamp=0,
                model=model,
                usage=spent,
                stop_reason=reason,
            ),
        )
    return Reply(text, usage=spent, model=model, messages=messages, stop_reason=reason)


def _blocks(response: ModelResponse) -> list[Block]:
    blocks: list[Block] = []
    for part in response.parts:
        if isinstance(part, ThinkingPart) and (part.content or part.signature):
            blocks.append(ThinkingBlock(thinking=part.content, thinking_signature=part.signature))
        elif isinstance(part, TextPart) and part.content:
            blocks.append(TextBlock(text=part.content))
    return blocks


def _text(value: object) -> str:
    """Return a tool's result as text: a string as it is, anything else as JSON."""
    if isinstance(value, ToolReturn):
        value = value.return_value
    return value if isinstance(value, str) else pydantic_core.to_json(value, fallback=repr).decode()


def model_messages(rendered: Sequence[JsonMapping], at_ms: int) -> list[ModelMessage]:
    """Return an OpenAI rendering (`dialects.openai`) in pydantic-ai's form; all parts have the same time.

    What follows one another on the same side becomes one message, as pydantic-ai makes them itself.
    """
    at = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    messages: list[ModelMessage] = []
    tools: dict[str, str] = {}
    for item in rendered:
        if item["role"] == "assistant":
            said = _said(item)
            tools.update(
                (part.tool_call_id, part.tool_name) for part in said if isinstance(part, ToolCallPart)
            )
            last = messages[-1] if messages else None
            if isinstance(last, ModelResponse):
                messages[-1] = ModelResponse(parts=[*last.parts, *said], timestamp=at)
            else:
                messages.append(ModelResponse(parts=said, timestamp=at))
        else:
            asked = _asked(item, tools, at)
            last = messages[-1] if messages else None
            if isinstance(last, ModelRequest):
                messages[-1] = ModelRequest(parts=[*last.parts, asked])
            else:
                messages.append(ModelRequest(parts=[asked]))
    return messages


def _said(item: JsonMapping) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = [] if item["content"] is None else [TextPart(item["content"])]
    parts += [
        ToolCallPart(
            tool_name=call["function"]["name"], args=call["function"]["arguments"], tool_call_id=call["id"]
        )
        for call in item.get("tool_calls", ())
    ]
    return parts


def _asked(item: JsonMapping, tools: Mapping[str, str], at: datetime) -> ModelRequestPart:
    content = item["content"]
    if item["role"] == "tool":
        identity = item["tool_call_id"]
        return ToolReturnPart(tool_name=tools[identity], content=content, tool_call_id=identity, timestamp=at)
    if isinstance(content, str):
        return UserPromptPart(content, timestamp=at)
    parts: list[UserContent] = [
        part["text"] if part["type"] == "text" else BinaryContent.from_data_uri(part["image_url"]["url"])
        for part in content
    ]
    return UserPromptPart(parts, timestamp=at)
