"""Standard output and standard error for commands: many lines in one write, and rich only where the layout needs it."""

import codecs
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import RLock
from typing import IO, Final, TextIO

from rich.cells import cell_len
from rich.console import COLOR_SYSTEMS, Console
from rich.text import Text

_WIDE: Final = 10_000
"""The width of a pipe or a file: long lines are left to the reader."""
_NARROWEST: Final = 40
_READABLE: Final = 100
_BLOCK: Final = 16 * 1024
"""The most characters that are buffered: `head` gets its lines at once, and memory stays small."""
_GAP: Final = 2
"""The number of spaces between the columns of a table."""
_TAB: Final = 8
_LINES: Final = 64
"""The number of lines of a table that are made at once."""
NARROW: Final = re.compile("[ -~\u2010-\u2027\u2190-\u2193\u23ce]*+")
"""Texts whose characters take one column each: ASCII, and what the tables themselves have of dashes, dots and arrows."""


class _Console(Console):
    """A console that leaves a broken pipe to its command."""

    def on_broken_pipe(self) -> None:
        """Go on as every other write to a broken pipe does."""
        raise BrokenPipeError


class Output:
    """An output file, a terminal or not.

    What it is given is safe to print. rich takes some 200 µs for each call, so it lays out only what has to be broken or cut;
    other lines become the same characters without it.
    """

    def __init__(self, file: TextIO) -> None:
        reconfigure: Callable[..., None] | None = getattr(file, "reconfigure", None)
        if reconfigure is not None:
            # What an old encoding has no character for is shown in another way, not refused.
            reconfigure(errors=LEGIBLE)
        console = _plain_console(file)
        self.is_terminal: Final = console.is_terminal
        """Whether somebody looks at it."""
        self.width: Final = max(console.width, _NARROWEST) if self.is_terminal else _WIDE
        """How many characters fit on a line."""
        self.console: Final = _plain_console(file, self.width)
        self._colors = COLOR_SYSTEMS.get(self.console.color_system or "") if self.is_terminal else None
        self._lock = RLock()
        self._waiting: list[str] = []
        self._size = 0
        self._together = 0

    @property
    def file(self) -> IO[str]:
        """The file itself; `flush` before writing to it directly."""
        return self.console.file

    @property
    def encoding(self) -> str:
        """Its encoding."""
        return self.console.encoding

    @property
    def has_styles(self) -> bool:
        """Whether bold and colours are shown."""
        return self._colors is not None

    @contextmanager
    def together(self) -> Generator[None]:
        """Write lines in blocks for the time of a block. Otherwise each is written at once, for a reader that waits."""
        self._together += 1
        try:
            yield
        finally:
            self._together -= 1
            self.flush()

    def write(self, text: str) -> None:
        """Write characters, at once or in a block."""
        with self._lock:
            self._waiting.append(text)
            self._size += len(text)
            if not self._together or self._size >= _BLOCK:
                self.flush()

    def flush(self) -> None:
        """Write out what is buffered, so that a broken pipe shows now.

        Raises:
            BrokenPipeError: nobody reads it any more.
        """
        with self._lock:
            waiting, self._waiting, self._size = "".join(self._waiting), [], 0
            if waiting:
                self.file.write(waiting)
            self.file.flush()

    def unbroken(self, text: Text) -> None:
        """Print lines without breaking them."""
        for line in text.split(allow_blank=True):
            line.expand_tabs(_TAB)
            self.write(f"{self._styled(line)}\n")

    def plain(self, text: str) -> None:
        """Print lines without breaking them, for a program or a file."""
        if "\t" in text:
            self.unbroken(Text(text))
        else:
            self.write(f"{text}\n")

    def wrapped(self, text: Text) -> None:
        """Print lines, broken to fit."""
        for line in self.folded(text, self.width):
            self.laid_out(line)

    def cut(self, line: Text) -> None:
        """Print one line, cut to fit."""
        line.truncate(self.width, overflow="ellipsis")
        self.laid_out(line)

    def laid_out(self, line: Text) -> None:
        """Print one line that is already broken or cut to fit."""
        if self._fits(line.plain, self.width):
            self.write(f"{self._styled(line)}\n")
            return
        with self.console.capture() as captured:
            self.console.print(line, no_wrap=True)
        self.write(captured.get())

    def folded(self, text: Text, room: int) -> Iterator[Text]:
        """Yield lines, broken to fit into the columns."""
        for line in text.split(allow_blank=True):
            line.expand_tabs(_TAB)
            if self._fits(line.plain, room):
                yield line
            else:
                yield from line.wrap(self.console, room)

    def _fits(self, line: str, room: int) -> bool:
        """Whether nothing of a line has to be broken or cut to be shown in the columns. In doubt it has."""
        if line.isascii():
            return len(line) <= room
        # An emoji by what follows it is not as wide as its parts: rich knows where such a line breaks.
        return len(line) <= room and "\ufe0f" not in line and cell_len(line) <= room

    def columns(self, head: Sequence[str], table: Sequence[Sequence[str]]) -> bool:
        """Print a table from its columns, one line a row, if it fits. Return whether it did."""
        plain = _is_plain("".join(head)) and all(_is_plain("".join(column)) for column in table)
        cells = len if plain else _cells
        widths = [
            max(map(cells, (title, *column)))
            for title, column in zip(head, table or [()] * len(head), strict=True)
        ]
        if sum(widths) + _GAP * len(widths) > self.width:
            return False
        gap = " " * _GAP
        form = gap.join(f"%-{width}s" for width in widths)
        # A pipe gets no padding at the ends of lines.
        end = str if self.is_terminal else str.rstrip
        titles = [self._styled(Text(cell, "bold")) for cell in _padded(head, widths)]
        self.write(f"{end(self._styled(Text(gap, 'bold')).join(titles))}\n")
        rows = zip(*table, strict=True)
        while some := list(islice(rows, _LINES)):
            lines = map(form.__mod__, some) if plain else (gap.join(_padded(row, widths)) for row in some)
            self.write("\n".join([*map(end, lines), ""]))
        return True

    def paragraphs(self, table: Sequence[Sequence[str]], *, hanging: int) -> None:
        """Print a table from its columns, one paragraph a row: its first cell bold, later lines indented."""
        room, margin = self.width - hanging, "\n" + " " * hanging
        bold, _, usual = self._styled(Text("|", "bold")).partition("|")
        plain = all(_is_plain("".join(column)) for column in table)
        for first, *others in zip(*table, strict=True):
            line = "  ".join([first, *filter(None, others)])
            if len(first) <= room and (plain or _is_plain(line)):
                at = len(first)
                start, *more = broken(line, room)
                self.write(f"{bold}{margin.join([f'{start[:at]}{usual}{start[at:]}', *more])}\n")
                continue
            indent = Text("")
            for part in self.folded(Text.assemble((first, "bold"), line[len(first) :]), room):
                self.laid_out(indent + part)
                indent = Text(" " * hanging)

    def _styled(self, line: Text) -> str:
        """Return a line as the characters that show it, with its styles."""
        if self._colors is None:
            return line.plain
        if line.style:
            line = Text().append_text(line)
        legacy = self.console.legacy_windows
        return "".join(
            text if style is None else style.render(text, color_system=self._colors, legacy_windows=legacy)
            for text, style, _ in line.render(self.console)
        )


