"""What goes wrong is told: one log line, a count, and the host's `on_failure`; and how an exception is kept as text."""

from intersession_actors.failures.failure import KINDS, Failure, FailureKind, failure_line
from intersession_actors.failures.reports import OnFailure, Reports
from intersession_actors.failures.trace import MOST_TRACEBACK_BYTES, described, one_line, traced

__all__ = [
    "KINDS",
    "MOST_TRACEBACK_BYTES",
    "Failure",
    "FailureKind",
    "OnFailure",
    "Reports",
    "described",
    "failure_line",
    "one_line",
    "traced",
]
