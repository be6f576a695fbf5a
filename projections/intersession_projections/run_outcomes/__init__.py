"""What became of each run: its rows, the view that keeps them, and the questions about them."""

from intersession_projections.run_outcomes.outcome import Asked, RunOutcome, asked_in, begin_run, evolve_run
from intersession_projections.run_outcomes.runs import Runs
from intersession_projections.run_outcomes.view import RunOutcomesView

__all__ = [
    "Asked",
    "RunOutcome",
    "RunOutcomesView",
    "Runs",
    "asked_in",
    "begin_run",
    "evolve_run",
]
