"""Why things are as they are: what led to an event, and what it led to, across sessions (WHY-1)."""

from intersession_projections.causes.causes import Causes, Why
from intersession_projections.causes.effects import Effect, Effects
from intersession_projections.causes.roots import RootKind
from intersession_projections.causes.shown import ShownCauses
from intersession_projections.causes.told import Told

__all__ = [
    "Causes",
    "Effect",
    "Effects",
    "RootKind",
    "ShownCauses",
    "Told",
    "Why",
]
