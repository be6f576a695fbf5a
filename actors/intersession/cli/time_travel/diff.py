"""`intersession diff`: what differs between two runs, a run and its fork, or two places of one."""

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import in_fork
from intersession.cli.shell import OK, READING, REFUSED, Answer, Reading, Screen
from intersession.cli.story import Names, difference_lines, names_of
from intersession.cli.time_travel.seeing import debugger_of
from intersession_actors.debugger import DiffAnswer


def diff(
    a: Annotated[
        str,
        Parameter(
            name="A", help="An exchange, a spawn or a run, by any name that is shown; or a place of one."
        ),
    ],
    b: Annotated[str, Parameter(name="B", help="What it is compared with.")],
    /,
    *,
    other: Annotated[
        str | None, Parameter(help="The log that B is in, a file or a URL. Default: the same one.")
    ] = None,
    exact: Annotated[
        bool, Parameter(negative="", help="Ids, times, positions and hashes count, too.")
    ] = False,
    every: Annotated[bool, Parameter(name="--all", negative="", help="Show what is the same, too.")] = False,
    reading: Reading = READING,
) -> Answer:
    """Say what differs between two runs, or two places of one.

    They are laid side by side by structure: step by step, turn by turn, call by call. First comes where they part, then what
    changed ([-only in A-], {+only in B+}), then what came of them. What counts is what was meant: ids, times, positions and
    hashes are left out. Of a place (RUN@turn:1), a run is compared as far as there. The exit code is 1 where they differ.
    """
    in_a, named_a = in_fork(reading, a)
    in_b, named_b = in_fork(reading if other is None else replace(reading, store=other), b)
    with debugger_of(in_a) as debugger:
        if in_b.store == in_a.store:
            found = debugger.diff(named_a(a), named_b(b), exact=exact)
            names = names_of(debugger.view.log, found)
        else:
            with debugger_of(in_b) as of_b:
                found = debugger.diff(named_a(a), named_b(b), exact=exact, other=of_b)
                names = names_of(debugger.view.log, found, of_b.view.log)
    return Answer(
        dict(found), lambda screen: _show(screen, found, names, every=every), OK if found["same"] else REFUSED
    )


def _show(screen: Screen, found: DiffAnswer, names: Names, *, every: bool) -> None:
    for line in difference_lines(found, names, every=every):
        screen.line(line)
