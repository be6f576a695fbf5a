"""The fenced rendering as lists of messages, in the formats of the model servers (PROV-3).

Here a role can carry what a fence says: a person's message is a plain `user` message, what the agent itself
said a plain `assistant` message with its tool calls, and a tool's result answers its call. All else is fenced, and
so is a plain text that begins like a fence, or that is blank, which some servers refuse. A call without its
results (a run was cut off), or with an id no server takes, is told in a fence, for they refuse such a list whole.

An id does no more than tie a result to its call. One that is longer than OpenAI takes is shown there by its hash. One that
came before, as models number their calls from the start in each turn, gets a suffix for Anthropic, where no id may be there twice.

Two transcripts with different `Seen`s never become the same list: the tests read both forms back.
"""

import base64
import binascii
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import msgspec

from intersession_actors.rules.prompt import rendering
from intersession_actors.rules.prompt.fencing import OPENING
from intersession_events.basics.plain_json import JsonObject, is_object
from intersession_events.facts import Block, FileBlock, ImageBlock, Message

_TAKEN: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_CALL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_ID: Final = 40
_OF_A_LONG_ID: Final = re.compile(r"id_[0-9a-f]{32}")
_AGAIN: Final = re.compile(r".*_again[0-9]+")


class _PendingMessage(msgspec.Struct, frozen=True):
    """A message on its way. `told` is the rest for its text when pictures and paired calls keep their own form."""

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
        return self.fenced

    @property
    def fenced(self) -> str:
        """The message in its fence, whose header says all the rest."""
        return rendering.fenced(self.told, rendering.message_fence(self.run_id, self.message))


def openai_messages(messages: Sequence[Message], *, run_id: str, senders: bool = False) -> list[JsonObject]:
    """Return the messages as a list for servers of OpenAI's chat completions; with `senders`, with their senders."""
    shown = _shown(messages, senders=senders)
    return [_to_openai(said) for said in _said(messages, shown, _paired(shown), run_id, tool_images=False)]


def responses_items(messages: Sequence[Message], *, run_id: str, senders: bool = False) -> list[JsonObject]:
    """Return the messages as input items for servers of OpenAI's Responses; with `senders`, with their senders.

    They say what the list for chat completions says, where a call of a tool and its result are items of their own.
    """
    return [
        item for said in openai_messages(messages, run_id=run_id, senders=senders) for item in _items_of(said)
    ]


def anthropic_messages(
    messages: Sequence[Message], *, run_id: str, senders: bool = False
) -> list[JsonObject]:
    """Return the messages as a list for servers of Anthropic's messages; with `senders`, with their senders.

    It begins with the user, whoever spoke first: the servers of some clouds insist. All results of a message's calls are one message.
    """
    shown = _shown(messages, senders=senders)
    paired = _paired(shown)
    if 0 in paired:
        paired -= set(range(1 + len(shown[0].calls)))
    items: list[JsonObject] = []
    ids = _SetApart()
    for index, said in enumerate(_said(messages, shown, paired, run_id, tool_images=True)):
        if index == 0 and said.told.role == "assistant":
            items.append({"role": "user", "content": said.fenced})
            continue
        item = _to_anthropic(said, ids)
        if said.answers is not None and shown[index - 1].role == "toolResult":
            items[-1]["content"] += item["content"]
        else:
            items.append(item)
    return items


def _shown(messages: Sequence[Message], *, senders: bool) -> list[rendering.Seen]:
    return [rendering.seen(message, with_sender=senders) for message in messages]


def _said(
    messages: Sequence[Message],
    shown: Sequence[rendering.Seen],
    paired: set[int],
    run_id: str,
    *,
    tool_images: bool,
) -> Iterator[_PendingMessage]:
    for index, (message, told) in enumerate(zip(messages, shown, strict=True)):
        answers = told.tool_call_id if told.role == "toolResult" and index in paired else None
        # Of a call that failed Anthropic takes words only.
        takes_images = answers is None or (tool_images and not told.is_error)
        images = _images(message) if takes_images and told.role != "assistant" else ()
        calls = told.calls if told.role == "assistant" and index in paired else ()
        rest = told
        if images or calls:
            rest = msgspec.structs.replace(
                told, pictures=() if images else told.pictures, calls=() if calls else told.calls
            )
        yield _PendingMessage(rest, message, run_id, images, calls, answers)


