"""Sequence diagrams of runs: who said what to whom, drawn with characters, as SVG, in Mermaid's language, in a notebook."""
