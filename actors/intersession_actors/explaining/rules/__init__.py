"""The rules in words: one for every way in which something can end, fail, wait or be refused. Pure."""

from intersession_actors.explaining.rules.ends import ARCHIVALS, CLOSES, LOOP_ENDS, SILENCES, UNBINDINGS
from intersession_actors.explaining.rules.failures import (
    CUTS,
    FAILURES,
    UNDELIVERED,
    WAITING,
    WITHHELD,
    Undelivered,
    Waiting,
)
from intersession_actors.explaining.rules.refusals import REFUSALS

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
    "WITHHELD",
    "Undelivered",
    "Waiting",
]
