"""Each recorded append of a flow, decided again from its own decision record: sealed replay without actors."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.replaying.redeciding.deciding_again import Redecided, redecided, redecided_all
    from intersession_actors.replaying.redeciding.judging_again import (
        Judged,
        judged_again,
        judged_in,
    )
    from intersession_actors.replaying.redeciding.sources import Sources, lists_loaded

__all__ = [
    "Judged",
    "Redecided",
    "Sources",
    "judged_again",
    "judged_in",
    "lists_loaded",
    "redecided",
    "redecided_all",
]
