"""The pieces of a streamed answer, put together to the body that the API gives without a stream (STREAM-1)."""

from collections.abc import Mapping
from typing import Any

from intersession_actors.outside.agents.dialects.dialect import is_json_object, objects_in, word_in
from intersession_events.basics.plain_json import JsonObject


class ChatChunks:
    """Chunks of a chat completion. The library puts them together, too, in a time that grows with the square of their number."""

    def __init__(self) -> None:
        self._fields: dict[str, list[str]] = {}
        """What the message says, by field: the content, a refusal, and what this endpoint has beside these."""
        self._calls: dict[int, JsonObject] = {}
        self._finish: str | None = None
        self._said: JsonObject = {}

    def take(self, chunk: Mapping[str, Any]) -> str:  # JSON of an endpoint's
        """Take a chunk in."""
        self._said |= {
            name: value for name, value in chunk.items() if name != "choices" and value is not None
        }
        choices = objects_in(chunk.get("choices"))
        if not choices:
            return ""
        self._finish = word_in(choices[0], "finish_reason") or self._finish
        delta = choices[0].get("delta")
        for name, value in delta.items() if is_json_object(delta) else ():
            if isinstance(value, str) and name != "role":
                self._fields.setdefault(name, []).append(value)
        for number, call in enumerate(objects_in(delta.get("tool_calls")) if is_json_object(delta) else ()):
            self._call(call.get("index", number), call)
        return f"{word_in(delta, 'content') or ''}{word_in(delta, 'refusal') or ''}"

    def _call(self, index: int, part: Mapping[str, Any]) -> None:  # JSON of an endpoint's
        empty: JsonObject = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(index, empty)
        self._fields.setdefault("content", [])
        call["id"] = part.get("id") or call["id"]
        call["type"] = part.get("type") or call["type"]
        for name in ("name", "arguments"):
            call["function"][name] += word_in(part.get("function"), name) or ""

    def whole(self) -> JsonObject | None:
        """Return the completion."""
        if self._fields and self._finish is None:
            return None
        message: JsonObject = {name: "".join(parts) or None for name, parts in self._fields.items()}
        message |= {"role": "assistant", "content": message.get("content")}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        choices = [{"index": 0, "message": message, "finish_reason": self._finish}] if self._fields else []
        return self._said | {"object": "chat.completion", "choices": choices}


class ResponseEvents:
    """The events of a response, whose last one has all of it."""

    def __init__(self) -> None:
        self._whole: JsonObject | None = None

    def take(self, chunk: Mapping[str, Any]) -> str:  # JSON of an endpoint's
        """Take an event in."""
        kind, response = word_in(chunk, "type"), chunk.get("response")
        if kind in {"response.completed", "response.incomplete", "response.failed"} and is_json_object(
            response
        ):
            self._whole = {**response}
        is_text = kind in {"response.output_text.delta", "response.refusal.delta"}
        return (word_in(chunk, "delta") or "") if is_text else ""

    def whole(self) -> JsonObject | None:
        """Return the response."""
        return self._whole


class MessageEvents:
    """The events of a message of Anthropic's."""

    def __init__(self) -> None:
        self._message: JsonObject = {}
        self._blocks: dict[int, JsonObject] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}
        self._ended = False

    def take(self, chunk: Mapping[str, Any]) -> str:  # JSON of an endpoint's
        """Take an event in."""
        index, delta = chunk.get("index"), chunk.get("delta")
        match word_in(chunk, "type"):
            case "message_start" if is_json_object(chunk.get("message")):
                self._message = {**chunk["message"]}
            case "content_block_start" if isinstance(index, int) and is_json_object(
                chunk.get("content_block")
            ):
                self._blocks[index] = {**chunk["content_block"]}
            case "content_block_delta" if isinstance(index, int) and is_json_object(delta):
                for name, value in delta.items():
                    if isinstance(value, str) and name != "type":
                        self._parts.setdefault((index, name), []).append(value)
                return word_in(delta, "text") or ""
            case "message_delta" if is_json_object(delta):
                self._message |= delta
                if is_json_object(chunk.get("usage")):
                    self._message["usage"] = {**(self._message.get("usage") or {}), **chunk["usage"]}
            case "message_stop":
                self._ended = True
            case _:
                pass  # a ping, and what a later version has
        return ""

    def whole(self) -> JsonObject | None:
        """Return the message. The arguments of a call stay the text in which they came."""
        if not self._ended:
            return None
        blocks = {index: {**block} for index, block in self._blocks.items()}
        for (index, name), parts in self._parts.items():
            if index in blocks:
                field = "input" if name == "partial_json" else name
                blocks[index][field] = "".join(parts)
        return {**self._message, "content": [blocks[index] for index in sorted(blocks)]}
