"""Forks that run on: where a log is cut, which edits follow the cut, and which agents answer there (FORK)."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.forking.carrying import (
        Carried,
        Stopping,
        carry_on,
        stopping_of,
    )
    from intersession_actors.forking.door import ForkDoor
    from intersession_actors.forking.listing import Listed, forks_of
    from intersession_actors.forking.making import MadeFork, Wanted, make_fork
    from intersession_actors.forking.of_system import Forks
    from intersession_actors.forking.overlay import fork_of, overlaid, set_in
    from intersession_actors.forking.playing import Cast, Forker, Playing
    from intersession_actors.forking.told import Came, came_told, outcomes_told

__all__ = [
    "Came",
    "Carried",
    "Cast",
    "ForkDoor",
    "Forker",
    "Forks",
    "Listed",
    "MadeFork",
    "Playing",
    "Stopping",
    "Wanted",
    "came_told",
    "carry_on",
    "fork_of",
    "forks_of",
    "make_fork",
    "outcomes_told",
    "overlaid",
    "set_in",
    "stopping_of",
]
