"""Which words of two texts differ. Pure."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final, Literal

import msgspec

_WORD: Final = re.compile(r"\s+|\w+(?:[.,:'\u2019-]\w+)*|[^\w\s]")
_MOST: Final = 1_000
"""The most words that are compared one by one: the time grows with their square."""
_ALIKE: Final = 0.3
"""Texts that share fewer of their words are two texts: what they share is chance, and marks between it can't be read."""


Whose = Literal["both", "a", "b"]


class Marked(msgspec.Struct, frozen=True):
    """A stretch of words: of both texts, or of one of them alone."""

    of: Whose
    text: str


def marked(a: str, b: str) -> tuple[Marked, ...]:
    """Return two texts as one, word by word: what both have, and what only one has."""
    if b < a:  # which of two equally good ways is found must not hang on the order
        other = {"a": "b", "b": "a"}
        found = [(other.get(of, of), text) for of, text in _marked(b, a)]
    else:
        found = _marked(a, b)
    if _letters(text for of, text in found if of == "both") < _ALIKE * min(_letters([a]), _letters([b])):
        found = [("a", a), ("b", b)]
    return _tidy(found)


def _letters(texts: Iterable[str]) -> int:
    return sum(letter.isalnum() for text in texts for letter in text)


def _marked(a: str, b: str) -> list[tuple[str, str]]:
    old, new = _WORD.findall(a), _WORD.findall(b)
    first = _shared(old, new)
    last = _shared(old[first:][::-1], new[first:][::-1])
    end_old, end_new = len(old) - last, len(new) - last
    inner_old, inner_new = old[first:end_old], new[first:end_new]
    found = [("both", "".join(old[:first]))]
    if max(len(inner_old), len(inner_new)) > _MOST:
        found += [("a", "".join(inner_old)), ("b", "".join(inner_new))]
    else:
        for tag, i, j, k, m in SequenceMatcher(None, inner_old, inner_new, autojunk=False).get_opcodes():
            if tag == "equal":
                found.append(("both", "".join(inner_old[i:j])))
            else:
                found += [("a", "".join(inner_old[i:j])), ("b", "".join(inner_new[k:m]))]
    return [*found, ("both", "".join(old[end_old:]))]


def _shared(old: list[str], new: list[str]) -> int:
    return next(
        (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
        min(len(old), len(new)),
    )


def _tidy(found: list[tuple[str, str]]) -> tuple[Marked, ...]:
    """Put stretches together that have nothing but white space between them: `in one` is read, `in` and `one` are not."""
    tidy: list[Marked] = []
    changed: dict[str, str] = {"a": "", "b": ""}
    space = ""

    def close() -> None:
        tidy.extend(Marked(of, changed[of]) for of in ("a", "b") if changed[of])
        changed.update(a="", b="")

    for of, text in found:
        if not text:
            continue
        if of != "both":
            for side in ("a", "b") if space else ():
                changed[side] += space
            space = ""
            changed[of] += text
        elif text.isspace() and any(changed.values()):
            space += text
        else:
            close()
            tidy.append(Marked("both", space + text))
            space = ""
    close()
    if space:
        tidy.append(Marked("both", space))
    return tuple(Marked(of, "".join(one.text for one in group)) for of, group in groupby(tidy, key=_whose))


def _whose(one: Marked) -> Whose:
    return one.of
