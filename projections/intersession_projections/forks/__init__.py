"""Forks: which streams have to go along, which time counts for nothing, and what there is to be said of those that were made."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_projections.forks.closure import closed_streams, roots_of
    from intersession_projections.forks.course import Course, CourseTurn, Passed
    from intersession_projections.forks.frozen import Frozen, frozen_in
    from intersession_projections.forks.pauses import pauses_in, without_pauses
    from intersession_projections.forks.told import ForkTold, fork_told, left_in_words, parts_of

__all__ = [
    "Course",
    "CourseTurn",
    "ForkTold",
    "Frozen",
    "Passed",
    "closed_streams",
    "fork_told",
    "frozen_in",
    "left_in_words",
    "parts_of",
    "pauses_in",
    "roots_of",
    "without_pauses",
]
