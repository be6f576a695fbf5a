"""Lines of prose on a page: which are too long, and the same page with their paragraphs wrapped.

    python tests/support/pages/prose.py PAGE…    wraps pages, in place

Tables, blocks of code and what can't be broken (an address, a name) stay as they are.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

MOST: Final = 120

_FENCE: Final = re.compile(r"[ >]*(?:```|~~~)")
_KEPT: Final = re.compile(r"[ \t]*(?:\||#|<|$)|(?: {4,}|\t)(?![-*]|\d)")
"""Tables, headings, HTML, empty lines, indented code."""
_ITEM: Final = re.compile(r"(?P<indent> *)(?P<marker>(?:[-*+]|\d+\.) +|> *)")


def long_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of prose that are too long and could be broken, with their numbers."""
    return [(number, line) for number, line, prose in _lines(text) if prose and _is_too_long(line)]


def wrapped(text: str) -> str:
    """Return a page whose paragraphs with too long lines are wrapped anew; the others are as they were."""
    out: list[str] = []
    for paragraph, prose in _paragraphs(text):
        if prose and any(map(_is_too_long, paragraph)):
            out += _broken(" ".join([paragraph[0], *(line.strip() for line in paragraph[1:])]))
        else:
            out += paragraph
    return "\n".join(out)


def _is_too_long(line: str) -> bool:
    return len(line) > MOST and _broken(line) != [line]


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield each line with its number, and whether it is prose."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = _FENCE.match(line) is not None
        yield number, line, not (fence or inside or _KEPT.match(line))
        inside ^= fence


def _paragraphs(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the lines of a page in groups, a paragraph or an item of a list together, every other line alone; and which are prose."""
    begun = 0

    def group(entry: tuple[int, str, bool]) -> int:
        nonlocal begun
        number, line, prose = entry
        # What ends in two spaces or a backslash breaks there.
        if not prose or _ITEM.match(line) or begun < 0:
            begun = number
        found = begun
        if not prose or line.endswith(("  ", "\\")):
            begun = -1
        return found

    for _, entries in groupby(_lines(text), group):
        lines = list(entries)
        yield [line for _, line, _ in lines], lines[0][2]


def _broken(line: str) -> list[str]:
    item = _ITEM.match(line)
    first = item[0] if item else line[: len(line) - len(line.lstrip(" "))]
    return textwrap.wrap(
        line[len(first) :],
        width=MOST,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [line]


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(wrapped(page.read_text(encoding="utf-8")), encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
