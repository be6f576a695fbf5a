"""The verb `replay`: a run as it was recorded, and as the rules of today decide it (SEAL)."""

from typing import Annotated

import msgspec

from intersession_actors.hindsight.debugger.forks import ForkViews
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.replaying.replayed import Replayed, replay_all, replay_run
from intersession_actors.rules.gate.limits import KeyText
from intersession_events.basics.progress import Progress
from intersession_events.facts import ready
from intersession_events.log.other_words import as_it_is


@ready
class Replay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `replay`: the time for a whole log grows with its size, beside the running host."""

    run: Annotated[
        KeyText, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it; or a fork.")
    ]


def replay(view: View, given: Replay) -> Replayed:
    """Decide a run again by today's rules and actors, from the recorded inputs alone, and return the differences.

    Raises:
        ToolRefused: as `replayed`.
    """
    return replayed(view, given.run)


def replayed(view: View, run: str | None, progress: Progress | None = None) -> Replayed:
    """Replay a run sealed, or (None) the whole log. `progress` gets (events done, events to do).

    Raises:
        ToolRefused: there is no such run, or several are meant (`invalid_request`); the caller does not see everything (`forbidden`).
        CorruptEvent: a row of the log can't be read.
    """
    view.check_asked("replay", {})
    if run is None:
        return replay_all(as_it_is(view.log), progress)
    with ForkViews(view) as forks:
        of, name = forks.meant(run, field="run")
        return replay_run(as_it_is(of.log), of.flow(name), progress)
