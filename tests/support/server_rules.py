"""What model servers refuse in a list of messages, as far as they document it or are known to say so. Nothing of ours is used here."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

Items = Sequence[Mapping[str, Any]]


def openai_refuses(items: Items) -> set[str]:
    """Return what OpenAI's chat completions would refuse."""
    return set(_openai_refuses(items))


def _openai_refuses(items: Items) -> Iterator[str]:
    awaited: list[str] = []
    for item in [*items, {"role": "user", "content": "the end"}]:
        calls = item.get("tool_calls", ())
        if item["role"] == "tool":
            if item["tool_call_id"] not in awaited:
                yield "a result without its call"
            else:
                awaited.remove(item["tool_call_id"])
            continue
        if awaited:
            yield "a call without its result"
        awaited = [call["id"] for call in calls]
        if len(set(awaited)) < len(awaited):
            yield "an id that calls share"
        if any(len(identity) > 40 for identity in awaited):
            yield "an id longer than 40 characters"
        if not all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls):
            yield "arguments that are no object"
        if item["content"] is None and not calls:
            yield "nothing said"
        if not isinstance(item["content"], str | None) and item["role"] != "user":
            yield "a picture that no user sent"


def anthropic_refuses(items: Items) -> set[str]:
    """Return what Anthropic's messages would refuse, or warns against."""
    return set(_anthropic_refuses(items))


def _anthropic_refuses(items: Items) -> Iterator[str]:
    if items[0]["role"] != "user":
        yield "another first role than user"
    if any(_has_result(item) and _has_result(after) for item, after in pairwise(items)):
        yield "results of one message's calls in several messages"
    # "Consecutive `user` or `assistant` turns in your request will be combined into a single turn."
    turns = [
        (role, [block for item in same for block in _blocks(item)])
        for role, same in groupby(items, lambda item: item["role"])
    ]
    used: list[str] = []
    for (role, blocks), (_, after) in zip(turns, [*turns[1:], ("user", [])], strict=True):
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        used += uses
        kinds = [block["type"] for block in blocks]
        if uses and (role, kinds[-len(uses) :]) != ("assistant", ["tool_use"] * len(uses)):
            yield "calls that are not the end of what the assistant says"
        results = [block["tool_use_id"] for block in after[: len(uses)] if block["type"] == "tool_result"]
        if sorted(results) != sorted(uses):
            yield "a call whose result is not at the beginning of the next message"
        if [block["type"] for block in after].count("tool_result") > len(uses):
            yield "a result without its call"
        for block in blocks:
            yield from _block_refused(role, block)
    if len(set(used)) < len(used):
        yield "an id that calls share"
    if not re.fullmatch(r"[a-zA-Z0-9_-]*", "".join(used)):
        yield "an id of other characters"


def _block_refused(role: str, block: Mapping[str, Any]) -> Iterator[str]:
    if block["type"] == "image" and role != "user":
        yield "a picture that no user sent"
    parts = block["content"] if block["type"] == "tool_result" else [block]
    if any(part["type"] == "text" and not part["text"].strip() for part in parts):
        yield "a blank text"
    if block.get("is_error") and any(part["type"] != "text" for part in parts):
        yield "a picture of a call that failed"


def _blocks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    content: Any = item["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _has_result(item: Mapping[str, Any]) -> bool:
    return any(block["type"] == "tool_result" for block in _blocks(item))
