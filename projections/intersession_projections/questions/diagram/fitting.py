"""Fits a text into room that is counted in cells: a letter takes one, a wide one two. Pure."""

import unicodedata


def cells(text: str) -> int:
    """Return how many cells a harmless text takes: columns of a terminal."""
    return sum(_cells(letter) for letter in text)


def _cells(letter: str) -> int:
    if letter.isascii():
        return 1
    if unicodedata.combining(letter) or unicodedata.category(letter) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1


def cut(text: str, room: int) -> str:
    """Return a text that has room, with a sign where it was cut."""
    if cells(text) <= room:
        return text
    kept, used = "", 0
    for letter in text:
        used += _cells(letter)
        if used > room - 1:
            break
        kept += letter
    return f"{kept}…"


def wrapped(text: str, room: int, most: int) -> list[str]:
    """Return a text in at most as many lines as have room, the last one cut."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < most - 1 and cells(rest) > room:
        line = cut(rest, room + 1).removesuffix("…")
        at = line.rfind(" ")
        line = line[:at] if at > room // 3 else line
        lines.append(line)
        rest = rest[len(line) :].lstrip()
    if rest:
        lines.append(cut(rest, room))
    return lines
