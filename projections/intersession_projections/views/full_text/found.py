"""Full-text queries and where they are answered: by the index, or by the log itself."""

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from intersession_projections.basics.spans import Span
from intersession_projections.views.full_text.tokens import Term


class Wanted(NamedTuple):
    """A full-text query: all words, in one of the groups, in a part of the log; of events of some stored names, if any are given."""

    terms: Sequence[Term]
    groups: Sequence[str]
    span: Span = Span()
    topics: Collection[str] = ()


class Found(Protocol):
    """The full text of a log as it is now."""

    @property
    def indexed(self) -> bool:
        """Whether there is an index; else all texts are scanned."""
        ...

    def names(self, kind: Literal["agent", "session"]) -> dict[str, int]:
        """Return the numbers of all agents (`agent:NAME`), or of all sessions (by their keys), for groups."""
        ...

    def positions(self, wanted: Wanted) -> Iterator[int]:
        """Yield the positions of the matches, newest first, read as they are consumed."""
        ...
