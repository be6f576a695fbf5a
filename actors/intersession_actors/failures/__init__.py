"""What goes wrong is told: one log line, a count, and the host's `on_failure`; and how an exception is kept as text."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.failures.failure import Failure, FailureKind
    from intersession_actors.failures.finding import Finding, note, warning, wrong
    from intersession_actors.failures.of_process import full_findings, process_findings
    from intersession_actors.failures.reports import OnFailure, Reports
    from intersession_actors.failures.trace import described, one_line, traced

__all__ = [
    "Failure",
    "FailureKind",
    "Finding",
    "OnFailure",
    "Reports",
    "described",
    "full_findings",
    "note",
    "one_line",
    "process_findings",
    "traced",
    "warning",
    "wrong",
]
