"""Parts of the screen of `intersession step`: the diagram, of which only visible lines are drawn, and overlaid texts."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from intersession_projections.questions.diagram.text import Line

_STYLES: Final = {
    "head": Style(bold=True),
    "tool": Style(dim=True),
    "gap": Style(dim=True),
    "failed": Style(color="red"),
    "end": Style(bold=True),
}
_HERE: Final = Style(reverse=True)
_LATER: Final = Style(dim=True)


class DrawnRun(ScrollView, inherit_bindings=False):
    """The lines of a diagram. The line of the place is marked, lines after it are dimmed."""

    # Those of every part that scrolls, but for home and end: they move the place.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
    ]

    def __init__(self, *, id: str) -> None:  # noqa: A002 - the library's word
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._position = 0

    def show(self, lines: Sequence[Line], position: int) -> None:
        """Draw these lines, as seen from a position."""
        self._lines, self._position = lines, position
        self.virtual_size = Size(max((len(line.text) for line in lines), default=0), len(lines))
        self._keep_in_view()
        self.refresh()

    def on_resize(self) -> None:
        """Keep the place in view when there is less room."""
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        here = [
            number
            for number, line in enumerate(self._lines)
            if line.position is not None and line.position <= self._position
        ]
        last = here[-1] if here else 0
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if not top <= last < top + height - 1:
            # Not put off until after the next refresh: what is seen and what is marked go together.
            self.scroll_to(y=max(last - height // 2, 0), animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        """Return one visible line."""
        offset = self.scroll_offset
        number = y + offset.y
        if not 0 <= number < len(self._lines):
            return Strip.blank(self.size.width)
        line = self._lines[number]
        strip = Strip([Segment(line.text, self._style(line))])
        return strip.crop_extend(offset.x, offset.x + self.size.width, None)

    def _style(self, line: Line) -> Style:
        if line.position is not None and line.position == self._position:
            return _HERE
        if line.position is not None and line.position > self._position:
            return _LATER
        return _STYLES.get(line.kind, Style.null())


HELP: Final = (
    ("right, left", "next event, event before"),
    ("n, p", "next answer, answer before"),
    ("], [", "next run of the same session, run before"),
    ("home, end", "before the first event, after the last"),
    ("c, e", "cause, effect"),
    ("g", "go to a place: @turn:3, @end, 412, event:ID, a time, head, …"),
    ("/", "find words"),
    ("b", "break on kind:NAME, session:NAME or words"),
    ("r, R", "run on to the break, run back to it"),
    ("l, L", "lens: what was given to whoever has answered here, and to whoever is asked next"),
    ("w", "why: what led to the event, and by which rule it ended"),
    (
        "d",
        "what differs between this run and another one, or here and a place (@turn:1); with nothing typed, what it changed",
    ),
    (
        "f",
        "fork here: its command, with what is otherwise (--reply TEXT, --skip, --agent '*=recorded', …); return runs it",
    ),
    ("tab", "the next part of the screen; arrows and page keys scroll it"),
    ("escape", "leave what was opened, or asked"),
    ("?", "this help"),
    ("q", "leave"),
)
"""The keys, and what each does."""


class TextScreen(ModalScreen[None]):
    """A text over the whole screen; escape, q, return and the help key close it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "dismiss", "back"),
    ]
    DEFAULT_CSS = "TextScreen { align: center middle; } TextScreen > VerticalScroll { width: 90%; height: 90%; border: round $accent; padding: 0 1; }"

    def __init__(self, title: str, text: Text | Table) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Show the text."""
        with VerticalScroll() as scroll:
            scroll.border_title = self._title
            yield Static(self._text, id="text")


def keys_table() -> Table:
    """Return the keys as a table; on a narrow screen, each description goes below its key."""
    keys = Table.grid(padding=(0, 2, 0, 0))
    keys.add_column(no_wrap=True)
    keys.add_column()
    for key, what in HELP:
        keys.add_row(Text(key, style="bold"), Text(what))
    return keys
