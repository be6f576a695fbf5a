"""Each recorded append, and each judgement of a door, decided again from its own decision record."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.replaying.redeciding.deciding_again import (
        Redecided,
        is_as_recorded,
        redecided,
        redecided_all,
    )
    from intersession_actors.replaying.redeciding.judging_again import judged_in
    from intersession_actors.replaying.redeciding.sources import (
        Place,
        Sources,
        erased_by,
        is_begun_with_another,
    )

__all__ = [
    "Place",
    "Redecided",
    "Sources",
    "erased_by",
    "is_as_recorded",
    "is_begun_with_another",
    "judged_in",
    "redecided",
    "redecided_all",
]
