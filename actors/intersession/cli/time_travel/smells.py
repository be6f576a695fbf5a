"""`intersession smells`: what is seldom meant in an exchange, a spawn or a run."""

from typing import Annotated, cast

from cyclopts import Parameter

from intersession.cli.host import in_fork
from intersession.cli.shell import READING, Answer, Reading, Screen, UsageError, safe
from intersession.cli.time_travel.seeing import debugger_of
from intersession_actors.debugger import SmellsAnswer


def smells(
    run: Annotated[
        str | None, Parameter(name="RUN", help="An exchange, a spawn or a run (see `intersession runs`).")
    ] = None,
    /,
    *,
    reading: Reading = READING,
) -> Answer:
    """Say what is seldom meant in an exchange, a spawn or a run.

    Turns that repeat each other, a reply that came late, a message that came twice, a loop that a limit cut, a guard that
    refused, a retry that changed the answer, an announce that nobody got, tokens that grow turn by turn. `runs --smell` marks
    all that is listed, `why` explains one.
    """
    if run is None:
        raise UsageError("RUN: required; `intersession runs --smell` marks what smells among all runs")
    inside, named = in_fork(reading, run)
    with debugger_of(inside) as debugger:
        found = debugger.call("smells", {"run": named(run)})
    answer = cast("SmellsAnswer", found)
    return Answer(found, lambda screen: _show(screen, answer))


def _show(screen: Screen, found: SmellsAnswer) -> None:
    if not found["smells"]:
        screen.line(safe(f"run {found['run']}: nothing that is seldom meant", "dim"))
    for smell in found["smells"]:
        place = smell["place"]
        screen.one_line(
            safe(smell["code"], "yellow"), f"  {smell['text']}", safe(f"  #{place['position']}", "dim")
        )
