"""Forks that run on: where a log is cut, which edits follow the cut, and which agents answer there (FORK)."""

from intersession_actors.forking.agents import AgentSpecs
from intersession_actors.forking.carrying import Carried, Stopping, carry_on
from intersession_actors.forking.edits import REPLACING, check_edits
from intersession_actors.forking.making import MadeFork, Wanted, make_fork
from intersession_actors.forking.outcomes import Outcome, agent_ids, is_at_rest, missing_agents, outcome_of
from intersession_actors.forking.overlay import fixed_by, overlaid, set_in
from intersession_actors.forking.playing import Cast, Forker, Given

__all__ = [
    "REPLACING",
    "AgentSpecs",
    "Carried",
    "Cast",
    "Forker",
    "Given",
    "MadeFork",
    "Outcome",
    "Stopping",
    "Wanted",
    "agent_ids",
    "carry_on",
    "check_edits",
    "fixed_by",
    "is_at_rest",
    "make_fork",
    "missing_agents",
    "outcome_of",
    "overlaid",
    "set_in",
]
