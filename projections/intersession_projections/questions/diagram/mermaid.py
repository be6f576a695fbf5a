"""Writes a sequence diagram in Mermaid's language, for pages that draw it themselves. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from intersession_events.basics.printable import printable
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, Mark, Row

_MOST: Final = 200
"""The number of characters of a text that are written; `replay` has the rest."""

_WORDS: Final = re.compile(r"\b(end|loop|alt|opt|par|rect|note|activate|deactivate)\b", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[^\w .,!?'()\-⏎…]")


def mermaid_of(lanes: Sequence[Lane], rows: Sequence[Row]) -> str:
    """Return a diagram. Nothing that somebody wrote is markup in it."""
    return "\n".join(_lines(lanes, rows)) + "\n"


def _lines(lanes: Sequence[Lane], rows: Sequence[Row]) -> Iterator[str]:
    yield "sequenceDiagram"
    for number, lane in enumerate(lanes):
        sort = "actor" if lane.kind in {"person", "operator"} else "participant"
        yield f"    {sort} L{number} as {_inert(lane.name)}"
    everybody = f"L0,L{len(lanes) - 1}" if len(lanes) > 1 else "L0"
    for row in rows:
        match row:
            case Arrow():
                yield f"    L{row.source}->>L{row.target}: {_inert(row.said(' - '))}"
            case Mark():
                where = everybody if row.lane is None else f"L{row.lane}"
                yield f"    Note over {where}: {_inert(row.text)}"
            case Gap():
                yield f"    Note over {everybody}: {row.said}"


def _inert(text: str) -> str:
    """Return a text in which no letter has a meaning for Mermaid or for HTML."""
    line = " ⏎ ".join(text.strip().splitlines())
    line = printable(line if len(line) <= _MOST else f"{line[: _MOST - 1]}…")
    line = _PLAIN.sub(lambda found: f"#{ord(found[0])};", line)
    return _WORDS.sub(lambda found: f"#{ord(found[0][0])};{found[0][1:]}", line)
