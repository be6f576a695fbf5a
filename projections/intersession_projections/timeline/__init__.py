"""What happened, step by step: the timelines of exchanges, spawns, runs and sessions."""

from intersession_projections.timeline.steps import Step, steps_of
from intersession_projections.timeline.timeline import Timeline

__all__ = ["Step", "Timeline", "steps_of"]
