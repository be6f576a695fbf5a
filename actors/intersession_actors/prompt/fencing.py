"""Fences round texts that no person typed: a length and an id, so that no text can imitate or close one (PROV-3).

    [[message 9f86d081884c7d65 {"from":"agent:main:main","characters":5}]]
    hello
    [[end 9f86d081884c7d65]]

What is inside is found by its length alone. The id is there for the model's eyes: it is derived from the run and
from the text itself, so that no text can contain its own, even if its writer knew the run.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

OPENING: Final = "[["
"""How every fence begins. A text that begins so is fenced too, whoever typed it."""

_ENCODER: Final = msgspec.json.Encoder(order="sorted")


class Fenced(msgspec.Struct, frozen=True):
    """A fence that was read: its word, its id, its header, its text, and where it ends."""

    word: str
    fence_id: str
    header: dict[str, Any]
    text: str
    end: int


class NotFenced(ValueError):
    """A text is not what `fence` writes."""


def fence_id(run_id: str, *parts: str | int) -> str:
    """Return the id of a fence in a run; the parts say what it is round, the text last."""
    return hashlib.sha256(_ENCODER.encode((run_id, *parts))).hexdigest()[:16]


def fence(word: str, identity: str, header: Mapping[str, Any], text: str) -> str:
    """Return a text in a fence. `word` is one lower-case word, `header` says where the text is from."""
    said = _ENCODER.encode({**header, "characters": len(text)}).decode()
    return f"[[{word} {identity} {said}]]\n{text}\n[[end {identity}]]"


def unfence(source: str, start: int = 0) -> Fenced:
    """Read the fence that begins at `start`. Its text is taken by length, whatever it contains.

    Raises:
        NotFenced: there is no whole fence at that place.
    """
    line_end = source.find("\n", start)  # our own header: JSON has no bare newline
    opening = source[start:line_end]
    words = opening.removeprefix("[[").removesuffix("]]").split(" ", 2)
    if line_end < 0 or len(words) != 3 or opening != f"[[{words[0]} {words[1]} {words[2]}]]":  # noqa: PLR2004
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
