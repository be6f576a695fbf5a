"""Cuts texts into words, in the same way for stored texts and queries. Pure."""

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from intersession_events.basics.patterns import later

_WORD: Final = later(r"[^\W_]+")
_ASKED: Final = later(r"([^\W_]+)(\*?)")
_UNSPACED: Final = later(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+)"
)
"""Scripts that put no space between words: two characters in a row count as one."""
LONGEST: Final = 64
"""The number of letters of a word that count."""
_BEFORE: Final = 48
_SHOWN: Final = 160


class Term(NamedTuple):
    """A word of a query; with `begins`, any word that begins so."""

    text: str
    begins: bool


def terms(texts: Iterable[str]) -> set[str]:
    """Return all words of some texts, in lower case; of a word of more than 64 characters, its beginning."""
    return {term for text in texts for term in _words(folded(text))}


def words_in_order(text: str) -> list[str]:
    """Return the words of a text in lower case, with repetitions; scripts without spaces give each pair of letters."""
    return list(_words(folded(text)))


def is_unspaced(word: str) -> bool:
    """Whether a word is a part of a text in a script without spaces."""
    return _UNSPACED.match(word) is not None


def _words(folded: str) -> Iterator[str]:
    words = _WORD.findall(folded)
    if _UNSPACED.search(folded):
        return (piece for word in words for piece in _cut(word))
    return (word[:LONGEST] for word in words)


def terms_asked(text: str) -> tuple[Term, ...]:
    """Return the words of a query, each once; `word*` matches any that begins so. A text without letters has none."""
    asked: dict[Term, None] = {}
    for match in _ASKED.finditer(folded(text)):
        pieces = [piece for piece in _UNSPACED.split(match[1]) if piece]
        for at, piece in enumerate(pieces):
            if _UNSPACED.fullmatch(piece):
                pairs = [piece[start : start + 2] for start in range(max(len(piece) - 1, 1))]
                asked.update((Term(pair, len(pair) == 1), None) for pair in pairs)
            else:
                asked[Term(piece[:LONGEST], bool(match[2]) and at == len(pieces) - 1)] = None
    return tuple(asked)


def holds(found: Collection[str], asked: Iterable[Term]) -> bool:
    """Whether a text has all words of a query."""
    return all(
        any(word.startswith(term.text) for word in found) if term.begins else term.text in found
        for term in asked
    )


def snippet(texts: Iterable[str], asked: Collection[Term]) -> str:
    """Return the part of some texts around the first match, on one line."""
    whole = "\n".join(texts)
    at = next((match.start() for match in _WORD.finditer(whole) if _is_asked(match[0], asked)), 0)
    start = max(0, at - _BEFORE)
    if start:  # not in the middle of a word
        space = whole.find(" ", start, at)
        start = start if space < 0 else space + 1
    part = whole[start : start + _SHOWN]
    cut = " ".join(part.split())
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(whole) else ''}"


def _is_asked(word: str, asked: Collection[Term]) -> bool:
    found = terms((word,))
    return any(holds(found, (term,)) for term in asked)


def folded(text: str) -> str:
    """Return a text in lower case, and each letter in one form."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _cut(word: str) -> Iterator[str]:
    for piece in filter(None, _UNSPACED.split(word)):
        if _UNSPACED.fullmatch(piece):
            yield from (piece[at : at + 2] for at in range(len(piece)))
        else:
            yield piece[:LONGEST]
