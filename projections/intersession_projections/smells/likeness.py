"""How alike two texts are, by their words. Pure."""

import re
from collections import Counter
from typing import Final

_WORD: Final = re.compile(r"\w+", re.UNICODE)


def words_in(text: str) -> list[str]:
    """Return the words of a text as they are compared."""
    return _WORD.findall(text.casefold())


def likeness(one: str, other: str) -> float:
    """Return how much of their words two texts share, from 0 (nothing) to 1 (the same words, in any order)."""
    first, second = Counter(words_in(one)), Counter(words_in(other))
    whole = first.total() + second.total()
    return 2 * (first & second).total() / whole if whole else 0.0
