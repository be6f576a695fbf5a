"""Where words came from, and by which hops they reached others, across sessions (ORIGIN-1)."""

from intersession_projections.origins.hops import Hop, Reads, Via
from intersession_projections.origins.matching import Match
from intersession_projections.origins.origins import Origin, Origins

__all__ = [
    "Hop",
    "Match",
    "Origin",
    "Origins",
    "Reads",
    "Via",
]
