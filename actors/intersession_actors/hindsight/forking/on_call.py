"""What looks back at a log and forks it, loaded when it is first asked for: a host that only runs agents needs none of it."""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession_actors.hindsight.debugger.debugger import Debugger
    from intersession_actors.hindsight.debugger.forks import ForkViews
    from intersession_actors.hindsight.debugger.state import status_at
    from intersession_actors.hindsight.debugger.view import At, View
    from intersession_actors.hindsight.forking.carrying import Carried, Stopping, carry_on, stopping_of
    from intersession_actors.hindsight.forking.describing import ForkResult, describe_fork
    from intersession_actors.hindsight.forking.listing import Listed, forks_of, only_fork
    from intersession_actors.hindsight.forking.making import MadeFork, Wanted
    from intersession_actors.hindsight.forking.overlay import fork_of, overlaid, set_in
    from intersession_actors.hindsight.forking.playing import (
        CarriedSystem,
        Cast,
        Forker,
        Opened,
        Opens,
        Playing,
    )
    from intersession_events.copies.forks.files import remove_fork

on_demand(globals())

__all__ = [
    "At",
    "Carried",
    "CarriedSystem",
    "Cast",
    "Debugger",
    "ForkResult",
    "ForkViews",
    "Forker",
    "Listed",
    "MadeFork",
    "Opened",
    "Opens",
    "Playing",
    "Stopping",
    "View",
    "Wanted",
    "carry_on",
    "describe_fork",
    "fork_of",
    "forks_of",
    "only_fork",
    "overlaid",
    "remove_fork",
    "set_in",
    "status_at",
    "stopping_of",
]
