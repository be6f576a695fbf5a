"""What is seldom meant in an exchange, a spawn or a run, and how it is found (SMELL-1)."""

from intersession_projections.smells.likeness import likeness
from intersession_projections.smells.smell import Seen, Smell, SmellRule
from intersession_projections.smells.smells import Smells

__all__ = [
    "Seen",
    "Smell",
    "SmellRule",
    "Smells",
    "likeness",
]
