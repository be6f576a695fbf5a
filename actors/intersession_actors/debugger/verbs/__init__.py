"""The verbs of the debugger by name, for every door: what each is for, and what it takes and does when it is called."""

from intersession_actors.debugger.verbs.verbs import (
    CALLS,
    DELIVERIES,
    DIFF,
    EVENTS,
    IMPORTS,
    LENS,
    MESSAGES,
    ORIGIN,
    RUNS,
    SEARCH,
    SHOW,
    SMELLS,
    STATE,
    VERBS,
    WHY,
    Verb,
)

__all__ = [
    "CALLS",
    "DELIVERIES",
    "DIFF",
    "EVENTS",
    "IMPORTS",
    "LENS",
    "MESSAGES",
    "ORIGIN",
    "RUNS",
    "SEARCH",
    "SHOW",
    "SMELLS",
    "STATE",
    "VERBS",
    "WHY",
    "Verb",
]
