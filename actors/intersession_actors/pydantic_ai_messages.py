"""The fenced rendering as pydantic-ai's messages. Needs the extra `models`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)


def model_messages(rendered: Sequence[Mapping[str, Any]], at_ms: int) -> list[ModelMessage]:
    """Return an OpenAI rendering (`dialects.openai`) in pydantic-ai's form; all parts bear the same time.

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


def _said(item: Mapping[str, Any]) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = [] if item["content"] is None else [TextPart(item["content"])]
    parts += [
        ToolCallPart(
            tool_name=call["function"]["name"], args=call["function"]["arguments"], tool_call_id=call["id"]
        )
        for call in item.get("tool_calls", ())
    ]
    return parts


def _asked(item: Mapping[str, Any], tools: Mapping[str, str], at: datetime) -> ModelRequestPart:
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