def _images(message: Message) -> tuple[ImageBlock, ...]:
    """Return a message's pictures if servers take all their types, else none."""
    if isinstance(message.content, str):
        return ()
    images = tuple(block for block in message.content if isinstance(block, ImageBlock))
    return images if all(map(_is_picture, images)) else ()


def _is_picture(image: ImageBlock) -> bool:
    """Whether servers take a picture: its kind, and its data, which have to be strict base64."""
    try:
        return image.mime_type in _TAKEN and binascii.a2b_base64(image.data, strict_mode=True) != b""
    except ValueError:
        return False


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


def with_pictures(message: Message, content_of: Callable[[str], bytes | None]) -> Message:
    """Return a message with the pictures among its files as blocks of their own, for a model that takes pictures.

    `content_of` returns the content of a file by its SHA-256. A file stays what it is, and is told by its name, where its
    content is not there, or servers don't take its type.
    """
    if isinstance(message.content, str):
        return message
    blocks = tuple(_as_picture(block, content_of) for block in message.content)
    if all(one is other for one, other in zip(blocks, message.content, strict=True)):
        return message
    return msgspec.structs.replace(message, content=blocks)


def _as_picture(block: Block, content_of: Callable[[str], bytes | None]) -> Block:
    if not isinstance(block, FileBlock) or block.mime_type not in _TAKEN:
        return block
    content = content_of(block.sha256)
    if content is None:
        return block
    return ImageBlock(data=base64.b64encode(content).decode(), mime_type=block.mime_type)


# --- OpenAI


def _to_openai(said: _PendingMessage) -> JsonObject:
    if said.answers is not None:
        return {"role": "tool", "tool_call_id": _short(said.answers), "content": said.words}
    if said.calls:
        return {
            "role": "assistant",
            "content": said.words,
            "tool_calls": [
                {
                    "id": _short(call.id),
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


def _items_of(said: JsonObject) -> Iterator[JsonObject]:
    """Yield the items of Responses that say what a message of chat completions says."""
    if said["role"] == "tool":
        yield {
            "type": "function_call_output",
            "call_id": said["tool_call_id"],
            "output": said["content"],
        }
        return
    content = said["content"]
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)  # Any: JSON that `_completion` made, in parts
        content = [
            {"type": "input_text", "text": part["text"]}
            if part["type"] == "text"
            else {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
            for part in parts
        ]
    if content is not None:
        yield {"role": said["role"], "content": content}
    for call in said.get("tool_calls", ()):
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
        }


def _short(identity: str) -> str:
    """Return an id that is not too long. What looks like the hash of one is hashed, too: no id passes for another."""
    if len(identity) <= _LONGEST_ID and not _OF_A_LONG_ID.fullmatch(identity):
        return identity
    return f"id_{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


def _data_url(mime: str | None, data: str) -> str:
    return f"data:{mime};base64,{data}"


# --- Anthropic


class _SetApart:
    """Sets ids apart that come more than once. What looks like such a one gets a suffix, too, so that each can be read back."""

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def call(self, identity: str) -> str:
        """Return the id of a further call."""
        self._counts[identity] += 1
        return self.result(identity)

    def result(self, identity: str) -> str:
        """Return the id of the last call of this id, which this is a result of."""
        times = self._counts[identity]
        is_plain = times == 1 and not _AGAIN.fullmatch(identity)
        return identity if is_plain else f"{identity}_again{times}"


def _to_anthropic(said: _PendingMessage, ids: _SetApart) -> JsonObject:
    parts: list[JsonObject] = [] if said.words is None else [{"type": "text", "text": said.words}]
    parts += [
        {"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": image.data}}
        for image in said.images
    ]
    parts += [
        {
            "type": "tool_use",
            "id": ids.call(call.id),
            "name": call.name,
            "input": msgspec.json.decode(call.arguments),
        }
        for call in said.calls
    ]
    if said.answers is not None:
        result = {
            "type": "tool_result",
            "tool_use_id": ids.result(said.answers),
            "content": parts,
            "is_error": bool(said.told.is_error),
        }
        return {"role": "user", "content": [result]}
    if said.images or said.calls:
        return {"role": _role(said), "content": parts}
    return {"role": _role(said), "content": said.words}


def _role(said: _PendingMessage) -> str:
    return "assistant" if said.told.role == "assistant" else "user"
