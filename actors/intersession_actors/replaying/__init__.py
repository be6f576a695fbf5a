"""Sealed replay: what was recorded, executed again by today's rules and actors with nothing but the recorded inputs (SEAL)."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.replaying.difference import Difference
    from intersession_actors.replaying.exported import name_of_test, text_of_test
    from intersession_actors.replaying.recordings import Recordings
    from intersession_actors.replaying.redeciding import (
        Redecided,
        Sources,
        judged_in,
        redecided,
        redecided_all,
    )
    from intersession_actors.replaying.replayed import (
        Replayed,
        replay_all,
        replay_events,
        replay_file,
        replay_run,
    )

__all__ = [
    "Difference",
    "Recordings",
    "Redecided",
    "Replayed",
    "Sources",
    "judged_in",
    "name_of_test",
    "redecided",
    "redecided_all",
    "replay_all",
    "replay_events",
    "replay_file",
    "replay_run",
    "text_of_test",
]
