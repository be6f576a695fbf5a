"""What an endpoint says in OpenAI's Responses and Anthropic's Messages where it would give a chat completion, whole and as events."""

import json
import re
from collections.abc import Iterator
from typing import Any

Said = dict[str, Any]

_ENDS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use", "stop": "end_turn"}


def in_dialect(path: str, completion: Said) -> Said:
    """Return a completion in the form of the API that a path is of."""
    if path.endswith("/responses"):
        return _response(completion)
    return _message(completion) if path.endswith("/messages") else completion


def _response(completion: Said) -> Said:
    choice = completion["choices"][0]
    message, finish = choice["message"], choice["finish_reason"]
    kinds = {"content": "output_text", "refusal": "refusal"}
    fields = {"content": "text", "refusal": "refusal"}
    parts = [{"type": kinds[name], fields[name]: message[name]} for name in kinds if message.get(name)]
    output: list[Said] = [{"type": "reasoning", "id": "rs_1", "summary": [], "status": None}]
    if parts:
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "content": parts})
    output += [
        {"type": "function_call", "call_id": call["id"], **call["function"]}
        for call in message.get("tool_calls") or []
    ]
    cut_off = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish)
    usage = completion["usage"]
    return {
        "id": "resp_1",
        "object": "response",
        "model": completion["model"],
        "status": "incomplete" if cut_off else "completed",
        "incomplete_details": {"reason": cut_off} if cut_off else None,
        "error": None,
        "output": output,
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
        },
    }


def _message(completion: Said) -> Said:
    choice = completion["choices"][0]
    message = choice["message"]
    text = message.get("content") or message.get("refusal")
    content: list[Said] = [{"type": "text", "text": text}] if text else []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        arguments = json.loads(function["arguments"])
        content.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
    usage = completion["usage"]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": content,
        "stop_reason": _ENDS.get(choice["finish_reason"], choice["finish_reason"]),
        "usage": {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]},
    }


def events_of(body: Said) -> Iterator[Said]:
    """Yield the events in which a response or a message is streamed."""
    yield from _events_of_response(body) if body.get("object") == "response" else _events_of_message(body)


def _events_of_response(body: Said) -> Iterator[Said]:
    yield {"type": "response.created", "response": {**body, "status": "in_progress", "output": []}}
    for item in body["output"]:
        for part in item.get("content", ()):
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            for word in words_of(part.get("text") or part["refusal"]):
                yield {"type": f"response.{kind}.delta", "delta": word}
        if item["type"] == "function_call":
            yield {"type": "response.function_call_arguments.delta", "delta": item["arguments"]}
    yield {"type": f"response.{body['status']}", "response": body}


def _events_of_message(body: Said) -> Iterator[Said]:
    begun = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(body["content"]):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        pieces = words_of(block["text"]) if is_text else list(json.dumps(block["input"]))
        for piece in pieces:
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "ping"}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": body["stop_reason"]},
        "usage": {"output_tokens": body["usage"]["output_tokens"]},
    }
    yield {"type": "message_stop"}


def words_of(text: str) -> list[str]:
    """Return a text word by word."""
    return re.findall(r"\S+\s*|\s+", text)
