"""What a command shows is written in blocks, and comes out to the byte as if rich had printed each line on its own."""

import contextlib
import io
import os
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from intersession.cli.shell.output import LEGIBLE, NARROW
from intersession.cli.shell.run import main
from intersession.cli.shell.terminal import Screen, one_line, safe
from support.every_day import every_day
from support.hostile import given as given_of
from support.hostile import rows
from support.story import MAIN, PERSON, Story

WIDTHS = (40, 60, 80, 100)
COLOURS = {"none": {"TERM": "dumb"}, "256": {"TERM": "xterm-256color"}, "no": {"NO_COLOR": "1"}}
STYLES = ("", "dim", "bold", "bold cyan", "red", "dim italic")
HOSTILE = [str(given_of(row)) for row in rows("R")]
ODD = [
    "",
    " ",
    "\n\n",
    "\t",
    "a\tb\tcd\t\te\n\tf",
    "東京\tさくら\t|",
    " " * 130,
    "x" * 250,
    "b" * 47 + " " + "b" * 47,
    "été → « 3 » … ✓ ",
    "東京さくら" * 25,
    "한국어 " * 25,
    "\u3000" * 60,
    "a\u00a0b " * 40,
    "e\u0301" * 70,
    "\u0301" * 150,
    "❤\ufe0f " * 30,
    "1\ufe0f\u20e3" * 40,
    "👩\u200d👩\u200d👧 ✌🏽 " * 12,
    "क्षि " * 30,
    "שלום עולם " * 12,
    "\x1b[31mred\x1b[0m " * 9,
    "[bold]no[/] :smile: ",
    *("z" * count for width in WIDTHS for count in (width - 1, width, width + 1)),
    *("東" * (width // 2) + tail for width in WIDTHS for tail in ("", "a", " a")),
]


class Terminal(io.StringIO):
    """A terminal that keeps what it is given, and counts how often."""

    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__()
        self.writes: list[int] = []
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        self.writes.append(len(text))
        return super().write(text)


class OnePrintALine:
    """The screen as rich alone would do it: one call for each line."""

    def __init__(self, file: Terminal) -> None:
        self._is_terminal = file.isatty()
        plain: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False}
        colours: Any = None if os.environ.get("NO_COLOR") else "auto"
        width = int(os.environ["COLUMNS"]) if self._is_terminal else 10_000
        self._rich = Console(file=file, width=width, color_system=colours, **plain)

    def line(self, *parts: str | Text) -> None:
        self._rich.print(joined(map(on_a_line, parts)), soft_wrap=not self._is_terminal)

    def to_copy(self, *parts: str | Text) -> None:
        self._rich.print(joined(map(on_a_line, parts)), soft_wrap=True)

    def one_line(self, *parts: str | Text) -> None:
        line = Text()
        for part in parts:
            text = safe(part) if isinstance(part, str) else part
            line.append(one_line(text.plain, strip=False), text.style)
        if not self._is_terminal:
            self._rich.print(line, soft_wrap=True)
        elif self._rich.width < 80:
            line.truncate(80, overflow="ellipsis")
            self.hanging(line)
        else:
            self._rich.print(line, no_wrap=True, overflow="ellipsis")

    def indented(self, text: str | Text, by: int) -> None:
        content = safe(text) if isinstance(text, str) else text
        if self._is_terminal:
            for line in content.wrap(self._rich, max(self._rich.width - by, 20)):
                self._rich.print(Text(" " * by) + line, no_wrap=True)
            return
        for line in content.split("\n", allow_blank=True):
            self._rich.print(Text(" " * by if line.plain else "") + line, soft_wrap=True)

    def table(self, columns: Iterable[str], found: Iterable[Iterable[str]]) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, no_wrap=True)
        for row in found:
            table.add_row(*(safe(one_line(cell)) for cell in row))
        if self._is_terminal:
            self._rich.print(table)
            return
        with self._rich.capture() as captured:
            self._rich.print(table)
        for line in captured.get().splitlines():
            self._rich.file.write(f"{line.rstrip()}\n")

    def hanging(self, text: Text) -> None:
        first, *more = text.wrap(self._rich, self._rich.width - 4)
        self._rich.print(first, no_wrap=True)
        for line in more:
            self._rich.print(Text(" " * 4) + line, no_wrap=True)


