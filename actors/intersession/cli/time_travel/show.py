"""`intersession show`: an exchange, a spawn or a run as a sequence diagram."""

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from intersession.cli.host import Asked, asks
from intersession.cli.shell import Answer, Screen, UsageError, safe
from intersession.cli.time_travel.seeing import At, show_place, show_smells
from intersession_actors.debugger import SHOW, Debugger, ShowAnswer
from intersession_events.machine import private_file
from intersession_projections.diagram import Diagram

_STYLES: Final = {"head": "bold", "tool": "dim", "gap": "dim", "failed": "red", "end": "bold"}


@asks(SHOW, run="RUN", forks=["run", "at"], options={"at": At})
def show(
    asked: Asked[ShowAnswer],
    *,
    svg: Annotated[Path | None, Parameter(help="Write it as SVG into this file.")] = None,
    mermaid: Annotated[bool, Parameter(negative="", help="Print it in Mermaid's language.")] = False,
    width: Annotated[
        int | None, Parameter(help="So many columns, 40 to 1000. Default: the terminal's, 100 in a pipe.")
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
    return Answer(dict(found), lambda screen: _show(screen, found, drawn, mermaid=mermaid, width=width))


NARROWEST: Final = 40
WIDEST: Final = 1000
_PIPE: Final = 100


def _show(screen: Screen, found: ShowAnswer, drawn: Diagram, *, mermaid: bool, width: int | None) -> None:
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
