"""Draws a sequence diagram as SVG: shapes and texts with attributes, no style sheet, no script, nothing from elsewhere. Pure.

Texts are set as text by the XML library, never put together as markup.
"""

from collections.abc import Sequence
from typing import Final, Literal
from xml.etree import ElementTree as ET

from intersession_events.basics.printable import printable
from intersession_projections.questions.diagram.fitting import cut, wrapped
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, Mark, MarkKind, Row

_LANE: Final = 240
_LEFT: Final = 64
_HEAD: Final = 56
_LINE: Final = 16
_CELL: Final = 8
"""Room for a letter of a text of 13 pixels, of which some are broad; a wide one has that of two."""
_MARGIN: Final = 16
_CELLS: Final = (_LANE - _MARGIN) // _CELL
"""So much room is between two lanes."""
_MOST_LINES: Final = 3
"""The most lines of a text across all lanes."""
_COLOURS: Final = ("#2f7ed8", "#2e8b57", "#a0529c", "#b8740f", "#4a6fa5", "#c0453a")
_GREY: Final = "#808080"
_FAINT: Final = "0.7"
"""How much of a text's colour small print has. All texts but failures have the colour of those around, be that dark or light."""
_FAILED: Final = "#cd4a3e"
_SIGNS: Final = {"tool": "⚙", "note": "·", "failed": "✗", "end": "■"}
_NAMESPACE: Final = "http://www.w3.org/2000/svg"
Point = tuple[int, int]


def svg_of(lanes: Sequence[Lane], rows: Sequence[Row], *, title: str, later_than: int | None = None) -> str:
    """Return a drawing that stands by itself; what comes behind the position `later_than` is dimmed."""
    drawing = _Drawing(lanes)
    for row in rows:
        drawing.add(
            row, is_later=later_than is not None and not isinstance(row, Gap) and row.position > later_than
        )
    return drawing.finished(title)