def on_a_line(part: str | Text) -> str | Text:
    plain = part if isinstance(part, str) else part.plain
    if "\n" not in plain:
        return part
    return Text(one_line(plain, strip=False), style="" if isinstance(part, str) else part.style)


def joined(parts: Iterable[str | Text]) -> Text:
    whole = Text()
    for part in parts:
        whole.append_text(safe(part) if isinstance(part, str) else part)
    return whole


def same(show: Callable[[Any], object], width: int, colours: str, *, is_terminal: bool = True) -> None:
    """Have both screens show it, and compare what came out."""
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("NO_COLOR", raising=False)
        for name, value in {"COLUMNS": str(width), "LINES": "30", **COLOURS[colours]}.items():
            patched.setenv(name, value)
        ours, by_rich = Terminal(is_terminal=is_terminal), Terminal(is_terminal=is_terminal)
        screen = Screen(ours, io.StringIO())
        with screen.together():
            show(screen)
        show(OnePrintALine(by_rich))
    assert ours.getvalue() == by_rich.getvalue()


def everything(screen: Any, texts: Iterable[str]) -> None:
    """Show texts in each way there is."""
    for number, text in enumerate(texts):
        style = STYLES[number % len(STYLES)]
        screen.line(text)
        screen.line(safe(text, style), safe(" → ", "dim"), text)
        screen.line(safe("#12  ", "dim"), safe(f"{text}\nnext {text}", style))
        screen.one_line(safe(text, style), f"  {text}", safe("  ← #7", "dim"))
        screen.to_copy(safe(f"more: {text}", style))
        screen.indented(safe(text, style), number % 7)
        screen.indented(f"{text}\n\n{text} ", 4)


@pytest.mark.parametrize("colours", COLOURS)
@pytest.mark.parametrize("width", every_day(WIDTHS, 40))
def test_hostile_and_odd_texts_are_shown_to_the_byte_as_rich_alone_would(width: int, colours: str) -> None:
    same(lambda screen: everything(screen, HOSTILE + ODD), width, colours)


def test_a_pipe_gets_them_to_the_byte_as_well() -> None:
    same(lambda screen: everything(screen, HOSTILE + ODD), 80, "256", is_terminal=False)


LETTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from(
    [*" \t\n", "東", "\u0301", "\ufe0f", "\u200d", "👧", "é", "→"]
)
TEXTS = st.lists(st.text(LETTERS, max_size=30), min_size=1, max_size=5).map(" ".join)


@given(
    texts=st.lists(TEXTS, max_size=3),
    width=st.sampled_from(WIDTHS),
    colours=st.sampled_from(sorted(COLOURS)),
    is_terminal=st.booleans(),
)
def test_any_text_is_shown_to_the_byte_as_rich_alone_would(
    texts: list[str], width: int, colours: str, *, is_terminal: bool
) -> None:
    same(lambda screen: everything(screen, texts), width, colours, is_terminal=is_terminal)


@settings(max_examples=60)
@given(
    found=st.lists(st.tuples(*[st.text(LETTERS, max_size=3)] * 3), max_size=5),
    colours=st.sampled_from(sorted(COLOURS)),
    is_terminal=st.booleans(),
)
def test_a_table_is_shown_to_the_byte_as_rich_alone_would(
    found: list[tuple[str, str, str]], colours: str, *, is_terminal: bool
) -> None:
    head = ["id", "how it stands", "cause"]
    same(lambda screen: screen.table(head, found), 100, colours, is_terminal=is_terminal)


def test_signs_that_tables_take_for_narrow_are_narrow_for_rich_too() -> None:
    narrow = [chr(sign) for sign in range(0x3000) if sign > 0x7F and NARROW.fullmatch(chr(sign))]

    assert "→" in narrow
    assert [sign for sign in narrow if cell_len(sign) != 1] == []


