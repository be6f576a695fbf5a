"""Reads back what a model was shown, so that tests can prove that no two transcripts are shown alike (PROV-3)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from intersession_actors.rules.prompt.fencing import OPENING
from intersession_actors.rules.prompt.rendering import Call, Picture, Seen, picture_of
from intersession_events.facts import ImageBlock

_PERSON: Final = re.compile(r"user \(([0-9]{1,15}) characters\):\n")
_BETWEEN: Final = "\n\n"


class Fenced(msgspec.Struct, frozen=True):
    """A fence that was read: its word, its id, its header, its text, and where it ends."""

    word: str
    fence_id: str
    header: dict[str, Any]
    text: str
    end: int


class NotFenced(ValueError):
    """A text is not what `fence` writes."""


def unfence(source: str, start: int = 0) -> Fenced:
    """Read the fence that begins at `start`. Its text is taken by length, whatever it contains.

    Raises:
        NotFenced: there is no whole fence at that place.
    """
    line_end = source.find("\n", start)  # our own header: JSON has no bare newline
    opening = source[start:line_end]
    words = opening.removeprefix("[[").removesuffix("]]").split(" ", 2)
    if line_end < 0 or len(words) != 3 or opening != f"[[{words[0]} {words[1]} {words[2]}]]":
        raise NotFenced(f"no fence begins at character {start}")
    word, identity, said = words
    try:
        header: dict[str, Any] = msgspec.json.decode(said, type=dict[str, Any])
        length: int = msgspec.convert(header.pop("characters", None), int)
    except (ValueError, RecursionError) as error:
        raise NotFenced(f"the fence at character {start} has no header: {error}") from error
    text = source[line_end + 1 : line_end + 1 + length]
    closing = f"\n[[end {identity}]]"
    end = line_end + 1 + length + len(closing)
    if length < 0 or len(text) != length or source[end - len(closing) : end] != closing:
        raise NotFenced(f"the fence at character {start} does not end where its length says")
    return Fenced(word, identity, header, text, end)


def parse(prompt: str) -> list[Seen]:
    """Return what `render` was given, as far as it carries it.

    Raises:
        NotFenced: the text is not what `render` writes.
    """
    found: list[Seen] = []
    at = 0
    while at < len(prompt) or found:
        if found:
            if at == len(prompt):
                break
            if not prompt.startswith(_BETWEEN, at):
                raise NotFenced(f"no message ends at character {at}")
            at += len(_BETWEEN)
        message, at = _read(prompt, at)
        found.append(message)
    return found


def unfenced(text: str) -> Seen:
    """Return the message that a text is, which is one whole fence.

    Raises:
        NotFenced: it is not one.
    """
    message, end = _read_fenced(text, 0)
    if end != len(text):
        raise NotFenced(f"something follows the fence at character {end}")
    return message


def _read(prompt: str, at: int) -> tuple[Seen, int]:
    if prompt.startswith(OPENING, at):
        return _read_fenced(prompt, at)
    opening = _PERSON.match(prompt, at)
    if opening is None:
        raise NotFenced(f"no message begins at character {at}")
    end = opening.end() + int(opening[1])
    if end > len(prompt):
        raise NotFenced(f"the message at character {at} is cut off")
    return Seen(role="user", kind="external_user", text=prompt[opening.end() : end]), end


def _read_fenced(prompt: str, at: int) -> tuple[Seen, int]:
    found = unfence(prompt, at)
    header: dict[str, Any] = {**found.header, "text": found.text}
    try:
        return msgspec.convert(header, Seen), found.end
    except msgspec.ValidationError as error:
        raise NotFenced(f"the fence at character {at} is not of a message: {error}") from error


def parse_openai(rendered: Sequence[Mapping[str, Any]]) -> list[Seen]:
    """Return what `openai_messages` was given, as far as it carries it.

    Raises:
        NotFenced: a fence is broken.
    """
    return [_from_openai(item) for item in rendered]


def parse_anthropic(rendered: Sequence[Mapping[str, Any]]) -> list[Seen]:
    """Return what `anthropic_messages` was given, as far as it carries it.

    Raises:
        NotFenced: a fence is broken.
    """
    return [said for item in rendered for said in _from_anthropic(item)]


def _said(
    role: Any, words: str | None, calls: tuple[Call, ...] = (), pictures: tuple[Picture, ...] = ()
) -> Seen:
    """Return what an item says: of its role and words, with what it carries beside them."""
    if words is not None and words.startswith(OPENING):
        found = unfenced(words)
    else:
        found = (
            Seen(role="assistant", text=words or "")
            if role == "assistant"
            else Seen(role="user", kind="external_user", text=words or "")
        )
    return msgspec.structs.replace(found, calls=calls or found.calls, pictures=pictures or found.pictures)


def _from_openai(item: Mapping[str, Any]) -> Seen:
    content: Any = item["content"]
    if content is not None and not isinstance(content, str):
        words, *parts = content
        pictures = tuple(_from_data_url(part["image_url"]["url"]) for part in parts)
        return _said(item["role"], words["text"], pictures=pictures)
    calls = tuple(
        Call(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in item.get("tool_calls", ())
    )
    return _said(item["role"], content, calls)


def _from_data_url(url: str) -> Picture:
    head, _, data = url.partition(",")  # the types we write have no comma
    return picture_of(ImageBlock(data=data, mime_type=head.removeprefix("data:").removesuffix(";base64")))


def _from_anthropic(item: Mapping[str, Any]) -> list[Seen]:
    content = item["content"]
    if isinstance(content, str):
        return [_said(item["role"], content)]
    if content[0]["type"] == "tool_result":
        return [_of_parts(item["role"], result["content"]) for result in content]
    return [_of_parts(item["role"], content)]


def _of_parts(role: Any, parts: Sequence[Mapping[str, Any]]) -> Seen:
    words = next((part["text"] for part in parts if part["type"] == "text"), None)
    pictures = tuple(
        picture_of(ImageBlock(data=part["source"]["data"], mime_type=part["source"]["media_type"]))
        for part in parts
        if part["type"] == "image"
    )
    calls = tuple(
        Call(_first_id(part["id"]), part["name"], msgspec.json.encode(part["input"]).decode())
        for part in parts
        if part["type"] == "tool_use"
    )
    return _said(role, words, calls, pictures)


def _first_id(shown: str) -> str:
    """Return the id of a call that is shown with a suffix, as an id that had come before."""
    return re.sub(r"_again[0-9]+$", "", shown)
