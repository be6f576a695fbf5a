"""What became of each run: its rows, the view that keeps them, and the questions about them."""

from intersession_projections.run_outcomes.outcome import (
    Asked,
    EndOfRun,
    RunOutcome,
    asked_in,
    begin_run,
    end_of,
    evolve_run,
)
from intersession_projections.run_outcomes.replies import LoggedTexts, Replies, held_in, told_in
from intersession_projections.run_outcomes.runs import Runs
from intersession_projections.run_outcomes.view import RunOutcomesView

__all__ = [
    "Asked",
    "EndOfRun",
    "LoggedTexts",
    "Replies",
    "RunOutcome",
    "RunOutcomesView",
    "Runs",
    "asked_in",
    "begin_run",
    "end_of",
    "evolve_run",
    "held_in",
    "told_in",
]
