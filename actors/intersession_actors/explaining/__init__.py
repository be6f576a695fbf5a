"""Explains why things ended, were refused or reached nobody: the rule, its inputs, what would have changed it (WHY-2)."""

from intersession_actors.explaining.ends import ARCHIVALS, CLOSES, LOOP_ENDS, SILENCES, UNBINDINGS
from intersession_actors.explaining.explained import Explaining
from intersession_actors.explaining.explanation import Explanation, Input, Instead
from intersession_actors.explaining.failures import CUTS, FAILURES, UNDELIVERED, WAITING
from intersession_actors.explaining.refusals import REFUSALS

__all__ = [
    "ARCHIVALS",
    "CLOSES",
    "CUTS",
    "FAILURES",
    "LOOP_ENDS",
    "REFUSALS",
    "SILENCES",
    "UNBINDINGS",
    "UNDELIVERED",
    "WAITING",
    "Explaining",
    "Explanation",
    "Input",
    "Instead",
]
