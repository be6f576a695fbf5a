"""The steps of an exchange, a spawn or a run, by its name alone."""

from intersession_events.log.log import Log
from intersession_projections.questions.places.located import steps_of_flow
from intersession_projections.questions.timeline.steps import Step
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.run_outcomes.runs import Runs


def steps_told(log: Log, name: str) -> list[Step]:
    """Return the steps of what is called that, of a run those of what it belongs to; none of what is not there."""
    flow = Flows(log).exchange(name) or Flows(log).spawn(name) or Runs(log).get(name)
    return [] if flow is None else steps_of_flow(log, flow)
