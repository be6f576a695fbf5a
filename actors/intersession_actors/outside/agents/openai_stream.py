"""An answer of an OpenAI-compatible endpoint in chunks: shown as they come, and put together for `openai.py` (STREAM-1)."""

from typing import Any

from openai import AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from intersession_actors.outside.agents.turn import Turn
from intersession_events.basics.plain_json import JsonList, JsonObject


async def streamed(
    post: Any,  # the client's, whose overloads know neither a plain body nor an endpoint that does not stream
    body: JsonObject,
    options: Any,  # its type is not exported
    turn: Turn,
) -> object:
    """Ask for an answer in chunks, show its text, and return the whole; an endpoint that gives no chunks is understood, too.

    The response is closed when the run is over. What the model says after a tool call is shown on a line of its own.

    Raises:
        ConnectionError: the chunks ended before the answer did.
    """
    given = await post(
        "/chat/completions",
        cast_to=ChatCompletion,
        body={**body, "stream": True, "stream_options": {"include_usage": True}},
        options=options,
        stream=True,
        stream_cls=AsyncStream[ChatCompletionChunk],
    )
    async with given:
        if given.response.headers.get("content-type", "").startswith("application/json"):
            await given.response.aread()
            completion = ChatCompletion.construct(**given.response.json())
            if completion.choices and completion.choices[0].message.content:
                turn.stream(completion.choices[0].message.content)
            return completion
        answer = _Answer()
        async for chunk in given:
            text = answer.take(chunk)
            if text:
                turn.stream(text)
    if answer.fields and answer.finish is None:
        raise ConnectionError("the endpoint's stream ended before the answer did")
    if answer.calls and answer.fields.get("content"):
        turn.stream("\n")
    return answer.whole()


class _Answer:
    """The chunks put together. The library does that, too, in a time that grows with the square of their number."""

    def __init__(self) -> None:
        self.fields: dict[str, list[str]] = {}
        """What the message says, by field: the content, a refusal, and what this endpoint has beside these."""
        self.calls: dict[int, JsonObject] = {}
        self.finish: str | None = None
        self._said: JsonObject = {}

    def take(self, chunk: ChatCompletionChunk) -> str:
        """Take a chunk in; return the text that came with it."""
        given: JsonObject = chunk.to_dict()
        self._said |= {
            name: value for name, value in given.items() if name != "choices" and value is not None
        }
        choices: JsonList = given.get("choices") or []
        if not choices:
            return ""
        self.finish = self.finish if choices[0].get("finish_reason") is None else choices[0]["finish_reason"]
        delta: JsonObject = choices[0].get("delta") or {}
        for name, value in delta.items():
            if isinstance(value, str) and name != "role":
                self.fields.setdefault(name, []).append(value)
        for number, call in enumerate(delta.get("tool_calls") or []):
            self._call(call.get("index", number), call)
        return f"{delta.get('content') or ''}{delta.get('refusal') or ''}"

    def _call(self, index: int, part: JsonObject) -> None:
        empty: JsonObject = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self.calls.setdefault(index, empty)
        self.fields.setdefault("content", [])
        call["id"] = part.get("id") or call["id"]
        call["type"] = part.get("type") or call["type"]
        function: JsonObject = part.get("function") or {}
        for name in ("name", "arguments"):
            call["function"][name] += function.get(name) or ""

    def whole(self) -> ChatCompletion:
        """Return the answer as an endpoint gives it that does not stream."""
        message: JsonObject = {name: "".join(parts) or None for name, parts in self.fields.items()}
        message |= {"role": "assistant", "content": message.get("content")}
        if self.calls:
            message["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
        choices = [{"index": 0, "message": message, "finish_reason": self.finish}] if self.fields else []
        return ChatCompletion.construct(**(self._said | {"object": "chat.completion", "choices": choices}))
