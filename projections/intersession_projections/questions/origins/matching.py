"""Whether a text holds a phrase: exactly, else in any case and with any white space, else the longest run of its words. Pure."""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

Match = Literal["exact", "folded", "shared"]
"""How words were found: as they were given; in other case or white space; or as many of them in a row as there are."""

_WORD: Final = re.compile(r"\w+", re.UNICODE)
_ESCAPED: Final = re.compile(r'[\x00-\x1f"\\\x7f]+')
"""What a string of JSON writes otherwise, once more in a string inside of a string."""

_AS_NUMBERS: Final = b"\\u"
_SLASH: Final = b"\\/"
"""How JSON may write any letter, and a slash. JSON of others is kept as they wrote it: what a tool gave, what a model called it with."""
FOLDED_TO_ASCII: Final = "ßẞ\u017f\u212aİŉǰẖẗẘẙẚﬀﬁﬂﬃﬄﬅﬆ"
"""Letters beyond ASCII that are letters of ASCII, or have some in them, in small letters."""
_OTHERWISE: Final = re.compile(
    b"|".join([re.escape(_AS_NUMBERS), *(re.escape(one.encode()) for one in FOLDED_TO_ASCII)])
)
"""What may be a letter of ASCII in what is stored, and is not that letter."""

_FEWEST: Final = 3
"""A run of fewer words is anybody's: `of the` says nothing about where it came from."""


class Phrase(NamedTuple):
    """A phrase to look for, as it was given and as it is compared."""

    given: str
    folded: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, given: str) -> "Phrase":
        """Return a normalised phrase; white space around it does not count."""
        return cls(given.strip(), folded(given), tuple(_WORD.findall(given.casefold())))

    @property
    def fewest(self) -> int:
        """The least number of consecutive words that must be shared: three, or all but one of a shorter phrase."""
        return min(_FEWEST, max(len(self.words) - 1, 2))

    def plainest(self) -> bytes:
        """Return the longest part that our JSON writes unescaped."""
        part = max(_ESCAPED.split(self.given), key=len)
        return part.encode("utf-8", "surrogatepass")

    def may_hold(self, stored: bytes, plainest: bytes) -> bool:
        """Whether stored JSON may hold the phrase exactly, by a look at its bytes."""
        return plainest in stored or _AS_NUMBERS in stored or (b"/" in plainest and _SLASH in stored)

    def may_share(self, stored: bytes, more_than: int) -> bool:
        """Whether stored JSON may hold more than a minimum of the words in a row, by a look at its bytes."""
        low, run = stored.lower(), 0
        for word in self.words:
            # What is not ASCII may stand there in the other case.
            run = run + 1 if not word.isascii() or word.encode() in low else 0
            if run > more_than:
                return True
        return len(self.words) > more_than and _OTHERWISE.search(stored) is not None


def holds_as(match: Match, words: str) -> Callable[[str], bool]:
    """Return what tells whether a text holds words that were found so, in any case and white space."""
    phrase = Phrase.of(words)
    if match != "shared":
        return lambda text: holds(text, phrase) is not None
    everything = len(phrase.words) - 1
    return lambda text: longest_shared(text, phrase.words, more_than=everything) is not None


def folded(text: str) -> str:
    """Return a text in the form used for comparison: without case, with single spaces for white space."""
    return " ".join(text.casefold().split())


def holds(text: str, phrase: Phrase) -> Match | None:
    """Say how a text holds a whole phrase; None if it does not."""
    if phrase.given in text:
        return "exact"
    return "folded" if phrase.folded in folded(text) else None


def longest_shared(text: str, words: Sequence[str], *, more_than: int) -> tuple[int, int] | None:
    """Return the bounds of the longest run of words that a text shares, if it is longer than a minimum."""
    said = f" {' '.join(_WORD.findall(text.casefold()))} "
    best: tuple[int, int] | None = None
    most = more_than
    for begin in range(len(words)):
        while begin + most < len(words) and f" {' '.join(words[begin : begin + most + 1])} " in said:
            most += 1
            best = (begin, begin + most)
    return best