def _cells(text: str) -> int:
    """Return how many columns a text takes that has no control characters."""
    return len(text) if _is_plain(text) else cell_len(text)


def _is_plain(text: str) -> bool:
    """Whether each character of a text takes one column. In doubt it does not."""
    return text.isascii() or NARROW.fullmatch(text) is not None


def _padded(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell + " " * (width - _cells(cell)) for cell, width in zip(cells, widths, strict=True)]


def help_console() -> Console:
    """Return the console for help: as wide as the terminal, up to a readable width."""
    return _plain_console(sys.stdout, min(_plain_console(sys.stdout).width, _READABLE))


def _plain_console(file: TextIO, width: int | None = None) -> Console:
    """Return a console that takes nothing in a text for markup. With NO_COLOR it has no styles at all, bold neither."""
    return _Console(
        file=file,
        markup=False,
        highlight=False,
        emoji=False,
        width=width,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


def broken(line: str, room: int) -> list[str]:
    """Return the parts of a line, broken to fit into the columns, between words if possible.

    Spaces at its ends, and where it is broken, are left out. A word that is longer than a line begins one, and is cut.
    """
    parts: list[str] = []
    left = line.strip(" ")
    while len(left) > room:
        # The last space that ends a word which still fits; there is none where one word fills the line.
        stop = left.rfind(" ", 1, room + 1)
        if stop < 0:
            stop = room
        parts.append(left[:stop].rstrip(" "))
        left = left[stop:].lstrip(" ")
    parts.append(left)
    return parts


LEGIBLE: Final = "intersession.legible"
"""The name of this error handler, for `errors` of a file."""

_SIGNS: Final[Mapping[str, str]] = {
    "…": "~", "→": ">", "←": "<", "⏎": "/", "≠": "!", "·": ".", "•": "*", "✗": "x", "✓": "v", "⚙": "%", "■": "#",
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "▔": "-", "▁": "_", "▂": "_", "▃": "_", "▄": "_", "▅": "#", "▆": "#",
    "▇": "#", "█": "#", "▊": "|", "▌": "|", "▍": "|", "▎": "|",
    "─": "-", "│": "|", "├": "+", "┤": "+", "┊": ":", "⋮": ":", "▶": ">", "◀": "<",
}  # fmt: skip
"""Each is as wide as what stands for it, so that columns and lanes stay where they are."""


def _legible(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    told = (_SIGNS.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in letters)
    return "".join(told), error.end


codecs.register_error(LEGIBLE, _legible)
