"""One checker of what a system did: for simulations, real kills and live logs."""

from support.history.check import LAWS, Finding, broken, check_sealed, check_views, check_whole, tables_of
from support.history.evidence import Asked, Evidence, Held, Op, Shown

__all__ = [
    "LAWS",
    "Asked",
    "Evidence",
    "Finding",
    "Held",
    "Op",
    "Shown",
    "broken",
    "check_sealed",
    "check_views",
    "check_whole",
    "tables_of",
]
