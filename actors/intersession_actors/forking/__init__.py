"""Forks that run on: where a log is cut, which edits follow the cut, and which agents answer there (FORK)."""

from intersession_actors.forking.agents import AgentSpecs
from intersession_actors.forking.carrying import Carried, Stopping, carry_on
from intersession_actors.forking.door import ForkDoor
from intersession_actors.forking.edits import REPLACING, check_edits
from intersession_actors.forking.listing import Listed, forks_of, only_fork
from intersession_actors.forking.making import MadeFork, Wanted, make_fork
from intersession_actors.forking.outcomes import Outcome, agent_ids, outcome_of
from intersession_actors.forking.overlay import fixed_by, overlaid, set_in
from intersession_actors.forking.playing import CarriedSystem, Cast, Forker, Given, Opened, Opens, Playing
from intersession_actors.forking.standing import HeldAt
from intersession_actors.forking.told import Came, came_told, edits_told, outcomes_told

__all__ = [
    "REPLACING",
    "AgentSpecs",
    "Came",
    "Carried",
    "CarriedSystem",
    "Cast",
    "ForkDoor",
    "Forker",
    "Given",
    "HeldAt",
    "Listed",
    "MadeFork",
    "Opened",
    "Opens",
    "Outcome",
    "Playing",
    "Stopping",
    "Wanted",
    "agent_ids",
    "came_told",
    "carry_on",
    "check_edits",
    "edits_told",
    "fixed_by",
    "forks_of",
    "make_fork",
    "only_fork",
    "outcome_of",
    "outcomes_told",
    "overlaid",
    "set_in",
]
