"""`intersession imports`: what imports skipped, left out or took otherwise, with file, line and reason."""

from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import Asked, asks
from intersession.cli.shell import Answer, Screen, moment, one_line, safe
from intersession_actors.debugger import IMPORTS, ImportsAnswer
from intersession_actors.gate import LISTED
from intersession_events.plain_json import JsonObject
from intersession_projections.wording import counted

_TEXT = 160
_WHAT = Annotated[
    Literal["skipped", "refused", "unattributed", "renamed", "note"] | None,
    Parameter(
        help="Only rows of this: lines that were skipped, calls that the other system refused, and so on."
    ),
]
_LIMIT = Annotated[
    int | None,
    Parameter(help="At most this many rows. Default: 50.", validator=Number(gte=1, lte=LISTED.most)),
]


@asks(IMPORTS, options={"what": _WHAT, "limit": _LIMIT})
def imports(asked: Asked[ImportsAnswer]) -> Answer:
    """List what imports left out, and why.

    Lines that could not be read, calls that the other system had refused, what belongs to no exchange or spawn, sessions that
    have another key here: each with its file, its line and the reason. The newest import comes first.
    """
    with asked.answered() as (found, _):
        return Answer(dict(found), lambda screen: _show(screen, found))


def _show(screen: Screen, found: ImportsAnswer) -> None:
    for each in found["imports"]:
        came = f"{counted(each['sessions'], 'session')}, {counted(each['messages'], 'message')}"
        refused = (
            f"{counted(each['refusedSends'], 'send')} and {counted(each['refusedSpawns'], 'spawn')} refused"
        )
        screen.one_line(
            safe(f"#{each['position']}  {moment(each['timeMs'])}  ", "dim"), safe(each["source"], "bold")
        )
        screen.line(safe(f"    {came}; {counted(each['skipped'], 'line')} skipped, {refused}", "dim"))
    for row in found["rows"]:
        screen.one_line(safe(f"{row['what']}  ", "bold"), _where(row), ": ", one_line(row["reason"], _TEXT))
    if not found["imports"]:
        screen.line(safe("nothing was imported into this log", "dim"))
        return
    screen.line(safe(counted(found["count"], "row"), "dim"))
    if found["cursor"] is not None:
        screen.to_copy(safe(f"more: --cursor {found['cursor']}", "dim"))


def _where(row: JsonObject) -> str:
    line = "" if "line" not in row else f":{row['line']}"
    last = "" if "lastLine" not in row else f"-{row['lastLine']}"
    file = "" if "file" not in row else f"{row['file']}{line}{last}"
    of = "" if "of" not in row else str(row["of"])
    key = "" if "key" not in row else f" is {row['key']} here"
    return "  ".join(filter(None, (file, of + key)))