class _Drawing:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._centers = [_LEFT + _LANE * number + _LANE // 2 for number in range(len(lanes))]
        self._width = _LEFT + _LANE * max(len(lanes), 1)
        self._y = _HEAD + 8
        self._rows: list[ET.Element] = []

    def add(self, row: Row, *, is_later: bool) -> None:
        """Draw a row below the others."""
        group = ET.Element("g", {} if not is_later else {"opacity": "0.35"})
        match row:
            case Arrow():
                self._arrow(group, row)
            case Mark():
                self._mark(group, row)
            case Gap():
                self._y += _LINE
                _text(group, f"⋮ {row.said}", (self._width // 2, self._y), "middle", opacity=_FAINT)
                self._y += _LINE // 2
        self._rows.append(group)

    def finished(self, title: str) -> str:
        """Return all of it."""
        height = self._y + 24
        root = ET.Element(
            "svg",
            {
                "xmlns": _NAMESPACE,
                "viewBox": f"0 0 {self._width} {height}",
                "width": str(self._width),
                "height": str(height),
                "role": "img",
                "font-family": "system-ui, sans-serif",
                "font-size": "13",
                "fill": "currentColor",
            },
        )
        ET.SubElement(root, "title").text = _inert(title)
        for lane, center, colour in self._each_lane():
            group = ET.SubElement(root, "g", {"data-lane": _inert(lane.id)})
            _line(group, (center, _HEAD - 16), (center, height - 8), colour, width="1")
            _text(group, cut(_inert(lane.name), _CELLS), (center, _HEAD - 26), "middle", weight="bold")
            _whole(group, lane.name)
            _text(group, lane.kind, (center, _HEAD - 42), "middle", size="10", opacity=_FAINT)
        root.extend(self._rows)
        return ET.tostring(root, encoding="unicode")

    def _each_lane(self) -> Sequence[tuple[Lane, int, str]]:
        return [
            (lane, center, _COLOURS[number % len(_COLOURS)])
            for number, (lane, center) in enumerate(zip(self._lanes, self._centers, strict=True))
        ]

    def _arrow(self, group: ET.Element, row: Arrow) -> None:
        source, target = self._centers[row.source], self._centers[row.target]
        group.set("data-position", str(row.position))
        if source == target:
            self._beside(group, row, source, row.said(), "note")
            return
        room = (_LANE * abs(row.target - row.source) - _MARGIN) // _CELL
        for number, line in enumerate(wrapped(_inert(row.said()), room, 2)):
            self._y += _LINE
            if number == 0:
                self._number(group, row.position)
            _text(group, line, ((source + target) // 2, self._y), "middle")
        self._y += 8
        colour = _COLOURS[row.source % len(_COLOURS)]
        _line(group, (source, self._y), (target, self._y), colour, width="2")
        back = -8 if target > source else 8
        points = f"{target},{self._y} {target + back},{self._y - 4} {target + back},{self._y + 4}"
        ET.SubElement(group, "polygon", {"points": points, "fill": colour})
        _whole(group, row.text)
        self._y += 6

    def _mark(self, group: ET.Element, row: Mark) -> None:
        group.set("data-position", str(row.position))
        if row.lane is None:
            colour = _FAILED if row.kind == "failed" else "currentColor"
            self._y += _LINE + 6
            self._number(group, row.position)
            _line(group, (_LEFT, self._y - 4), (self._width, self._y - 4), _GREY, width="1")
            room = (self._width - _LEFT - _MARGIN) // _CELL
            for line in wrapped(f"{_SIGNS[row.kind]} {_inert(row.text)}", room, _MOST_LINES):
                self._y += _LINE
                _text(group, line, ((_LEFT + self._width) // 2, self._y - 4), "middle", colour)
            _whole(group, row.text)
            return
        self._beside(group, row, self._centers[row.lane], row.text, row.kind)

    def _beside(self, group: ET.Element, row: Arrow | Mark, center: int, text: str, kind: MarkKind) -> None:
        colour = _FAILED if kind == "failed" else "currentColor"
        self._y += _LINE
        self._number(group, row.position)
        room_right = self._width - center
        anchor: Literal["start", "end"] = "start" if room_right >= center - _LEFT else "end"
        room = (max(room_right, center - _LEFT) - _MARGIN) // _CELL
        at = center + 8 if anchor == "start" else center - 8
        _text(group, cut(f"{_SIGNS[kind]} {_inert(text)}", room), (at, self._y), anchor, colour)
        _whole(group, text)
        self._y += 4

    def _number(self, group: ET.Element, position: int) -> None:
        _text(group, f"#{position}", (8, self._y), "start", size="11", opacity=_FAINT)


def _text(
    group: ET.Element,
    text: str,
    at: Point,
    anchor: Literal["start", "middle", "end"],
    colour: str = "currentColor",
    *,
    size: str = "13",
    weight: str = "normal",
    opacity: str = "1",
) -> None:
    attributes = {"x": str(at[0]), "y": str(at[1]), "text-anchor": anchor, "fill": colour, "font-size": size}
    if opacity != "1":
        attributes["fill-opacity"] = opacity
    ET.SubElement(group, "text", {**attributes, "font-weight": weight}).text = _inert(text)


def _line(group: ET.Element, start: Point, end: Point, colour: str, *, width: str) -> None:
    ends = {"x1": str(start[0]), "y1": str(start[1]), "x2": str(end[0]), "y2": str(end[1])}
    ET.SubElement(group, "line", {**ends, "stroke": colour, "stroke-width": width})


def _whole(group: ET.Element, text: str) -> None:
    """Let a pointer show all of a text that was cut."""
    ET.SubElement(group, "title").text = "\n".join(printable(line) for line in text.splitlines())


def _inert(text: str) -> str:
    """Return a text on one line, without what XML can't hold or what would turn the line round."""
    return printable(" ⏎ ".join(text.strip().splitlines()))
