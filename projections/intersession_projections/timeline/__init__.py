"""The steps of one exchange over all its sessions, in order, with their causes; and the tree of sub-agents."""

from intersession_projections.timeline.steps import Step, route_text, step_of
from intersession_projections.timeline.timeline import Timeline

__all__ = ["Step", "Timeline", "route_text", "step_of"]
