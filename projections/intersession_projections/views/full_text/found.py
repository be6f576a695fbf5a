"""What is searched for, and what is asked for it: the index, or the log itself."""

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from intersession_projections.basics.spans import Span
from intersession_projections.views.full_text.tokens import Term


class Wanted(NamedTuple):
    """What is searched for: all words, in one of the groups, in a part of the log; of events of some stored names, if any are given."""

    terms: Sequence[Term]
    groups: Sequence[str]
    span: Span = Span()
    topics: Collection[str] = ()


class Found(Protocol):
    """The words of a log as it is now."""

    @property
    def indexed(self) -> bool:
        """Whether there is an index; else all words are looked at."""
        ...

    def names(self, kind: Literal["agent", "session"]) -> dict[str, int]:
        """Return the numbers of all agents (`agent:NAME`), or of all sessions (by their keys), for groups."""
        ...

    def positions(self, wanted: Wanted) -> Iterator[int]:
        """Yield the positions where all words stand, the newest first, reading as far as somebody asks for more."""
        ...
