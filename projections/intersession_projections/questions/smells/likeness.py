"""How alike two texts are, by their words. Pure."""

from collections import Counter
from collections.abc import Sequence

from intersession_projections.views.full_text.tokens import is_unspaced, words_in_order


def words_in(text: str) -> list[str]:
    """Return the words of a text as they are compared: of scripts without spaces each two letters in a row."""
    return words_in_order(text)


def count_of(words: Sequence[str]) -> float:
    """Return how many words they are; two letters of a script without spaces are about one."""
    return sum(0.5 if is_unspaced(word) else 1 for word in words)


def likeness(one: str, other: str) -> float:
    """Return how much of their words two texts share, from 0 (nothing) to 1 (the same words, in any order).

    Texts without words, as a sign of thanks, are alike if they are the same.
    """
    first, second = Counter(words_in(one)), Counter(words_in(other))
    whole = first.total() + second.total()
    if not whole:
        return 1.0 if one.split() == other.split() != [] else 0.0
    return 2 * (first & second).total() / whole
