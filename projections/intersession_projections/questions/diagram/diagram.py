"""A sequence diagram of a run: lanes are sessions, people and channels, arrows are messages. Drawn in four ways."""

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from intersession_events.log.recorded import Recorded
from intersession_projections.questions.diagram.mermaid import mermaid_of
from intersession_projections.questions.diagram.reading import read
from intersession_projections.questions.diagram.rows import Lane, Row
from intersession_projections.questions.diagram.svg import svg_of
from intersession_projections.questions.diagram.text import Line, lines_of
from intersession_projections.views.flows.held import Hold, holds_in
from intersession_projections.views.run_outcomes.replies import Replies


class Diagram(msgspec.Struct, frozen=True, kw_only=True):
    """Lanes in order of appearance, and rows in log order.

    A notebook shows it as a picture. `at` is the place that it is looked at from, a position: what comes behind it is dimmed.
    """

    title: str
    lanes: tuple[Lane, ...]
    rows: tuple[Row, ...]
    at: int | None = None
    holds: tuple[Hold, ...] = ()
    """When an exchange was held."""

    def lines(self, width: int) -> Iterator[Line]:
        """Yield it drawn with characters, `width` columns wide where all lanes have room in that, else wider."""
        return lines_of(self.lanes, self.rows, width)

    def text(self, width: int = 100) -> str:
        """Return it drawn with characters."""
        return "\n".join(line.text for line in self.lines(width))

    def svg(self) -> str:
        """Return it as SVG that stands by itself: no style sheet, no script, nothing from elsewhere."""
        return svg_of(self.lanes, self.rows, title=self.title, later_than=self.at)

    def mermaid(self) -> str:
        """Return it in Mermaid's language."""
        return mermaid_of(self.lanes, self.rows)

    def _repr_html_(self) -> str:
        return f"<div>{self.svg()}</div>"


def diagram_of(
    events: Iterable[Recorded],
    *,
    title: str,
    names: Callable[[str], str] = str,
    at: int | None = None,
    forked: Collection[int] = (),
) -> Diagram:
    """Return the diagram of events that are in log order. `names` says how a session's key is shown.

    `forked` are the times in ms at which the log was forked: what lies before one of them is no time that the run took.
    """
    found = list(events)
    replies = Replies(found)
    found = [replies.with_texts(recorded) for recorded in found]
    lanes, rows = read(found, names, forked=forked)
    return Diagram(title=title, lanes=tuple(lanes), rows=tuple(rows), at=at, holds=holds_in(found))
