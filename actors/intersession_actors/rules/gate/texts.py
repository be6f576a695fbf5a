"""Makes texts of agents, models and channels recordable, so that no text can make a run fail."""

import hashlib
import json
import re
import unicodedata
from typing import Final

import msgspec

from intersession_actors.rules.gate.limits import CHAT_NAME, NAME, TOOL_ARGUMENTS, TOOL_RESULT, WORD
from intersession_actors.rules.gate.values import invalid, is_storable, plain_text, storable, storable_value
from intersession_events.basics.plain_json import JsonValue, is_object, is_too_deep

_CUT: Final = "…"
_HALVES: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def cut_text(text: str) -> str:
    """Return a text with everything beyond `TOOL_RESULT` characters replaced by a note of its size."""
    most = TOOL_RESULT.most
    if len(text) > most:
        text = f"{text[:most]}\n{_CUT} [{len(text) - most} characters cut]"
    return storable(text)


def spelled_out(value: object) -> str:
    """Return a value as JSON in which unpaired surrogates, in texts and field names, are spelled out."""
    source = json.dumps(value, default=repr, ensure_ascii=False)
    return _HALVES.sub(lambda half: f"\\\\u{ord(half[0]):04x}", source)


def arguments_in(source: str) -> JsonValue:
    r"""Return a tool call's arguments from a model's JSON; unpaired surrogates are spelled out (`\udce9`).

    Raises:
        ValueError: it is no JSON, or nested too deep to be read.
    """
    try:
        return msgspec.json.decode(source)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError:
        if not _has_halves(source):
            raise
        try:
            return storable_value(json.loads(source))
        except RecursionError:
            raise ValueError("it is nested too deep") from None


def _has_halves(source: str) -> bool:
    return _HALVES.search(source) is not None or _ESCAPED_HALF.search(source) is not None


def word_of(text: str) -> str:
    """Return a name as one line: unprintable characters are spelled out, a long one is cut."""
    if len(text) > WORD.most:
        text = f"{text[: WORD.most - 1]}{_CUT}"
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)[
        : WORD.most * 2
    ]


def id_of(text: str) -> str:
    """Return an id as one line. A changed id ends in its digest, so that different ids stay different."""
    word = word_of(text)
    if word == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{word[: WORD.most // 2]}{_CUT}{digest}"


def checked(field: str, text: object, *, most: int = NAME.most) -> str:
    """Return a name or an id of a host's own code as a plain text.

    Raises:
        ToolRefused: it is no text, empty, longer than `most` characters, has control characters, or can't be recorded.
    """
    text = plain_text(text) if isinstance(text, str) else text
    if not isinstance(text, str) or not text:
        raise invalid(field, "it is no text with something in it, give one")
    if len(text) > most:
        raise invalid(field, f"too long, give at most {most} characters")
    if any(unicodedata.category(each) == "Cc" for each in text):
        raise invalid(field, "it has control characters, take them out")
    if not is_storable(text):
        raise invalid(
            field, "it is not valid Unicode (a lone surrogate) and can't be recorded, give valid text"
        )
    return text


def shown_name(text: str | None) -> str | None:
    """Return the name of a chat or a person as one line for a list; None if nothing of it can be shown."""
    if text is None or (len(text) <= CHAT_NAME.most and text.isprintable() and text.strip()):
        return text
    line = " ".join(
        "".join(
            " " if unicodedata.category(each) == "Cc" else each for each in text[: CHAT_NAME.most * 2]
        ).split()
    )
    if len(line) > CHAT_NAME.most:
        line = f"{line[: CHAT_NAME.most - 1]}{_CUT}"
    return line or None


def arguments_of(source: str) -> str:
    """Return the source text of a tool's arguments in recordable form. A text that is not JSON stays: readers take it for a plain text."""
    if len(source) > TOOL_ARGUMENTS.most:
        digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        return _json({"omitted": True, "characters": len(source), "sha256": digest})
    try:
        deep = is_too_deep(msgspec.json.decode(source))
    except RecursionError:
        deep = True
    except ValueError:
        try:
            spelled = arguments_in(source)
        except ValueError:
            return storable(source)
        source = _json(spelled)
        deep = is_too_deep(spelled)
    return _json(source) if deep else source


def is_object_text(source: object) -> bool:
    """Whether this is the source text of a JSON object that is not too deep."""
    if not isinstance(source, str):
        return False
    try:
        value: JsonValue = msgspec.json.decode(source)
    except (ValueError, RecursionError):
        return False
    return is_object(value) and not is_too_deep(value)


def _json(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()
