"""The sequence diagram of a run as a widget: only the lines that are seen are drawn, however long it is."""

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
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


class DrawnRun(ScrollView):
    """Lines of a diagram. The one that the place is after is marked, what stands behind it is dimmed."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - the library's word
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._position = 0

    def show(self, lines: Sequence[Line], position: int) -> None:
        """Draw these lines, looked at from a position."""
        self._lines, self._position = lines, position
        self.virtual_size = Size(max((len(line.text) for line in lines), default=0), len(lines))
        here = [
            number
            for number, line in enumerate(lines)
            if line.position is not None and line.position <= position
        ]
        last = here[-1] if here else 0
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if not top <= last < top + height - 1:
            self.scroll_to(y=max(last - height // 2, 0), animate=False)
        self.refresh()

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
