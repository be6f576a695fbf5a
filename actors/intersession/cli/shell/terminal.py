"""The terminal that commands print to: shows control characters and markup as they are, and gives a pipe plain text."""

import os
import select
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO
from unicodedata import category

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress

from intersession.cli.shell.documents import json_text
from intersession.cli.shell.old_encodings import LEGIBLE
from intersession_events.plain_json import JsonMapping
from intersession_events.printable import printable

_WIDE: Final = 10_000
"""The width of a pipe or a file: long lines are left to whoever reads it."""

_NARROWEST: Final = 40
_USUAL: Final = 80
_READABLE: Final = 100
_HANGING: Final = 4


class _Console(Console):
    """A console that leaves a broken pipe to whoever runs the command."""

    def on_broken_pipe(self) -> None:
        """Go on as every other write to a broken pipe does."""
        raise BrokenPipeError


def shown(text: str) -> str:
    """Return a text with all that would steer a terminal as escapes. Spaces of any width stay, lines and tabs too."""
    if text.isprintable():
        return text
    return "".join(letter if category(letter) == "Zs" else printable(letter) for letter in text)


def safe(text: str, style: str = "") -> Text:
    """Return a text as it can be printed: inert, and nothing in it is markup."""
    return Text(shown(text), style=style)


def one_line(text: str, limit: int | None = None, *, strip: bool = True) -> str:
    """Return a text on one line, cut to a number of characters."""
    line = shown(" ⏎ ".join(text.split("\n")).replace("\t", " "))
    line = line.strip() if strip else line
    return line if limit is None or len(line) <= limit else line[: max(0, limit - 1)] + "…"


class Screen:
    """Where a command shows what it found: results on standard output, everything else on standard error.

    Every plain string that is given is made safe here; a `Text` or a table must have been made of `safe` parts.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = _console(out or sys.stdout)
        self._err = _console(err or sys.stderr)
        self._bar: Progress | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks at standard output."""
        return self._out.is_terminal

    @property
    def width(self) -> int:
        """How many characters fit on a line."""
        return self._out.width

    def line(self, *parts: str | Text) -> None:
        """Show one paragraph, made of parts."""
        self._out.print(_joined(parts), soft_wrap=not self.is_terminal)

    def one_line(self, *parts: str | Text) -> None:
        """Show something on one line, whatever is in it; a terminal gets as much as it has room for.

        A narrow one gets as much as a usual one has room for, on a second and third line.
        """
        line = Text()
        for part in parts:
            text = safe(part) if isinstance(part, str) else part
            line.append(one_line(text.plain, strip=False), text.style)
        if not self.is_terminal:
            self._out.print(line, soft_wrap=True)
        elif self.width < _USUAL:
            line.truncate(_USUAL, overflow="ellipsis")
            self._hanging(line)
        else:
            self._out.print(line, no_wrap=True, overflow="ellipsis")

    def json_line(self, value: object) -> None:
        """Print a JSON document on one line."""
        self._out.file.write(f"{json_text(value, self._out.encoding, indent=None)}\n")
        self._out.file.flush()

    def look_for_reader(self) -> None:
        """Look whether anybody still reads what is printed.

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
        """Show one line that somebody may copy: it is never broken, however narrow the terminal is."""
        self._out.print(_joined(parts), soft_wrap=True)

    def indented(self, text: str | Text, by: int) -> None:
        """Show a text of any number of lines, all of them indented, also where a terminal would wrap them."""
        content = safe(text) if isinstance(text, str) else text
        if self.is_terminal:
            for line in content.wrap(self._out, max(self.width - by, _NARROWEST // 2)):
                self._out.print(Text(" " * by) + line, no_wrap=True)
            return
        for line in content.split("\n", allow_blank=True):
            self._out.print(Text(" " * by if line.plain else "") + line, soft_wrap=True)

    def unproven(self, found: Sequence[str]) -> None:
        """Say what a proof leaves open."""
        self.line(safe("Not proven by this:", "bold"))
        for what in found or ("nothing",):
            self.indented(what, 2)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Show a table; on a terminal where it has no room, a paragraph for each row."""
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, no_wrap=True)
        lines = [[one_line(cell) for cell in row] for row in rows]
        for line in lines:
            table.add_row(*(safe(cell) for cell in line))
        if self._fits(columns, lines):
            self._plain_or_rich(table)
            return
        for first, *others in lines:
            self._hanging(Text.assemble(safe(first, "bold"), safe("  ".join(["", *filter(None, others)]))))

    def note(self, *parts: str | Text) -> None:
        """Say something beside the result, on standard error."""
        self._err.print(_joined(parts), soft_wrap=not self._err.is_terminal)

    def tell_limit(self, found: JsonMapping, name: str, option: str) -> None:
        """Say beside an answer that it gives less, or more, than was asked for; `name` is what the answer has then."""
        if name in found:
            self.note(safe(f"note: {option} was taken as {found[name]}", "yellow"))

    @contextmanager
    def progress(self, what: str) -> Generator[Callable[[int, int | None], None]]:
        """Show a bar on standard error once it is first moved, if somebody looks; yields what moves it (done, of).

        Where nobody knows of how many, `of` is None. What was shown before on this screen is replaced.
        """
        if not self._err.is_terminal or self._err.color_system is None:
            yield lambda _done, _of: None
            return
        from rich import progress  # noqa: PLC0415 - few commands show one

        columns = (progress.TextColumn("{task.description}", markup=False), progress.BarColumn())
        rest = (progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
        bar = progress.Progress(*columns, *rest, console=self._err, transient=True)
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
        """Write out what is left, so that a broken pipe shows now."""
        self._out.file.flush()

    def _fits(self, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> bool:
        widths = [max(map(cell_len, column)) for column in zip(columns, *lines, strict=True)]
        return sum(widths) + 2 * len(widths) <= self.width

    def _hanging(self, text: Text) -> None:
        """Show a paragraph whose second and later lines are indented."""
        first, *more = text.wrap(self._out, self.width - _HANGING)
        self._out.print(first, no_wrap=True)
        for line in more:
            self._out.print(Text(" " * _HANGING) + line, no_wrap=True)

    def _plain_or_rich(self, what: RenderableType) -> None:
        if self.is_terminal:
            self._out.print(what)
            return
        # A pipe gets no padding at the ends of lines.
        with self._out.capture() as captured:
            self._out.print(what)
        for line in captured.get().splitlines():
            self._out.file.write(f"{line.rstrip()}\n")


def give_up_output() -> None:
    """Send what is still buffered nowhere, after a broken pipe: the interpreter flushes once more when it ends."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass


def _console(file: TextIO) -> Console:
    reconfigure: Callable[..., None] | None = getattr(file, "reconfigure", None)
    if reconfigure is not None:
        # What an old encoding has no character for is shown in another way, not refused.
        reconfigure(errors=LEGIBLE)
    console = _plain_console(file)
    return _plain_console(file, max(console.width, _NARROWEST) if console.is_terminal else _WIDE)


def help_console() -> Console:
    """Return the console that help is printed to: as wide as the terminal, but no wider than is good to read."""
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


def _joined(parts: Iterable[str | Text]) -> Text:
    joined = Text()
    for part in parts:
        joined.append_text(safe(part) if isinstance(part, str) else part)
    return joined
