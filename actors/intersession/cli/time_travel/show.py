"""`intersession show` and `smells`: a run as a sequence diagram, and unusual patterns; and how other commands show a place."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, cast

from cyclopts import Parameter

from intersession.cli.host.reading import reader_of
from intersession.cli.host.verb_call import VerbCall, asks, at_most
from intersession.cli.shell.answer import Answer, Reading, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import clock
from intersession_actors.hindsight.debugger.answers import PlaceAnswer
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.show import ShowAnswer
from intersession_actors.hindsight.debugger.smells import SmellAnswer, SmellingAnswer, SmellsAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import SHOW, SMELLS
from intersession_actors.hindsight.debugger.view import View
from intersession_events.basics.machine import private_file
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_projections.questions.diagram.diagram import Diagram

At = Annotated[
    str | None,
    Parameter(
        help="A place: a position, event:ID, an ISO time, head, RUN@start, RUN@reply, RUN@turn:3, RUN@announce or RUN@end; "
        "+N or -N behind it for steps on or back, -N alone from the head. Default: head."
    ),
]


@contextmanager
def debugger_of(reading: Reading) -> Generator[Debugger]:
    """Open the log for reading, and return the operator's debugger on it."""
    with reader_of(reading) as reader:
        yield Debugger(View(reader))


def show_smells(screen: Screen, smells: Sequence[SmellAnswer], indent: str = "") -> None:
    """Print smells, one a line."""
    for smell in smells:
        screen.one_line(
            safe(f"{indent}{smell['code']}", "yellow"),
            f"  {smell['text']}",
            safe(f"  #{smell['place']['position']}", "dim"),
        )


def show_place(screen: Screen, place: PlaceAnswer, following: PlaceAnswer | None = None) -> None:
    """Print the place, and the next event."""
    time = "" if place["timeMs"] is None else f"  {clock(place['timeMs'])}"
    screen.line(safe(place["text"], "bold"), safe(f"  #{place['position']}{time}", "dim"))
    if following is not None:
        screen.dim(f"next: #{following['position']}  {following['text']}")


_STYLES: Final = {"head": "bold", "tool": "dim", "gap": "dim", "failed": "red", "end": "bold"}


@asks(SHOW, run="RUN", forks=["run", "at"], options={"at": At})
def show(
    asked: VerbCall[ShowAnswer],
    *,
    svg: Annotated[Path | None, Parameter(help="Write it as SVG into this file.")] = None,
    mermaid: Annotated[bool, Parameter(help="Print it in Mermaid's language.")] = False,
    width: Annotated[
        int | None,
        Parameter(help="The number of columns, 40 to 1000. Default: the terminal's, 100 in a pipe."),
    ] = None,
) -> Answer:
    """Draw a run: who said what to whom, and how it ended.

    Each lane is a session, a person or a channel. Many lanes make it wider than the terminal: scroll sideways with `less -S`. With
    a place, what stands behind it is dimmed.
    """
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise UsageError(f"--width: {width} is not between {NARROWEST} and {WIDEST}")
    with asked.answered() as (found, view):
        drawn = Debugger(view).diagram(asked.given["run"], at=asked.given.get("at"))
    if svg is not None:
        try:
            with private_file(svg, new=False) as file:
                file.write(drawn.svg().encode())
        except OSError as error:
            raise UsageError(f"--svg: {svg} can't be written: {error.strerror}") from None
    return Answer(dict(found), lambda screen: _show_run(screen, found, drawn, mermaid=mermaid, width=width))


NARROWEST: Final = 40


WIDEST: Final = 1000


_PIPE: Final = 100


def _show_run(screen: Screen, found: ShowAnswer, drawn: Diagram, *, mermaid: bool, width: int | None) -> None:
    if mermaid:
        for written in drawn.mermaid().splitlines():
            screen.to_copy(written)
        return
    show_place(screen, found["place"], found["next"])
    screen.line()
    at = found["place"]["position"]
    for line in drawn.lines(width or (screen.width if screen.is_terminal else _PIPE)):
        is_later = line.position is not None and line.position > at
        screen.to_copy(safe(line.text, "dim" if is_later else _STYLES.get(line.kind, "")))
    show_smells(screen, found["smells"])


_LIMIT = at_most("At most this many that smell, the newest. Default: 50.", 1000)


@asks(SMELLS, run="RUN", forks=["run", "at"], options={"at": At, "limit": _LIMIT})
def smells(asked: VerbCall[SmellsAnswer | SmellingAnswer]) -> Answer:
    """Say what is seldom meant in a run, or in all runs.

    Turns that repeat each other, a reply that came late, a message that came twice, a loop that a limit cut, a guard that
    refused, a retry that changed the answer, an announce that nobody got, tokens that grow turn by turn. Without RUN it is all
    that smell, newest first. `runs --smell` marks all that is listed, `why` explains one.
    """
    with asked.answered() as (found, _):
        value: JsonObject = {**found}
    if "runs" in value:
        return Answer(value, lambda screen: _show_smelling(screen, cast("SmellingAnswer", value)))

    def told(screen: Screen) -> None:
        if not value["smells"]:
            screen.dim(f"{value['run']}: nothing that is seldom meant")
        show_smells(screen, value["smells"])

    return Answer(value, told)


def _show_smelling(screen: Screen, found: SmellingAnswer) -> None:
    for run in found["runs"]:
        screen.line(safe(run["run"], "bold"))
        show_smells(screen, run["smells"], indent="  ")
    smelling = counted(len(found["runs"]), "run") if found["runs"] else "nothing that is seldom meant"
    screen.dim(f"{smelling}; {counted(found['looked'], 'run')} looked at")
    screen.more(found["cursor"])
