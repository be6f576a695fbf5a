"""What is shown over the screen of `intersession step`: a text, and the keys."""

from typing import ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

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
    """A text over everything else; any of escape, q, return and the key that opens the help leaves it."""

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
    """Return the keys as a table: what each does goes on below itself where the screen is narrow."""
    keys = Table.grid(padding=(0, 2, 0, 0))
    keys.add_column(no_wrap=True)
    keys.add_column()
    for key, what in HELP:
        keys.add_row(Text(key, style="bold"), Text(what))
    return keys
