"""The terminal that commands print to: shows control characters and markup as they are, and gives a pipe plain text."""

import json
import os
import re
import select
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO
from unicodedata import category

from rich.text import Text

from intersession.cli.shell.output import Output
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.basics.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress


_LEAST_ROOM: Final = 20
"""The least number of columns of an indented text."""
_USUAL: Final = 80
_HANGING: Final = 4


def shown(text: str) -> str:
    """Return a text with everything that would steer a terminal escaped. Spaces of any width, line feeds and tabs stay."""
    if text.isprintable():
        return text
    return "\n".join(
        line
        if line.isprintable()
        else "".join(letter if category(letter) == "Zs" else printable(letter) for letter in line)
        for line in text.split("\n")
    )


def safe(text: str, style: str = "") -> Text:
    """Return a text for printing: inert, and without markup."""
    return Text(shown(text), style=style)


def one_line(text: str, limit: int | None = None, *, strip: bool = True) -> str:
    """Return a text on one line, cut to a number of characters."""
    line = text if text.isprintable() else shown(" ⏎ ".join(text.split("\n")).replace("\t", " "))
    line = line.strip() if strip else line
    return line if limit is None or len(line) <= limit else line[: max(0, limit - 1)] + "…"


class Screen:
    """The output of a command: results on standard output, everything else on standard error.

    Every plain string that is given is made safe here; a `Text` or a table must have been made of `safe` parts.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = Output(out or sys.stdout)
        self._err = Output(err or sys.stderr)
        self._bar: Progress | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether standard output is a terminal."""
        return self._out.is_terminal

    @property
    def width(self) -> int:
        """How many characters fit on a line."""
        return self._out.width

    @contextmanager
    def together(self) -> Generator[None]:
        """Write shown lines in blocks, for the time of a block that waits for nothing."""
        with self._out.together():
            yield

    def styled(self, text: str, style: str) -> str | Text:
        """Return a part of a line in a style, or plain text where styles are not shown: most of a long answer is such parts."""
        return safe(text, style) if self._out.has_styles else text

    def line(self, *parts: str | Text) -> None:
        """Show one paragraph of several parts: a line feed in a part can't begin a line that looks like ours."""
        self._show(parts, self._out.wrapped)

    def _show(self, parts: Iterable[str | Text], on_terminal: Callable[[Text], None]) -> None:
        parts = list(map(_on_one_line, parts))
        if self.is_terminal:
            on_terminal(_joined(parts))
        else:
            self._out.plain(_plain(parts))

    def dim(self, text: str) -> None:
        """Show one paragraph of lesser weight."""
        self.line(safe(text, "dim"))

    def more(self, cursor: str | None) -> None:
        """Say how to get the next page, if there is one."""
        if cursor is not None:
            self.to_copy(safe(f"more: --cursor {cursor}", "dim"))

    def one_line(self, *parts: str | Text) -> None:
        """Show any text on one line; a terminal gets as much as fits.

        A narrow one gets as much as a usual one has room for, on a second and third line.
        """
        if not self.is_terminal:
            self._out.plain(one_line(_plain(parts), strip=False))
            return
        line = Text()
        for part in parts:
            text = safe(part) if isinstance(part, str) else part
            line.append(one_line(text.plain, strip=False), text.style)
        if self.width < _USUAL:
            line.truncate(_USUAL, overflow="ellipsis")
            first, *more = self._out.folded(line, self.width - _HANGING)
            for part in (first, *(Text(" " * _HANGING) + one for one in more)):
                self._out.laid_out(part)
        else:
            self._out.cut(line)

    def json_line(self, value: object) -> None:
        """Print a JSON document on one line."""
        self._out.write(f"{json_text(value, self._out.encoding, indent=None)}\n")

    def grow(self, text: str) -> None:
        """Show a piece of a text, at once and behind the one before it."""
        self._out.write(shown(text))

    def look_for_reader(self) -> None:
        """Raise if the reader of the output is gone.

        Raises:
            BrokenPipeError: nobody does. Else it would show with the next line only.
        """
        try:
            poll = select.poll()
            poll.register(self._out.file.fileno(), 0)
            gone = poll.poll(0)
        except (AttributeError, OSError, ValueError):
            return  # not a file of the system's, or a system that can't tell
        if gone:
            raise BrokenPipeError

    def to_copy(self, *parts: str | Text) -> None:
        """Show one line for copying: it is never broken, however narrow the terminal is."""
        self._show(parts, self._out.unbroken)

    def indented(self, text: str | Text, by: int) -> None:
        """Show a text of any number of lines, all of them indented, also wrapped ones."""
        margin = " " * by
        if self.is_terminal:
            content = safe(text) if isinstance(text, str) else text
            for line in self._out.folded(content, max(self.width - by, _LEAST_ROOM)):
                self._out.laid_out(Text(margin) + line)
            return
        for part in _plain([text]).split("\n"):
            self._out.plain(f"{margin}{part}" if part else "")

    def unproven(self, found: Sequence[str]) -> None:
        """Say what a proof leaves unproven."""
        self.line(safe("Not proven by this:", "bold"))
        for what in found or ("nothing",):
            self.indented(what, 2)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Show a table; where it does not fit on a terminal, a paragraph for each row."""
        cells = [*map(_one_line_each, zip(*rows, strict=True))]
        if not self._out.columns(columns, cells):
            self._out.paragraphs(cells, hanging=_HANGING)

    def note(self, *parts: str | Text) -> None:
        """Print a note to standard error."""
        with suppress(BrokenPipeError):  # what is shown next finds that out, too
            self._out.flush()
        # By rich, which keeps a bar below it.
        self._err.console.print(_joined(parts), soft_wrap=not self._err.is_terminal)

    def tell_limit(self, found: JsonMapping, name: str, option: str) -> None:
        """Note that an answer has fewer, or more, rows than were asked for; `name` names the rows."""
        if name in found:
            self.note(safe(f"note: {option} was taken as {found[name]}", "yellow"))

    @contextmanager
    def progress(self, what: str) -> Generator[Callable[[int, int | None], None]]:
        """Show a progress bar on standard error from its first move, on a terminal; yields a function of (done, of).

        Where nobody knows of how many, `of` is None. What was shown before on this screen is replaced.
        """
        if not self._err.is_terminal or not self._err.has_styles:
            yield lambda _done, _of: None
            return
        from rich import progress  # noqa: PLC0415 - few commands show one

        columns = (progress.TextColumn("{task.description}", markup=False), progress.BarColumn())
        rest = (progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
        bar = progress.Progress(*columns, *rest, console=self._err.console, transient=True)
        tasks: list[progress.TaskID] = []

        def move(done: int, of: int | None) -> None:
            if not tasks:
                if self._bar is not None:
                    self._bar.stop()
                self._bar = bar
                bar.start()
                tasks.append(bar.add_task(shown(what), total=None))
            bar.update(tasks[0], completed=done, total=of)

        try:
            yield move
        finally:
            if tasks:
                bar.stop()

    def flush(self) -> None:
        """Write out what is buffered, so that a broken pipe shows now."""
        self._out.flush()


def _one_line_each(column: tuple[str, ...]) -> list[str]:
    """Return each cell of a column on one line; most columns have nothing that has to be looked at by itself."""
    return list(map(str.strip if "".join(column).isprintable() else one_line, column))


def have_streams() -> None:
    """Replace standard streams that the parent process has closed: empty input, discarded output.

    The next file that is opened would else get the number of what was closed, and be printed into.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for as long as the process lives


