"""Texts and messages that are too long for a model, cut: their beginning and their end, and between them how much is not there. Pure."""

from typing import Final

import msgspec

from intersession_events.facts import Block, ImageBlock, Message, TextBlock, ToolCallBlock

_WITH_PICTURES: Final = 4_000
"""A message of which fewer characters are shown is shown without its pictures: one takes about as much room."""


def shortened_text(text: str, most: int) -> str:
    """Return a text cut to a limit of characters, and a line that says how many are left out."""
    if len(text) <= most:
        return text
    begin = most * 3 // 4
    left_out = len(text) - most
    return (
        f"{text[:begin]}\n[{left_out} characters are left out here: it is too long to be shown whole]\n"
        f"{text[len(text) - (most - begin) :]}"
    )


def shortened(message: Message, most: int) -> Message:
    """Return a message each text of which is at most so long; the message itself where each is."""
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
        case ImageBlock() if most < _WITH_PICTURES:
            return TextBlock(text="[a picture is left out here: there is no room for it]")
        case _:
            return block
