"""Fits a text to a channel: escapes it, and cuts it into parts if it is too long.

A part ends where a reader pauses: behind a paragraph, else a line, else a word. Nothing but blanks is left out between two
parts. A block of code is not torn where it fits a part; else each piece of it has its own fences.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from intersession_actors.outside.channels.channels import Channel, DeliveryRefused

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n")
_LINE: Final = re.compile(r"\n")
_WORD: Final = re.compile(r"\s")
_GAP: Final = re.compile(r"(?:[^\S\n]*\n)+|[^\S\n]+")
_JOINER: Final = "\u200d"
_JOINED: Final = frozenset({"Mn", "Mc", "Me", "Cf"})
"""Kinds of characters that belong to the one before them."""
_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAGS: Final = range(0x1F1E6, 0x1F200)
_VOWELS_AND_TAILS: Final = range(0x1160, 0x1200)
_LONGEST_CLUSTER: Final = 64

Escape = Callable[[str], str]


class Part(NamedTuple):
    """A part of a text for a channel. `sent` is how far into the text it reaches; None is to its end."""

    text: str
    sent: int | None


class _Block(NamedTuple):
    """A block of code: where it begins and ends, and the lines that open and close it."""

    begins: int
    ends: int
    opening: str
    closing: str


def fitted(text: str, channel: Channel, begins: int = 0) -> Part:
    """Return the next part of a text, after the characters that were sent.

    Raises:
        DeliveryRefused: not even one character fits, once it is escaped.
    """
    escape, most = channel.escape or _as_it_is, channel.max_chars
    if most is None:
        return Part(escape(text[begins:]), None)
    if begins == 0 and len(whole := escape(text)) <= most:
        return Part(whole, None)
    blocks = list(_blocks(text))
    while True:
        part = _part(text, begins, most, escape, blocks) or _part(text, begins, most, escape, [])
        if part is None:
            raise DeliveryRefused(
                f"max_chars={most} has no room for {text[begins]!r} once it is escaped; let the channel take more"
            )
        if part.sent is None or text[begins : part.sent].strip():
            return part
        begins = part.sent  # nobody takes a part of nothing but blanks


def _part(text: str, begins: int, most: int, escape: Escape, blocks: list[_Block]) -> Part | None:
    """Return the next part; None if there is no room for one."""
    opened = _around(blocks, begins)
    head = "" if opened is None else f"{opened.opening}\n"
    if len(text) - begins <= most and len(rest := escape(head + text[begins:])) <= most:
        return Part(rest, None)
    room = max((len(block.closing) + 1 for block in blocks), default=0)
    # Of characters that escaping adds there is no telling, so the longest piece that fits is searched for.
    low, high = begins, min(len(text), begins + most)
    while low < high:
        middle = (low + high + 1) // 2
        if len(escape(head + text[begins:middle])) + room <= most:
            low = middle
        else:
            high = middle - 1
    end = _break(text, begins, low, most, blocks)
    if end <= begins:
        return None
    cut = _around(blocks, end)
    tail = "" if cut is None else f"\n{cut.closing}"
    part = escape(head + text[begins:end].rstrip() + tail)
    if len(part) > most:  # an escape that makes a shorter text longer
        return None
    gap = _GAP.match(text, end)
    sent = end if gap is None else gap.end()
    if cut is not None and text[sent : cut.ends].strip() in {"", cut.closing}:
        sent = cut.ends  # the line that closes the block has gone out
        gap = _GAP.match(text, sent)
        sent = sent if gap is None else gap.end()
    return Part(part, sent if text[sent:].strip() else None)


def _break(text: str, begins: int, end: int, most: int, blocks: list[_Block]) -> int:
    """Return where a part ends that may reach to `end` at most."""
    if end <= begins:
        return begins
    block = _around(blocks, end)
    if block is not None and block.begins > begins and block.ends - block.begins <= most:
        return block.begins
    half = begins + (end - begins) // 2
    found: int | None = None
    if block is None:
        found = _last(_PARAGRAPH, text, half, end, blocks)
    if found is None:
        found = _last(_LINE, text, half, end, [] if block else blocks)
    if found is None and block is not None:
        found = _last(_LINE, text, begins, end, [])
    if found is None:
        found = _last(_WORD, text, begins, end, [])
    return _whole_letters(text, begins, end) if found is None else found


def _last(pattern: re.Pattern[str], text: str, after: int, end: int, blocks: list[_Block]) -> int | None:
    """Return where the last pause of a kind begins, behind `after` and in no block of code."""
    found = None
    for pause in pattern.finditer(text, after + 1, end + 1):
        if pause.start() <= end and _around(blocks, pause.start()) is None:
            found = pause.start()
    return found


def _whole_letters(text: str, begins: int, end: int) -> int:
    """Return the last place up to `end` that is not within what a reader takes for one letter."""
    for at in range(end, max(begins, end - _LONGEST_CLUSTER), -1):
        if not _is_within_letter(text, at):
            return at
    return end


def _is_within_letter(text: str, at: int) -> bool:
    if at >= len(text):
        return False
    before, behind = text[at - 1], text[at]
    if _JOINER in {before, behind} or unicodedata.category(behind) in _JOINED:
        return True
    if ord(behind) in _TONES or ord(behind) in _VOWELS_AND_TAILS:
        return True
    if ord(before) in _FLAGS and ord(behind) in _FLAGS:
        flags = 0
        while flags < at and ord(text[at - 1 - flags]) in _FLAGS:
            flags += 1
        return flags % 2 == 1
    return before == "\r" and behind == "\n"


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the blocks of code of a text; one that is not closed ends with the text."""
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            if fence[1][0] == "~" or "`" not in fence[2]:
                opening = fence
        elif fence[1].startswith(opening[1]) and not fence[2].strip():
            yield _Block(opening.start(), fence.end(), opening[0], opening[1])
            opening = None
    if opening is not None:
        yield _Block(opening.start(), len(text), opening[0], opening[1])


def _around(blocks: list[_Block], at: int) -> _Block | None:
    """Return the block of code that goes on at a place; None where none does."""
    index = bisect_right(blocks, at, key=lambda block: block.begins) - 1
    if index >= 0 and blocks[index].begins < at < blocks[index].ends:
        return blocks[index]
    return None


def _as_it_is(text: str) -> str:
    return text
