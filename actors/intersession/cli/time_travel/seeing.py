"""What the commands of time travel share: the debugger on a log that is only read, and how a place is shown."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import reader_of
from intersession.cli.shell import Reading, Screen, clock, safe
from intersession_actors.debugger import Debugger, PlaceAnswer, SmellAnswer, View

At = Annotated[
    str | None,
    Parameter(
        help="A place: a position, event:ID, an ISO time, head, RUN@start, RUN@reply, RUN@turn:3, RUN@announce or RUN@end; "
        "+N or -N behind it for steps on or back, -N alone from the head. Default: head."
    ),
]


@contextmanager
def debugger_of(reading: Reading) -> Generator[Debugger]:
    """Open the log for reading, and give the debugger on it, as the operator has it."""
    with reader_of(reading) as reader:
        yield Debugger(View(reader))


def show_smells(screen: Screen, smells: Sequence[SmellAnswer], indent: str = "") -> None:
    """Say what is seldom meant, one smell a line."""
    for smell in smells:
        screen.one_line(
            safe(f"{indent}{smell['code']}", "yellow"),
            f"  {smell['text']}",
            safe(f"  #{smell['place']['position']}", "dim"),
        )


def show_place(screen: Screen, place: PlaceAnswer, following: PlaceAnswer | None = None) -> None:
    """Say where the place is, and what comes next."""
    time = "" if place["timeMs"] is None else f"  {clock(place['timeMs'])}"
    screen.line(safe(place["text"], "bold"), safe(f"  #{place['position']}{time}", "dim"))
    if following is not None:
        screen.line(safe(f"next: #{following['position']}  {following['text']}", "dim"))
