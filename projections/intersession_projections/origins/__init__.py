"""Where words came from, and by which hops they reached others, across sessions (ORIGIN-1)."""

from intersession_projections.origins.hops import Hop, Via
from intersession_projections.origins.matching import Match, Phrase, folded, holds, longest_shared
from intersession_projections.origins.origins import MOST_HOPS, MOST_ROWS, Origin, Origins

__all__ = [
    "MOST_HOPS",
    "MOST_ROWS",
    "Hop",
    "Match",
    "Origin",
    "Origins",
    "Phrase",
    "Via",
    "folded",
    "holds",
    "longest_shared",
]
