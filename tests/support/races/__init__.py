"""Races, found by trying every order in which threads can take their turns, up to so many interruptions."""

from support.races.explored import Explored, Race, explored
from support.races.statements import with_turns
from support.races.turns import Condition, Deadlock, Lock, SimpleQueue, Thread, Turns

__all__ = [
    "Condition",
    "Deadlock",
    "Explored",
    "Lock",
    "Race",
    "SimpleQueue",
    "Thread",
    "Turns",
    "explored",
    "with_turns",
]
