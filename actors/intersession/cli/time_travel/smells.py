"""`intersession smells`: what is seldom meant in a run, or in all runs of a log."""

from typing import Annotated, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import Asked, asks
from intersession.cli.shell import Answer, Screen, safe
from intersession.cli.time_travel.seeing import At, show_smells
from intersession_actors.debugger import SMELLS, SmellingAnswer, SmellsAnswer
from intersession_events.plain_json import JsonObject
from intersession_projections.wording import counted

_LIMIT = Annotated[
    int | None,
    Parameter(
        help="At most this many that smell, the newest. Default: 50.", validator=Number(gte=1, lte=1000)
    ),
]


@asks(SMELLS, run="RUN", forks=["run", "at"], options={"at": At, "limit": _LIMIT})
def smells(asked: Asked[SmellsAnswer | SmellingAnswer]) -> Answer:
    """Say what is seldom meant in a run, or in all runs.

    Turns that repeat each other, a reply that came late, a message that came twice, a loop that a limit cut, a guard that
    refused, a retry that changed the answer, an announce that nobody got, tokens that grow turn by turn. Without RUN it is all
    that smell, newest first. `runs --smell` marks all that is listed, `why` explains one.
    """
    with asked.answered() as (found, _):
        value: JsonObject = {**found}
    if "runs" in value:
        return Answer(value, lambda screen: _show_all(screen, cast("SmellingAnswer", value)))
    return Answer(value, lambda screen: _show_one(screen, cast("SmellsAnswer", value)))


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
