"""OpenAI's Responses."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from intersession_actors.outside.agents.dialects.chat import arguments_text
from intersession_actors.outside.agents.dialects.chunks import ResponseEvents
from intersession_actors.outside.agents.dialects.dialect import (
    Chunks,
    ModelAnswer,
    NoAnswer,
    NotUnderstood,
    count_in,
    is_json_object,
    objects_in,
    without_none,
    word_in,
)
from intersession_actors.outside.agents.own_tools.calling import ModelCall
from intersession_actors.outside.agents.turn import Dialect as Rendering
from intersession_actors.rules.gate.values import storable, storable_value
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Usage


class Responses:
    """`POST /responses`. The server's own conversations are not used: the session is shown whole, from the log."""

    renders: Rendering = "responses"

    def streaming(self, body: JsonObject) -> JsonObject:
        """Return the body of the same request for a stream."""
        return {**body, "stream": True}

    def chunks(self) -> Chunks:
        """Return what puts the pieces of a stream together."""
        return ResponseEvents()

    def path(self, base_url: str) -> str:
        """Return where requests go."""
        del base_url
        return "/responses"

    def request(
        self, model: str, system: str, shown: Sequence[JsonObject], tools: Sequence[JsonObject]
    ) -> JsonObject:
        """Return the body of a request without its options."""
        body: JsonObject = {"input": [*shown], "model": model}
        if system:
            body["instructions"] = system
        return {**body, "tools": tools} if tools else body

    def answer(self, body: JsonObject) -> ModelAnswer:
        """Read a response; a refusal counts as a text."""
        output = body.get("output")
        status, error = word_in(body, "status"), body.get("error")
        if status in {"failed", "cancelled"}:
            raise NoAnswer(f"it ended with {status!r}: {word_in(error, 'message') or 'no reason was given'}")
        if not isinstance(output, list):
            raise NotUnderstood("it has no output")
        items = objects_in(cast("object", output))
        parts = [
            part
            for item in items
            for part in objects_in(item.get("content"))
            if item.get("type") == "message"
        ]
        texts = [word_in(part, "text") or "" for part in parts if part.get("type") == "output_text"]
        refusals = [word_in(part, "refusal") or "" for part in parts if part.get("type") == "refusal"]
        text = "".join(texts)
        calls = [_call(item) for item in items if item.get("type") == "function_call"]
        cut_off = word_in(body.get("incomplete_details"), "reason") or "incomplete"
        reason = cut_off if status == "incomplete" else "tool_calls" if calls else "stop"
        return ModelAnswer(
            said=[storable_value(without_none(item)) for item in items],
            text=text if text.strip() else "".join(refusals) or text or None,
            calls=calls,
            usage=_usage(body.get("usage")),
            model=word_in(body, "model"),
            stop_reason=reason,
            is_whole=reason == "stop",
        )

    def results(self, calls: Sequence[ModelCall], answers: Sequence[str]) -> list[JsonObject]:
        """Return an item for each result."""
        return [
            {"type": "function_call_output", "call_id": storable(call.id), "output": answer}
            for call, answer in zip(calls, answers, strict=True)
        ]


def _call(item: Mapping[str, Any]) -> ModelCall:  # JSON of an endpoint's
    name, call_id = word_in(item, "name"), word_in(item, "call_id")
    if name is None or call_id is None:
        raise NotUnderstood("a call of the model's has no name or no call_id")
    return ModelCall(call_id, name, arguments_text(item.get("arguments")))


def _usage(given: object) -> Usage:
    details = given.get("input_tokens_details") if is_json_object(given) else None
    return Usage(
        input=count_in(given, "input_tokens"),
        output=count_in(given, "output_tokens"),
        cache_read=count_in(details, "cached_tokens"),
        total_tokens=count_in(given, "total_tokens"),
    )
