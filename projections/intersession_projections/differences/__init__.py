"""What differs between two runs, a run and its fork, or two places of one: by structure and meaning, not by id or time (DIFF)."""

from intersession_projections.differences.comparing import (
    Difference,
    FieldDifference,
    Row,
    RowKind,
    compare,
)
from intersession_projections.differences.outlines import Begun, Shown, outline_of
from intersession_projections.differences.parts import FlowKind, Outline, Part, Totals
from intersession_projections.differences.wording import Marked, marked

__all__ = [
    "Begun",
    "Difference",
    "FieldDifference",
    "FlowKind",
    "Marked",
    "Outline",
    "Part",
    "Row",
    "RowKind",
    "Shown",
    "Totals",
    "compare",
    "marked",
    "outline_of",
]
