"""Sequence diagrams of runs: who said what to whom, drawn with characters, as SVG, in Mermaid's language, in a notebook."""

from intersession_projections.diagram.diagram import Diagram, diagram_of
from intersession_projections.diagram.rows import Arrow, Gap, Lane, Mark, Row
from intersession_projections.diagram.text import Line

__all__ = ["Arrow", "Diagram", "Gap", "Lane", "Line", "Mark", "Row", "diagram_of"]
