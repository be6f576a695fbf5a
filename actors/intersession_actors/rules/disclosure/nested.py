"""Finds secrets in lists, objects and numbers under a name that says so, in the text of JSON and its kin (HIST-5). Pure.

Linear like `secrets.py`: what stands under a name is looked at so far, and then not again.
"""

import re
from collections.abc import Iterator
from typing import Final

from intersession_actors.rules.disclosure.secret_names import counts_digits, is_secret_name
from intersession_actors.rules.disclosure.structures import is_reference
from intersession_events.basics.patterns import later

Span = tuple[int, int]

_NAME: Final = later(
    r"(?P<quote>\\{0,8}+[\"'])(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,127}+)(?P=quote)\s{0,16}+:\s{0,16}+(?=[\[{])"
)
_PART: Final = later(r"[\[{]|[\]}]|\\{0,8}+[\"']|-?[0-9]{4,64}+|[^\[\]{}\"'\\0-9-]++|.", re.DOTALL)
_FARTHEST: Final = 4_096


def nested(text: str) -> Iterator[Span]:
    """Yield where secrets stand inside of what a name announces."""
    at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        if is_secret_name(found["name"]):
            spans, at = _inside(text, at, found["quote"], found["name"])
            yield from spans


def _inside(text: str, at: int, quote: str, name: str) -> tuple[list[Span], int]:
    """Return the strings and numbers up to where the list or the object ends, and where that is; keys are none of them."""
    spans: list[Span] = []
    opened, end = "", min(len(text), at + _FARTHEST)
    while at < end:
        part = _PART.match(text, at)
        if part is None:
            break
        at = part.end()
        if part[0] in {"[", "{"}:
            opened += part[0]
        elif part[0] in {"]", "}"}:
            opened = opened[:-1]
            if not opened:
                break
        elif part[0] == quote:
            last = _closing(text, at, quote)
            is_key = text[last + len(quote) : last + len(quote) + 16].lstrip().startswith(":")
            if not is_key and _may_be(text[at:last], in_object="{" in opened):
                spans.append((at, last))
            at = last + len(quote)
        elif part[0].lstrip("-").isdigit() and counts_digits(name, part[0]):
            spans.append(part.span())
    return spans, at


def _may_be(value: str, *, in_object: bool) -> bool:
    """Whether a value is a secret, and not what is said of one: fields of an object may say of which type it is, or how long."""
    if not value or is_reference(value):
        return False
    return not in_object or (
        " " not in value and not (value.isalpha() and (value.islower() or value.istitle()))
    )


def _closing(text: str, at: int, quote: str) -> int:
    """Return where a string ends: before the next quote of its kind that is not escaped; else where the text does."""
    while (last := text.find(quote, at)) >= 0:
        before = last
        while len(quote) == 1 and before > at and text[before - 1] == "\\":
            before -= 1
        if (last - before) % 2 == 0:
            return last
        at = last + 1
    return len(text)
