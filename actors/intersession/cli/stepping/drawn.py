"""The sequence diagram of a run as a widget: only the lines that are seen are drawn, however long it is."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from intersession_projections.diagram import Line

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
    """Lines of a diagram. The one that the place is after is marked, what stands behind it is dimmed."""

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
        """Draw these lines, looked at from a position."""
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
        """Return one line as it is seen."""
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
