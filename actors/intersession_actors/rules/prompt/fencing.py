"""Fences around texts that no person typed, and texts cut that are too long for a model. Pure.

A fence has a length and an id, so that no text can imitate or close one (PROV-3):

    [[message 9f86d081884c7d65 {"from":"agent:main:main","characters":5}]]
    hello
    [[end 9f86d081884c7d65]]

What is inside is found by its length alone. The id is there for the model's eyes: it is derived from the run and
from the text itself, so that no text can contain its own, even if its writer knew the run.
"""

import hashlib
import re
from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import Block, FileBlock, ImageBlock, Message, TextBlock, ToolCallBlock

OPENING: Final = "[["
"""How every fence begins. A text that begins so is fenced too, whoever typed it."""

_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_HEADER: Final = msgspec.json.Decoder(JsonObject)


_WITH_PICTURES: Final = 4_000
"""A message of which fewer characters are shown is shown without its pictures: one takes about as much room."""


def shortened_text(text: str, most: int) -> str:
    """Return a text cut to a limit of characters, with a line that tells how many are left out."""
    if len(text) <= most:
        return text
    begin = most * 3 // 4
    left_out = len(text) - most
    return (
        f"{text[:begin]}\n[{left_out} characters are left out here: it is too long to be shown whole]\n"
        f"{text[len(text) - (most - begin) :]}"
    )


def shortened(message: Message, most: int) -> Message:
    """Return a message with each text cut to a limit; the same object if each fits."""
    content = message.content
    if isinstance(content, str):
        return (
            message
            if len(content) <= most
            else msgspec.structs.replace(message, content=shortened_text(content, most))
        )
    blocks = tuple(_shorter(block, most) for block in content)
    if all(one is other for one, other in zip(blocks, content, strict=True)):
        return message
    return msgspec.structs.replace(message, content=blocks)


def _shorter(block: Block, most: int) -> Block:
    match block:
        case TextBlock(text=text) if len(text) > most:
            return msgspec.structs.replace(block, text=shortened_text(text, most))
        case ToolCallBlock(arguments=source) if len(source) > most:
            # Cut in the middle it would be no JSON object, which servers insist on.
            told = {"leftOut": f"{len(source)} characters of arguments: they are too long to be shown"}
            return msgspec.structs.replace(block, arguments=msgspec.json.encode(told).decode())
        case FileBlock() if most < _WITH_PICTURES and block.is_picture:
            return TextBlock(text=f"[a picture is left out here: there is no room for {block.brief}]")
        case ImageBlock() if most < _WITH_PICTURES:
            return TextBlock(text="[a picture is left out here: there is no room for it]")
        case _:
            return block


def fence_id(run_id: str, *parts: str | int) -> str:
    """Return the id of a fence in a run; the parts identify the fenced text, which comes last."""
    return hashlib.sha256(_ENCODER.encode((run_id, *parts))).hexdigest()[:16]


def fence(word: str, identity: str, header: JsonMapping, text: str) -> str:
    """Return a text in a fence. `word` is one lower-case word, `header` tells the text's origin."""
    said = _ENCODER.encode({**header, "characters": len(text)}).decode()
    return f"[[{word} {identity} {said}]]\n{text}\n[[end {identity}]]"


_QUOTE: Final = re.compile(r"\[\[quote ([0-9a-f]{16}) (\{[^\n]*\})\]\]\n")


def shorter_quotes(text: str, most: int) -> str:
    """Return a system text with each quote cut to a length; each keeps its fence and its id.

    A quote that is cut still does not contain its id, as nothing is added that could be one.
    """
    parts: list[str] = []
    at = 0
    while (found := _QUOTE.search(text, at)) is not None:
        try:
            header = _HEADER.decode(found[2])
            length = int(header["characters"])
        except (KeyError, TypeError, ValueError):
            break  # no fence of ours
        quoted = text[found.end() : found.end() + length]
        parts += [text[at : found.start()]]
        header.pop("characters")
        parts.append(fence("quote", found[1], header, shortened_text(quoted, most)))
        at = found.end() + length + len(f"\n[[end {found[1]}]]")
    return "".join((*parts, text[at:]))
