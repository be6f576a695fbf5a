"""Finds secrets with a checksum: numbers of payment cards, and seed phrases (HIST-5). Pure.

Linear like `secrets.py`: each number and each word is looked at once, and a phrase has at most 24 words.
"""

import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import pairwise
from typing import Final

import msgspec

from intersession_events.basics.patterns import later
from intersession_events.facts import ready

Span = tuple[int, int]

_CARD: Final = later(
    r"[0-9](?<![\w.,:/#@+-][0-9])(?:[0-9]{13,15}+|[0-9]{3}(?P<gap>[ -])[0-9]{4}(?P=gap)[0-9]{4}(?P=gap)[0-9]{4}"
    r"|[0-9]{3}(?P<of_three>[ -])[0-9]{6}(?P=of_three)[0-9]{4,5})(?![\w@/-]|[.,:][0-9])"
)
_ISSUERS: Final = later(
    r"4[0-9]{15}|5[1-5][0-9]{14}|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|62[0-9]{14}"
)
"""How numbers of Visa, Mastercard, American Express, Diners, Discover, JCB and UnionPay begin, and how long they are."""

_WORD: Final = later(r"(?<![A-Za-z])[A-Za-z]{3,8}+(?![A-Za-z])")
_BETWEEN: Final = later(r"[\s,;|\"'`-]{0,6}+(?:[0-9]{1,2}[.):]?\s{0,3}+)?[\"']?")
_ROW: Final = later(rf"{_WORD.pattern}(?:{_BETWEEN.pattern}[A-Za-z]{{3,8}}+(?![A-Za-z]))*+")
_SIZES: Final = (24, 21, 18, 15, 12)
_FEWEST: Final = 12
_SHORTEST: Final = 12 * 3 + 11
"""How long a phrase is at least: 12 words of three letters, with something between them."""
_ANNOUNCES: Final = later(
    r"(?:seed|recovery|backup|secret|mnemonic|wallet)[ _-]?(?:phrase|words?|seed)|mnemonic|BIP-?39",
    re.IGNORECASE,
)
_NEAR: Final = 80


def proven(text: str) -> Iterator[Span]:
    """Yield the spans of secrets with a valid checksum."""
    for found in _CARD.finditer(text):
        digits = re.sub("[^0-9]", "", found[0])
        if _ISSUERS.fullmatch(digits) and _is_checked(digits):
            yield found.span()
    for words in _ROW.finditer(text):
        if words.end() - words.start() >= _SHORTEST:
            yield from _phrases(text, *words.span())


def _is_checked(digits: str) -> bool:
    """Whether the last digit is the one that the others ask for (Luhn)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number  # noqa: PLR2004 - its own rule
    return total % 10 == 0 and len(set(digits)) > 1


@ready
class _File(msgspec.Struct):
    words: list[str]


@cache
def _numbers() -> dict[str, int]:
    read = files(__package__ or "").joinpath("seed_words.json").read_bytes()
    words = " ".join(msgspec.json.decode(read, type=_File).words).split()
    return {word: number for number, word in enumerate(words)}


def _phrases(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield where phrases stand among words of a fitting length that follow each other."""
    numbers, row = _numbers(), list[tuple[Span, int]]()
    for found in _WORD.finditer(text, start, end):
        number = numbers.get(found[0].lower())
        if row and (number is None or not _BETWEEN.fullmatch(text, row[-1][0][1], found.start())):
            yield from _in_row(text, row)
            row = []
        if number is not None:
            row.append((found.span(), number))
    yield from _in_row(text, row)


def _in_row(text: str, row: list[tuple[Span, int]]) -> Iterator[Span]:
    """Yield the words of phrases among words of the list that follow each other: by their check, or since they are announced."""
    if len(row) < _FEWEST:
        return
    if _ANNOUNCES.search(text, max(0, row[0][0][0] - _NEAR), row[0][0][0]):
        yield from (span for span, _ in row)
        return
    at = 0
    while at + _FEWEST <= len(row):
        size = next((size for size in _SIZES if at + size <= len(row) and _is_phrase(row[at : at + size])), 0)
        if size:
            yield from (span for span, _ in row[at : at + size])
        at += size or 1


def _is_phrase(row: list[tuple[Span, int]]) -> bool:
    """Whether the last bits of a phrase are the check of the others; one word in a row, again and again, fails."""
    if all(one[1] == other[1] for one, other in pairwise(row)):
        return False
    check = len(row) // 3
    bits = 0
    for _, number in row:
        bits = bits << 11 | number
    entropy = (bits >> check).to_bytes(len(row) * 4 // 3, "big")
    return sha256(entropy).digest()[0] >> (8 - check) == bits & ((1 << check) - 1)