def give_up_output() -> None:
    """Discard buffered output after a broken pipe: the interpreter flushes once more at its end."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass


def _on_one_line(part: str | Text) -> str | Text:
    plain, style = (part, "") if isinstance(part, str) else (part.plain, part.style)
    return Text(one_line(plain, strip=False), style=style) if "\n" in plain else part


def _plain(parts: Iterable[str | Text]) -> str:
    return "".join(shown(part) if isinstance(part, str) else part.plain for part in parts)


def _joined(parts: Iterable[str | Text]) -> Text:
    joined = Text()
    for part in parts:
        joined.append_text(safe(part) if isinstance(part, str) else part)
    return joined


_UNUSUAL: Final = re.compile(r"[^ -~\n]+")
_DELETE: Final = "\x7f"
"""The one character of ASCII that a terminal acts on and JSON does not escape."""


def json_text(value: object, encoding: str | None, *, indent: int | None = 2) -> str:
    """Return a JSON document that is inert in a terminal: unprintable characters are escaped.

    Nothing but ASCII goes to what is not UTF-8. Without an indent it is one line.
    """
    ensure_ascii = (encoding or "").lower().replace("-", "").replace("_", "") != "utf8"
    text = json.dumps(value, ensure_ascii=ensure_ascii)
    inert = _DELETE not in text if text.isascii() else text.isprintable()
    if indent is not None:
        import msgspec  # noqa: PLC0415 - help prints no document

        try:
            text = msgspec.json.format(text, indent=indent)
        except (UnicodeEncodeError, msgspec.DecodeError):
            # Half a pair of surrogates, or NaN. `json` has a way with them, in Python and three times as slow.
            text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
    return text if inert else _UNUSUAL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in found.group()
    )
