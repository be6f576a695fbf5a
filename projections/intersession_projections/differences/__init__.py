"""What differs between two runs, a run and its fork, or two places of one: by structure and meaning, not by id or time (DIFF)."""

from intersession_projections.differences.comparing import Row, RowKind, compare
from intersession_projections.differences.outlines import outline_of
from intersession_projections.differences.parts import FlowKind, Outline, Part

__all__ = [
    "FlowKind",
    "Outline",
    "Part",
    "Row",
    "RowKind",
    "compare",
    "outline_of",
]
