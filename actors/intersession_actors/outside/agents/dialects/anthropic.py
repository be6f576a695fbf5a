"""Anthropic's Messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from intersession_actors.outside.agents.dialects.chat import arguments_text
from intersession_actors.outside.agents.dialects.chunks import MessageEvents
from intersession_actors.outside.agents.dialects.dialect import (
    Chunks,
    ModelAnswer,
    NotUnderstood,
    count_in,
    objects_in,
    word_in,
)
from intersession_actors.outside.agents.own_tools.calling import ModelCall
from intersession_actors.outside.agents.turn import Dialect as Rendering
from intersession_actors.rules.gate.values import storable, storable_value
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Usage

VERSION: Final = "2023-06-01"
MOST_TOKENS: Final = 8_192
"""The most tokens of an answer where nobody says another number: the API asks for one."""

_SAID_ALL: Final = frozenset({"end_turn", "stop_sequence", None})


class AnthropicMessages:
    """`POST /v1/messages`."""

    renders: Rendering = "anthropic"

    def streaming(self, body: JsonObject) -> JsonObject:
        """Return the body of the same request for a stream."""
        return {**body, "stream": True}

    def chunks(self) -> Chunks:
        """Return what puts the pieces of a stream together."""
        return MessageEvents()

    def path(self, base_url: str) -> str:
        """Return where requests go; an address may be given with the version or without."""
        return "/messages" if base_url.rstrip("/").endswith("/v1") else "/v1/messages"

    def request(
        self, model: str, system: str, shown: Sequence[JsonObject], tools: Sequence[JsonObject]
    ) -> JsonObject:
        """Return the body of a request without its options."""
        body: JsonObject = {"messages": [*shown], "model": model, "max_tokens": MOST_TOKENS}
        if system:
            body["system"] = system
        return {**body, "tools": tools} if tools else body

    def answer(self, body: JsonObject) -> ModelAnswer:
        """Read a message."""
        if not isinstance(body.get("content"), list):
            raise NotUnderstood("it has no content")
        blocks = objects_in(body["content"])
        reason = word_in(body, "stop_reason")
        text = "".join(word_in(block, "text") or "" for block in blocks if block.get("type") == "text")
        return ModelAnswer(
            said=[storable_value({"role": "assistant", "content": blocks})],
            text=text or None,
            calls=[_call(block) for block in blocks if block.get("type") == "tool_use"],
            usage=_usage(body.get("usage")),
            model=word_in(body, "model"),
            stop_reason=reason,
            is_whole=reason in _SAID_ALL,
        )

    def results(self, calls: Sequence[ModelCall], answers: Sequence[str]) -> list[JsonObject]:
        """Return one message with all results, as the API asks."""
        content = [
            {"type": "tool_result", "tool_use_id": storable(call.id), "content": answer}
            for call, answer in zip(calls, answers, strict=True)
        ]
        return [{"role": "user", "content": content}]


def _call(block: Mapping[str, Any]) -> ModelCall:  # JSON of an endpoint's
    name, call_id = word_in(block, "name"), word_in(block, "id")
    if name is None or call_id is None:
        raise NotUnderstood("a call of the model's has no name or no id")
    return ModelCall(call_id, name, arguments_text(block.get("input")))


def _usage(given: object) -> Usage:
    fresh, output = count_in(given, "input_tokens"), count_in(given, "output_tokens")
    read, written = (
        count_in(given, "cache_read_input_tokens"),
        count_in(given, "cache_creation_input_tokens"),
    )
    # What was read from the cache is counted apart by this API, and as part of the input everywhere else.
    whole = fresh + read + written
    return Usage(
        input=whole, output=output, cache_read=read, cache_write=written, total_tokens=whole + output
    )
