"""Fences around texts that no person typed: a length and an id, so that no text can imitate or close one (PROV-3).

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

from intersession_actors.rules.prompt.shortening import shortened_text
from intersession_events.basics.plain_json import JsonMapping, JsonObject

OPENING: Final = "[["
"""How every fence begins. A text that begins so is fenced too, whoever typed it."""

_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_HEADER: Final = msgspec.json.Decoder(JsonObject)


def fence_id(run_id: str, *parts: str | int) -> str:
    """Return the id of a fence in a run; the parts say what it is round, the text last."""
    return hashlib.sha256(_ENCODER.encode((run_id, *parts))).hexdigest()[:16]


def fence(word: str, identity: str, header: JsonMapping, text: str) -> str:
    """Return a text in a fence. `word` is one lower-case word, `header` says where the text is from."""
    said = _ENCODER.encode({**header, "characters": len(text)}).decode()
    return f"[[{word} {identity} {said}]]\n{text}\n[[end {identity}]]"


_QUOTE: Final = re.compile(r"\[\[quote ([0-9a-f]{16}) (\{[^\n]*\})\]\]\n")


def shorter_quotes(text: str, most: int) -> str:
    """Return a text of the system's in whose quotes each text is at most so long; each keeps its fence and its id.

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
