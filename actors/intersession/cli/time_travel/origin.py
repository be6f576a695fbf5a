"""`intersession origin`: who said something first, and how it reached others."""

import re
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import Asked, asks
from intersession.cli.shell import OK, REFUSED, Answer, Screen, clock, day, one_line, safe
from intersession.cli.story import Names, names_of
from intersession.cli.time_travel.seeing import At
from intersession_actors.debugger import ORIGIN, HopAnswer, OriginAnswer, SeenAnswer
from intersession_actors.gate import LISTED
from intersession_projections.wording import counted

_LIMIT = Annotated[
    int | None,
    Parameter(
        help="With --seen: at most this many runs. Default: 50.", validator=Number(gte=1, lte=LISTED.most)
    ),
]
_TEXT = 160
_BEFORE = 40
_HOW = {
    "person": "says",
    "agent": "says",
    "sessions_send": "tells",
    "sessions_spawn": "hands over",
    "tool": "gives",
    "delivery": "sends",
    "system": "asks",
}
_FOUND = {
    "exact": "",
    "folded": "nobody said it like that; in other case or white space:",
    "shared": "nobody said all of it; the longest part that somebody said:",
}


@asks(ORIGIN, words="PHRASE", forks=["run", "at"], options={"at": At, "limit": _LIMIT})
def origin(asked: Asked[OriginAnswer]) -> Answer:
    """Say who said some words first, and how they reached others.

    The first message of the log that holds them, and all others that do, over all sessions, tools and channels; behind the
    arrow stands where each had them from. Words that nobody said so are looked for in any case and white space, then by the
    longest run of them that anybody said. The exit code is 1 where nobody did.
    """
    with asked.answered() as (found, view):
        names = names_of(view.log, found)
    code = OK if found["first"] is not None else REFUSED
    within = "run" in asked.given
    return Answer(dict(found), lambda screen: _show(screen, found, names, within=within), code)


def _show(screen: Screen, found: OriginAnswer, names: Names, *, within: bool) -> None:
    first = found["first"]
    if first is None:
        screen.line("Nobody said that." + _up_to(found, within=within))
        return
    if found["match"] is not None and _FOUND[found["match"]]:
        screen.one_line(safe(f"{_FOUND[found['match']]} ", "yellow"), found["words"] or "")
    screen.line(safe(f"first said, {day(first['timeMs'])} (times are UTC)", "bold"))
    words = found["words"] or ""
    _line(screen, names, first, words)
    if found["hops"]:
        screen.line(safe("from there", "bold"))
    for hop in found["hops"]:
        _line(screen, names, hop, words)
    screen.line(safe(f"{counted(len(found['hops']), 'hop')}.{_up_to(found, within=within)}", "dim"))
    if "seen" in found:
        _show_seen(screen, names, found["seen"], found.get("cursor"))


def _show_seen(screen: Screen, names: Names, runs: Sequence[SeenAnswer], cursor: str | None) -> None:
    screen.line(safe("given to", "bold"))
    for run in runs:
        screen.one_line(
            safe(f"  #{run['position']}  {clock(run['timeMs'])}  ", "dim"),
            safe(names.of(run["sessionKey"]), "bold"),
            f" in run {run['runId']}, attempt {run['attempt']}: {', '.join(run['within'])}",
        )
    screen.line(safe(counted(len(runs), "run"), "dim"))
    if cursor is not None:
        screen.to_copy(safe(f"more: --cursor {cursor}", "dim"))


def _up_to(found: OriginAnswer, *, within: bool) -> str:
    cut, first = found["cut"], found["first"]
    if cut is None:
        return ""
    if within and first is not None and first["position"] < cut:
        return f" Others before #{cut} are left out."
    part = f"from #{cut} on" if within else f"up to #{cut}"
    return f" Only the log {part} was looked through."


def _line(screen: Screen, names: Names, hop: HopAnswer, words: str) -> None:
    to = "" if hop["to"] is None else f" → {names.of(hop['to'])}"
    cause = "" if hop["cause"] is None else f"  ← #{hop['cause']}"
    screen.one_line(
        safe(f"  #{hop['position']}  {clock(hop['timeMs'])}  ", "dim"),
        safe(f"{names.of(hop['who'])}{to}", "bold"),
        safe(f" {_HOW[hop['via']]}{_in_words_of(hop)}: "),
        one_line(_around(hop, words), _TEXT),
        safe(cause, "dim"),
    )


def _in_words_of(hop: HopAnswer) -> str:
    return f", in the words of {hop['editedBy']}" if "editedBy" in hop else ""


def _around(hop: HopAnswer, words: str) -> str:
    """Return the part of a hop's text that has the words: of what a tool gave, the line they are in."""
    folded = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
    text = hop["text"]
    if hop["via"] == "tool":
        text = next((line for line in text.split("\n") if folded.search(line)), text)
    found = folded.search(text)
    begins = 0 if found is None or found.end() <= _TEXT else max(0, found.start() - _BEFORE)
    return f"…{text[begins:]}" if begins else text
