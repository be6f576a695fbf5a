"""The fenced rendering as lists of messages, in the forms two kinds of model servers take (PROV-3).

Here a role can carry what a fence says: a person's message is a plain `user` message, what the agent itself
said a plain `assistant` message with its tool calls, and a tool's result answers its call. All else is fenced, and
so is a plain text that begins like a fence, or that is blank, which some servers refuse. A call without its
results (a run was cut off), or with an id no server takes, is told in a fence, for they refuse such a list whole.

Two transcripts with different `Seen`s never become the same list: the tests read both forms back.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from intersession_actors.prompt import rendering
from intersession_actors.prompt.fencing import OPENING
from intersession_events.facts import ImageBlock, Message
from intersession_events.plain_json import JsonObject, is_object

_TAKEN: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_CALL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class _Said(msgspec.Struct, frozen=True):
    """A message on its way. `told` is what is left for words when pictures and paired calls go as what they are."""

    told: rendering.Seen
    message: Message
    run_id: str
    images: tuple[ImageBlock, ...]
    calls: tuple[rendering.Call, ...]
    answers: str | None

    @property
    def words(self) -> str | None:
        """The message's text if its role says all the rest; nothing beside calls; else its fence."""
        text = self.told.text
        if self.told == (_agent(text) if self.told.role == "assistant" else _person(text)):
            if text == "" and self.calls:
                return None
            if text.strip() and not text.startswith(OPENING):
                return text
        return rendering.fenced(self.told, rendering.message_fence(self.run_id, self.message))


def openai_messages(messages: Sequence[Message], *, run_id: str, senders: bool = False) -> list[JsonObject]:
    """Return the messages as a list for servers that speak OpenAI's chat completions; with `senders` it says who spoke."""
    return [_to_openai(said) for said in _said(messages, run_id, tool_images=False, senders=senders)]


def anthropic_messages(
    messages: Sequence[Message], *, run_id: str, senders: bool = False
) -> list[JsonObject]:
    """Return the messages as a list for servers that speak Anthropic's messages; with `senders` it says who spoke."""
    return [_to_anthropic(said) for said in _said(messages, run_id, tool_images=True, senders=senders)]


def _said(messages: Sequence[Message], run_id: str, *, tool_images: bool, senders: bool) -> Iterator[_Said]:
    shown = [rendering.seen(message, with_sender=senders) for message in messages]
    paired = _paired(shown)
    for index, (message, told) in enumerate(zip(messages, shown, strict=True)):
        answers = told.tool_call_id if told.role == "toolResult" and index in paired else None
        takes_images = told.role != "assistant" and (tool_images or answers is None)
        images = _images(message) if takes_images else ()
        calls = told.calls if told.role == "assistant" and index in paired else ()
        rest = told
        if images or calls:
            rest = msgspec.structs.replace(
                told, pictures=() if images else told.pictures, calls=() if calls else told.calls
            )
        yield _Said(rest, message, run_id, images, calls, answers)


def _images(message: Message) -> tuple[ImageBlock, ...]:
    """Return a message's pictures if all of them are of a kind that servers take, else none."""
    if isinstance(message.content, str):
        return ()
    images = tuple(block for block in message.content if isinstance(block, ImageBlock))
    return images if all(image.mime_type in _TAKEN and image.data for image in images) else ()


def _paired(messages: Sequence[rendering.Seen]) -> set[int]:
    """Return which messages are calls with each one's result right behind them, or such results."""
    paired: set[int] = set()
    for index, message in enumerate(messages):
        if message.role != "assistant" or not message.calls or not all(map(_fits, message.calls)):
            continue
        end = index + 1
        while end < len(messages) and messages[end].role == "toolResult":
            end += 1
        asked = [call.id for call in message.calls]
        answered = [result.tool_call_id or "" for result in messages[index + 1 : end]]
        if len(set(asked)) == len(asked) and sorted(asked) == sorted(answered):
            paired.update(range(index, end))
    return paired


def _fits(call: rendering.Call) -> bool:
    """Whether servers take a call: its id, its name, and its arguments, which have to be an object."""
    if not (_CALL_NAME.fullmatch(call.id) and _CALL_NAME.fullmatch(call.name)):
        return False
    try:
        return is_object(msgspec.json.decode(call.arguments))
    except (ValueError, RecursionError):
        return False


def _person(text: str) -> rendering.Seen:
    return rendering.Seen(role="user", kind="external_user", text=text)


def _agent(text: str) -> rendering.Seen:
    return rendering.Seen(role="assistant", text=text)


# --- OpenAI


def _to_openai(said: _Said) -> JsonObject:
    if said.answers is not None:
        return {"role": "tool", "tool_call_id": said.answers, "content": said.words}
    if said.calls:
        return {
            "role": "assistant",
            "content": said.words,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in said.calls
            ],
        }
    if said.images:
        parts = [
            {"type": "image_url", "image_url": {"url": _data_url(image.mime_type, image.data)}}
            for image in said.images
        ]
        return {"role": "user", "content": [{"type": "text", "text": said.words}, *parts]}
    return {"role": _role(said), "content": said.words}


def _data_url(mime: str | None, data: str) -> str:
    return f"data:{mime};base64,{data}"


# --- Anthropic


def _to_anthropic(said: _Said) -> JsonObject:
    parts: list[JsonObject] = [] if said.words is None else [{"type": "text", "text": said.words}]
    parts += [
        {"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": image.data}}
        for image in said.images
    ]
    parts += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": msgspec.json.decode(call.arguments)}
        for call in said.calls
    ]
    if said.answers is not None:
        result = {
            "type": "tool_result",
            "tool_use_id": said.answers,
            "content": parts,
            "is_error": bool(said.told.is_error),
        }
        return {"role": "user", "content": [result]}
    if said.images or said.calls:
        return {"role": _role(said), "content": parts}
    return {"role": _role(said), "content": said.words}


def _role(said: _Said) -> str:
    return "assistant" if said.told.role == "assistant" else "user"
