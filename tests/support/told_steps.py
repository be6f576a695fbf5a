"""The steps of an exchange, a spawn or a run, by its name alone."""

from intersession_events.log.log import Log
from intersession_projections.flows.flows import Flows
from intersession_projections.places.located import steps_of_flow
from intersession_projections.run_outcomes.runs import Runs
from intersession_projections.timeline.steps import Step


def steps_told(log: Log, name: str) -> list[Step]:
    """Return the steps of what is called that, of a run those of what it belongs to; none of what is not there."""
    flow = Flows(log).exchange(name) or Flows(log).spawn(name) or Runs(log).get(name)
    return [] if flow is None else steps_of_flow(log, flow)
