"""OpenAI's chat completions, which most endpoints speak."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from intersession_actors.outside.agents.dialects.chunks import ChatChunks
from intersession_actors.outside.agents.dialects.dialect import (
    Chunks,
    ModelAnswer,
    NotUnderstood,
    count_in,
    is_json_object,
    objects_in,
    without_none,
    word_in,
)
from intersession_actors.outside.agents.own_tools.calling import ModelCall
from intersession_actors.outside.agents.turn import Dialect as Rendering
from intersession_actors.outside.agents.turn import is_blank, json_text
from intersession_actors.rules.gate.values import storable, storable_value
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Usage

_SAID_ALL: Final = frozenset({"stop", "eos", "end_turn", "", None})
"""How an answer ends in which the model has said all that it wanted to."""


class ChatCompletions:
    """`POST /chat/completions`."""

    renders: Rendering = "openai"

    def streaming(self, body: JsonObject) -> JsonObject:
        """Return the body of the same request for a stream."""
        return {**body, "stream": True, "stream_options": {"include_usage": True}}

    def chunks(self) -> Chunks:
        """Return what puts the pieces of a stream together."""
        return ChatChunks()

    def path(self, base_url: str) -> str:
        """Return where requests go."""
        del base_url
        return "/chat/completions"

    def request(
        self, model: str, system: str, shown: Sequence[JsonObject], tools: Sequence[JsonObject]
    ) -> JsonObject:
        """Return the body of a request without its options."""
        first: list[JsonObject] = [{"role": "system", "content": system}] if system else []
        body: JsonObject = {"messages": [*first, *shown], "model": model}
        return {**body, "tools": tools} if tools else body

    def answer(self, body: JsonObject) -> ModelAnswer:
        """Read a completion; a refusal counts as a text."""
        choices = objects_in(body.get("choices"))
        message = choices[0].get("message") if choices else None
        if not is_json_object(message):
            raise NotUnderstood("it has no message")
        content, reason = _text(message.get("content")), word_in(choices[0], "finish_reason")
        calls = [_call(number, call) for number, call in enumerate(objects_in(message.get("tool_calls")))]
        said = without_none(message)
        if calls:
            said["tool_calls"] = [
                {**without_none(call), "id": known.id}
                for call, known in zip(objects_in(message.get("tool_calls")), calls, strict=True)
            ]
        # The endpoint gets back what it said; half of a surrogate pair it could say and can't be told.
        return ModelAnswer(
            said=[storable_value(said)],
            text=word_in(message, "refusal") if is_blank(content) else content,
            calls=calls,
            usage=_usage(body.get("usage")),
            model=word_in(body, "model"),
            stop_reason=reason,
            is_whole=reason in _SAID_ALL,
        )

    def results(self, calls: Sequence[ModelCall], answers: Sequence[str]) -> list[JsonObject]:
        """Return a message for each result."""
        return [
            {"role": "tool", "tool_call_id": storable(call.id), "content": answer}
            for call, answer in zip(calls, answers, strict=True)
        ]


def _text(content: object) -> str | None:
    """Return a message's text, which some endpoints give in parts."""
    if isinstance(content, list):
        return "".join(word_in(part, "text") or "" for part in objects_in(cast("object", content)))
    return content if isinstance(content, str) else None


def _call(number: int, call: Mapping[str, Any]) -> ModelCall:  # JSON of an endpoint's
    function = call.get("function")
    name = word_in(function, "name")
    if name is None:
        raise NotUnderstood(f"the model wants a {word_in(call, 'type')!r} tool; none was offered")
    # Some endpoints number no calls, and one of them gives the arguments as an object.
    given = function.get("arguments") if is_json_object(function) else None
    return ModelCall(word_in(call, "id") or f"call_{number}", name, arguments_text(given))


def arguments_text(given: object) -> str:
    """Return the source text of a call's arguments, which an endpoint may give as an object."""
    return given if isinstance(given, str) else "" if given is None else json_text(given)


def _usage(given: object) -> Usage:
    details = given.get("prompt_tokens_details") if is_json_object(given) else None
    return Usage(
        input=count_in(given, "prompt_tokens"),
        output=count_in(given, "completion_tokens"),
        cache_read=count_in(details, "cached_tokens"),
        total_tokens=count_in(given, "total_tokens"),
    )
