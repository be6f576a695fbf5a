"""Explains why things ended, were refused or reached nobody: the rule, its inputs, what would have changed it (WHY-2)."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.explaining.explained import Explaining
    from intersession_actors.explaining.explanation import Explanation
    from intersession_actors.explaining.not_over import Awaited, NotOver, awaited, is_open, waits_of
    from intersession_actors.explaining.rules import Waiting

__all__ = [
    "Awaited",
    "Explaining",
    "Explanation",
    "NotOver",
    "Waiting",
    "awaited",
    "is_open",
    "waits_of",
]
