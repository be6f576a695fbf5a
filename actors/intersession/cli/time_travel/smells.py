"""`intersession smells`: what is seldom meant in a run, or in all runs of a log."""

from dataclasses import dataclass
from typing import Annotated, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import in_fork
from intersession.cli.shell import READING, Answer, Cursor, Reading, Screen, safe
from intersession.cli.time_travel.seeing import At, debugger_of, show_smells
from intersession_actors.debugger import SmellingAnswer, SmellsAnswer
from intersession_events.plain_json import JsonObject, present
from intersession_projections.wording import counted


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Among:
    """Which runs are looked at, where none is named."""

    session: Annotated[str | None, Parameter(help="Only runs that this session took part in.")] = None
    since: Annotated[
        str | None, Parameter(help="Only what began after a place: a position, an ISO time, RUN@start, …")
    ] = None
    until: Annotated[
        str | None, Parameter(help="Only what began up to a place: a position, an ISO time, RUN@end, …")
    ] = None
    cursor: Cursor = None
    limit: Annotated[
        int | None,
        Parameter(
            help="At most this many that smell, the newest. Default: 50.", validator=Number(gte=1, lte=1000)
        ),
    ] = None


_ALL = Among()


def smells(
    run: Annotated[
        str | None,
        Parameter(
            name="RUN",
            help="An exchange, a spawn or a run, by any name that is shown. Default: all that smell.",
        ),
    ] = None,
    /,
    *,
    code: Annotated[
        tuple[str, ...],
        Parameter(help="Only smells of this code (polite_loop, …); may be given several times."),
    ] = (),
    at: At = None,
    among: Among = _ALL,
    reading: Reading = READING,
) -> Answer:
    """Say what is seldom meant in a run, or in all runs.

    Turns that repeat each other, a reply that came late, a message that came twice, a loop that a limit cut, a guard that
    refused, a retry that changed the answer, an announce that nobody got, tokens that grow turn by turn. Without RUN it is all
    that smell, newest first. `runs --smell` marks all that is listed, `why` explains one.
    """
    inside, named = in_fork(reading, run, at)
    given: JsonObject = {
        "run": named(run),
        "code": list(code) or None,
        "at": named(at),
        "session": among.session,
        "since": among.since,
        "until": among.until,
        "cursor": among.cursor,
        "limit": among.limit,
    }
    with debugger_of(inside) as debugger:
        found = debugger.call("smells", present(given))
    if "runs" in found:
        every = cast("SmellingAnswer", found)
        return Answer(found, lambda screen: _show_all(screen, every))
    answer = cast("SmellsAnswer", found)
    return Answer(found, lambda screen: _show_one(screen, answer))


def _show_one(screen: Screen, found: SmellsAnswer) -> None:
    if not found["smells"]:
        screen.line(safe(f"{found['run']}: nothing that is seldom meant", "dim"))
    show_smells(screen, found["smells"])


def _show_all(screen: Screen, found: SmellingAnswer) -> None:
    for run in found["runs"]:
        screen.line(safe(run["run"], "bold"))
        show_smells(screen, run["smells"], indent="  ")
    smelling = counted(len(found["runs"]), "run") if found["runs"] else "nothing that is seldom meant"
    screen.line(safe(f"{smelling}; {counted(found['looked'], 'run')} looked at", "dim"))
    if found["cursor"] is not None:
        screen.to_copy(safe(f"more: --cursor {found['cursor']}", "dim"))
