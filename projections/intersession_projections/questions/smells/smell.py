"""What a smell is, and the input of a search for one (SMELL-1). A host writes its own with these."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from intersession_events.log.recorded import Recorded


class Smell(NamedTuple):
    """Something in an exchange, a spawn or a run that is seldom meant: its code, where it shows, and what it is in a sentence.

    `position` is that of the event that shows it.
    """

    code: str
    position: int
    text: str


class Seen(NamedTuple):
    """What is looked at for smells: the events of one exchange, spawn or run over all its sessions, in log order.

    `earlier` are the last events of the session that was asked, before it was: at most 64, in log order, too.
    """

    events: tuple[Recorded, ...]
    earlier: tuple[Recorded, ...] = ()


SmellRule = Callable[[Seen], Iterable[Smell]]
"""A pure function that finds smells of one kind. It is called in the process that asks, for what is on the page alone."""
