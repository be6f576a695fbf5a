"""Draws a sequence diagram with characters: a column for each lane, a few lines for each row. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from intersession_events.basics.printable import printable
from intersession_projections.questions.diagram.fitting import cells, cut, wrapped
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, Mark, Row

NARROWEST: Final = 18
"""A lane is at least so wide: with many lanes the drawing is wider than the screen, and is scrolled sideways."""
_WIDEST: Final = 44
_LINES: Final = 3
"""The most lines of a message that are drawn; `replay` has all of it."""

LineKind = Literal["head", "said", "arrow", "tool", "note", "failed", "end", "gap", "lanes"]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a drawing: plain text, harmless, never longer than the drawing is wide."""

    text: str
    kind: LineKind
    position: int | None = None
    """The event that it draws."""


def lines_of(lanes: Sequence[Lane], rows: Sequence[Row], width: int) -> Iterator[Line]:
    """Yield a drawing line by line, as wide as `width` where all lanes have room in that."""
    canvas = _Canvas(lanes, rows, width)
    yield canvas.heads()
    for row in rows:
        match row:
            case Arrow() if row.source != row.target:
                yield from canvas.arrow(row)
            case Arrow():
                yield from canvas.mark(row.source, f"{row.how} {row.text}", "note", row.position)
            case Mark(lane=int(lane)):
                yield from canvas.mark(lane, row.text, row.kind, row.position)
            case Mark():
                yield canvas.across(row.text, row.position)
            case Gap():
                yield canvas.gap(row)
    yield canvas.heads()


class _Canvas:
    def __init__(self, lanes: Sequence[Lane], rows: Sequence[Row], width: int) -> None:
        last = max((row.position for row in rows if not isinstance(row, Gap)), default=0)
        self._gutter = len(f"#{last}") + 1
        room = (width - self._gutter) // max(len(lanes), 1)
        self._lane_width = max(NARROWEST, min(room, _WIDEST))
        self._lanes = lanes
        self._centers = [
            self._gutter + self._lane_width * number + self._lane_width // 2 for number in range(len(lanes))
        ]
        self._width = self._gutter + self._lane_width * max(len(lanes), 1)

    def heads(self) -> Line:
        """Return the names of the lanes."""
        text = " " * self._gutter
        for lane in self._lanes:
            name = cut(_inert(lane.name), self._lane_width - 2)
            left = (self._lane_width - cells(name)) // 2
            text += " " * left + name + " " * (self._lane_width - left - cells(name))
        return Line(text=text.rstrip(), kind="head")

    def arrow(self, row: Arrow) -> Iterator[Line]:
        """Yield the words of a message, and the arrow below them."""
        source, target = self._centers[row.source], self._centers[row.target]
        left, right = min(source, target), max(source, target)
        room = right - left - 3
        words = wrapped(_inert(row.said()), room, _LINES)
        for number, line in enumerate(words):
            label = f"#{row.position}" if number == 0 else ""
            yield Line(text=self._with(line, left + 2, label), kind="said", position=row.position)
        shaft = "─" * (right - left - 2)
        drawn = f"├{shaft}▶" if source < target else f"◀{shaft}┤"
        start = left if source < target else left + 1
        yield Line(text=self._with(drawn, start, ""), kind="arrow", position=row.position)

    def mark(
        self, lane: int, text: str, kind: Literal["tool", "note", "failed", "end"], position: int
    ) -> Iterator[Line]:
        """Yield something that happened on a lane: beside it, where there is more room."""
        center = self._centers[lane]
        to_the_right = self._width - center - 2
        sign = {"tool": "⚙", "note": "·", "failed": "✗", "end": "■"}[kind]
        for number, line in enumerate(
            wrapped(f"{sign} {_inert(text)}", max(to_the_right, center - self._gutter - 2), 2)
        ):
            label = f"#{position}" if number == 0 else ""
            if to_the_right >= center - self._gutter - 2:
                yield Line(text=self._with(line, center + 2, label), kind=kind, position=position)
            else:
                yield Line(
                    text=self._with(line, center - 1 - cells(line), label), kind=kind, position=position
                )

    def across(self, text: str, position: int) -> Line:
        """Return something that happened to all."""
        room = self._width - self._gutter
        words = f" {cut(_inert(text), room - 8)} "
        left = (room - cells(words)) // 2
        rule = "─" * left + words + "─" * (room - left - cells(words))
        return Line(text=f"#{position}".ljust(self._gutter) + rule, kind="end", position=position)

    def gap(self, gap: Gap) -> Line:
        """Return a stretch in which nothing happened."""
        start = self._gutter + self._lane_width // 2 + 2
        said = cut(gap.said, self._width - start - 2)
        return Line(text=self._with(f" {said} ", start, "", bar="┊"), kind="gap")

    def _with(self, text: str, start: int, label: str, bar: str = "│") -> str:
        """Return a line of bars with a text laid over it."""
        bars = dict.fromkeys(self._centers, bar)
        end = start + cells(text)
        before = "".join(bars.get(column, " ") for column in range(self._gutter, start))
        behind = "".join(bars.get(column, " ") for column in range(end, self._width))
        return (label.ljust(self._gutter) + before + text + behind).rstrip()


def _inert(text: str) -> str:
    """Return a text on one line, with all that would steer a terminal as escapes."""
    return printable(" ⏎ ".join(" ".join(line.split()) for line in text.strip().splitlines()))
