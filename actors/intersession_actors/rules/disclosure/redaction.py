"""Hides the secrets of a transcript from other readers; the log keeps the text as it was (HIST-5). Pure.

A secret of fewer than 18 characters becomes `***`, a longer one keeps its first 6 and last 4, unless they hold what
ends a value (a quote, white space): a private key has nothing to show. What was hidden once is left as it is.
"""

import re
from collections.abc import Mapping
from typing import Final

from intersession_actors.rules.disclosure.secret_names import counts_digits, is_secret_name, listed
from intersession_actors.rules.disclosure.secrets import says_nothing, secret_spans
from intersession_actors.rules.disclosure.structures import COOKIE_HEADERS, named_in_list, named_in_object
from intersession_events.basics.plain_json import (
    JsonList,
    JsonMapping,
    JsonObject,
    JsonValue,
    is_list,
    is_object,
    map_strings,
)

_JARS: Final = frozenset({"cookies", "Cookies"})
_SHORT: Final = 18
_LONG_KEY: Final = 16
"""A name of a field with fewer letters is no secret by itself."""
_SHORT_MASK: Final = "***"
_ENDS: Final = re.compile(r"[^\s\"'`\\&]{10}")
_MASKED: Final = re.compile(r"\*\*\*|[^\s\"'`\\&]{6}…[^\s\"'`\\&]{4}")
# Set by the system or by a model server, never said by anybody.
STRUCTURE: Final = listed("id role timestamp provenance runId model usage stopReason toolCallId toolName")


def mask(secret: str) -> str:
    """Return the placeholder for a secret."""
    if _MASKED.fullmatch(secret):
        return secret
    if len(secret) < _SHORT or not _ENDS.fullmatch(secret[:6] + secret[-4:]):
        return _SHORT_MASK
    return f"{secret[:6]}…{secret[-4:]}"


def redact_text(text: str) -> tuple[str, bool]:
    """Return a text with its secrets hidden, and whether there were any."""
    shown: list[str] = []
    at = 0
    for start, end in secret_spans(text):
        shown += (text[at:start], mask(text[start:end]))
        at = end
    redacted = "".join((*shown, text[at:]))
    return redacted, redacted != text


def redact_value(value: object) -> tuple[JsonValue, bool]:
    """Return a JSON value with the secrets hidden in its strings, and under telling names; and whether there were any."""
    found = False

    def change(name: str | None, text: str) -> str:
        nonlocal found
        shown = mask(text) if text and _is_secret(name, text) else redact_text(text)[0]
        found = found or shown != text
        return shown

    def name_of(parent: str | None, key: str) -> str:
        return parent if parent is not None and (parent in _JARS or is_secret_name(parent)) else key

    def named_in(part: JsonObject | JsonList) -> Mapping[str | int, str]:
        return named_in_object(part) if is_object(part) else named_in_list(part) if is_list(part) else {}

    def number(name: str | None, given: float) -> JsonValue:
        nonlocal found
        if name is None or not is_secret_name(name) or not counts_digits(name, f"{given:.0f}"):
            return given
        found = True
        return _SHORT_MASK

    def key(name: str) -> str:
        nonlocal found
        if len(name) < _LONG_KEY or not any(character.isdigit() for character in name):
            return name
        shown = redact_text(name)[0]
        found = found or shown != name
        return shown

    redacted = map_strings(value, change, name_of, named_in, number=number, rename=key)
    return (redacted, True) if found else (value, False)


def _is_secret(name: str | None, text: str) -> bool:
    """Whether the value of a field is a secret by the field's name, and not only the name of one, or a word for a kind."""
    if name is None:
        return False
    if name in _JARS or (name.lower() in COOKIE_HEADERS and "=" in text):
        return True
    return is_secret_name(name) and not says_nothing(name, text)


def redact_raw(message: JsonMapping) -> tuple[JsonObject, bool]:
    """Return a message in its raw form with its secrets hidden, and whether there were any.

    Texts, thinking, tool calls' arguments, tool results and fields of an import are gone through; pictures are not.
    """
    said = {name: value for name, value in message.items() if name not in STRUCTURE}
    content = said.get("content")
    blocks: JsonList = content if is_list(content) else []
    # Most say text alone. To go through that as a value of JSON takes longer than to look for secrets.
    if len(said) == 1 and isinstance(content, str):
        shown, found = redact_text(content)
        return {**message, "content": shown}, found
    if len(said) == 1 and blocks and all(map(_is_text, blocks)):
        texts = [redact_text(block["text"]) for block in blocks]
        said["content"] = [{"type": "text", "text": shown} for shown, _ in texts]
        return {**message, **said}, any(found for _, found in texts)
    pictures = {at: block for at, block in enumerate(blocks) if _is_picture(block)}
    if pictures:
        said["content"] = [None if at in pictures else block for at, block in enumerate(blocks)]
    redacted, found = redact_value(said)
    if not found:
        return dict(message), False
    for at, block in pictures.items():
        redacted["content"][at] = block
    return {**message, **redacted}, True


def _is_text(block: object) -> bool:
    return (
        is_object(block)
        and len(block) == 2  # noqa: PLR2004 - these two
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    )


def _is_picture(block: object) -> bool:
    return is_object(block) and block.get("type") == "image"
