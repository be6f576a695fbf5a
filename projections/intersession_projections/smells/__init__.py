"""What is seldom meant in an exchange, a spawn or a run, and how it is found (SMELL-1)."""

from intersession_projections.smells.conversation import duplicate_message, polite_loop, tokens_growing
from intersession_projections.smells.endings import (
    announce_unheard,
    guard_refused,
    late_reply,
    loop_cut,
    retry_changed,
)
from intersession_projections.smells.likeness import likeness
from intersession_projections.smells.smell import Seen, Smell, SmellRule
from intersession_projections.smells.smells import SMELLS, Smells, smells_in

__all__ = [
    "SMELLS",
    "Seen",
    "Smell",
    "SmellRule",
    "Smells",
    "announce_unheard",
    "duplicate_message",
    "guard_refused",
    "late_reply",
    "likeness",
    "loop_cut",
    "polite_loop",
    "retry_changed",
    "smells_in",
    "tokens_growing",
]