@pytest.mark.parametrize("lines", [1_000, 4_000])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_lines_that_fit_are_written_together_and_cost_rich_nothing(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, lines: int
) -> None:
    """12,358 lines of a replay were 12,358 calls of rich, and as many writes: three seconds (issue 10)."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    printed: list[object] = []
    monkeypatch.setattr(Console, "print", lambda *given, **_: printed.append(given))
    file = Terminal(is_terminal=is_terminal)
    screen = Screen(file, io.StringIO())

    with screen.together():
        for number in range(lines):
            screen.line(safe(f"#{number}  ", "dim"), safe("main → research · ", "cyan"), "says")
            screen.indented("Up to 3.5 tonnes.", 6)
            screen.one_line(safe(f"#{number}", "dim"), "  run_completed")
        screen.table(["position", "event"], [(f"#{number}", "run_completed") for number in range(lines)])

    whole = file.getvalue()
    assert printed == []
    assert whole.count("\n") == 4 * lines + 1
    assert len(file.writes) <= len(whole) // 10_000 + 2


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of a session to which many people say much."""
    path = tmp_path_factory.mktemp("long") / "long.db"
    story = Story(path)
    story.open()
    for number in range(400):
        story.say(MAIN, f"Is crossing {number} open?\nI have to be there at four.", provenance=PERSON)
    story.close()
    return path


@pytest.mark.parametrize("is_terminal", every_day([True, False], True))
@pytest.mark.parametrize(
    "command",
    [
        ("replay", "main"),
        ("replay", "main", "--steps"),
        ("history", "main", "--raw"),
        ("history", "main", "--limit", "400"),
        ("state", "main", "--messages", "400"),
        ("events", "--limit", "400"),
        ("events", "--jsonl"),
        ("messages", "--limit", "400"),
        ("search", "crossing", "--limit", "400"),
    ],
    ids=" ".join,
)
def test_a_command_writes_many_lines_at_once(
    long_log: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], *, is_terminal: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm-256color")
    printed: list[object] = []
    monkeypatch.setattr(Console, "print", lambda *given, **_: printed.append(given))
    file = Terminal(is_terminal=is_terminal)

    with contextlib.redirect_stdout(file):
        exit_code = main([*command, "--store", str(long_log)])

    assert (exit_code, printed) == (0, [])
    assert file.getvalue().count("\n") >= 400
    assert len(file.writes) <= file.tell() // 10_000 + 2


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_first_lines_come_while_the_others_are_made_and_few_wait(*, is_terminal: bool) -> None:
    """`intersession replay main | head` has its lines at once, and memory stays small whatever is shown."""
    file = Terminal(is_terminal=is_terminal)
    screen = Screen(file, io.StringIO())
    behind = []

    with screen.together():
        for number in range(5_000):
            screen.line(f"line {number:4} of a long story")
            behind.append((number + 1) * 26 - sum(file.writes))

    assert max(behind) < 20_000
    assert sum(later < earlier for earlier, later in pairwise(behind)) > 5
    assert file.getvalue().splitlines()[-1] == "line 4999 of a long story"


def test_who_waits_for_the_next_line_has_each_at_once() -> None:
    """`tail` and `send` show what comes, when it comes."""
    file = Terminal(is_terminal=False)
    screen = Screen(file, io.StringIO())

    for number in range(3):
        screen.line(f"event {number}")
        screen.json_line({"event": number})

        assert len(file.writes) == 2 * (number + 1)


def test_what_is_said_beside_the_result_stands_where_it_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    both = Terminal()
    screen = Screen(both, both)

    with screen.together():
        screen.line("before")
        screen.note("note: beside")
        screen.line("behind")

    assert both.getvalue().splitlines() == ["before", "note: beside", "behind"]


def test_what_was_shown_before_an_error_is_not_lost() -> None:
    file = Terminal(is_terminal=False)
    screen = Screen(file, io.StringIO())

    def interrupted() -> None:
        with screen.together():
            screen.line("before Ctrl-C")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert file.getvalue() == "before Ctrl-C\n"


class Closed(Terminal):
    """A pipe that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(f"{len(text)} characters")


def test_a_pipe_that_nobody_reads_ends_the_command_once() -> None:
    screen = Screen(Closed(is_terminal=False), io.StringIO())

    def shown() -> None:
        with screen.together():
            for number in range(10_000):
                screen.line(f"line {number}")

    with pytest.raises(BrokenPipeError):
        shown()
    screen.flush()  # nothing waits any more that would be written again


def test_an_old_encoding_shows_signs_in_ascii_in_blocks_too() -> None:
    raw = io.BytesIO()
    screen = Screen(io.TextIOWrapper(raw, encoding="ascii"), io.StringIO())

    with screen.together():
        screen.line("main → research · é")

    assert raw.getvalue().rstrip() == "main → research · é".encode("ascii", LEGIBLE)
