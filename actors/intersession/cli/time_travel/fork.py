"""`intersession fork`: a run as it stood at a place, as a log of its own. And `forks`: what was made, and how it came out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import App, Parameter

from intersession.cli.host import fork_file, in_fork, reader_of, reading_log, store_path, store_url
from intersession.cli.shell import OK, READING, REFUSED, Answer, Reading, Screen, clock, safe
from intersession.cli.time_travel.forking import (
    OTHERWISE,
    Otherwise,
    forked,
    outcomes,
    show,
    show_outcomes,
    value_of,
)
from intersession.cli.time_travel.seeing import At
from intersession_actors.config import load_config
from intersession_actors.debugger import View
from intersession_actors.forking import Wanted
from intersession_events.errors import LogError
from intersession_events.facts import ForkEdit
from intersession_events.forks import forks_beside
from intersession_events.plain_json import JsonObject
from intersession_events.stores import MEMORY, open_log, remove_fork
from intersession_projections.forks import ForkTold, fork_told
from intersession_projections.places import flow_id
from intersession_projections.timeline import counted


def fork(
    run: Annotated[
        str,
        Parameter(
            name="RUN",
            help="An exchange, a spawn or a run, by any name that is shown, or a place of it: RUN@turn:2. Or a fork.",
        ),
    ],
    /,
    *,
    at: At = None,
    no_run: Annotated[bool, Parameter(name="--no-run", negative="", help="Only make it.")] = False,
    otherwise: Otherwise = OTHERWISE,
    reading: Reading = READING,
) -> Answer:
    """Fork a run at a place, with something otherwise.

    All that the run touches goes along: sessions with their whole transcripts, exchanges, spawns, deliveries, and whatever
    those refer to. The log itself is only read, also while somebody writes to it. The fork is a small file beside it, that proves
    by itself where it comes from (`verify`), and that every command takes in the place of a run.

    It is carried on to its end where every agent that it needs is given, else it waits and says which are missing. Its channels
    are sealed, and what else was open is frozen. Exit code 1 says that a recording ended (--agent '*=recorded').
    """
    inside, named = in_fork(reading, run, at)
    with reader_of(inside) as reader:
        view = View(reader)
        name, place = view.parted(named(run), named(at), field="run")
        what = reader.log.head() if place is None else place
        flow = view.flow(name)
        # What the run was under holds for its fork as well, if nothing else is given.
        recorded = None if inside.config is not None else view.config_at(flow.accepted)
        config = recorded or load_config(inside.config).config
        with open_log(reader.log.path, read_only=True) as source:
            wanted = Wanted(flow_id(flow), what)
            came = forked(source, reader, config, wanted, otherwise, run=not no_run)
    diverged = any(one.carried is not None and one.carried.state == "diverged" for one in came)
    code = REFUSED if diverged else OK
    if len(came) == 1:
        return Answer(value_of(came[0]), lambda screen: show(screen, came[0]), code)
    rows = outcomes(came)
    return Answer({"outcomes": rows}, lambda screen: show_outcomes(screen, rows), code)


_FORKS_HELP: Final = "List forks, or those of a run; `forks rm ID` deletes one."

forks = App(name="forks", help=_FORKS_HELP)


@forks.default
def listed(
    run: Annotated[
        str | None, Parameter(name="RUN", help="Only forks of this run, by any name that is shown.")
    ] = None,
    /,
    *,
    reading: Reading = READING,
) -> Answer:
    """List the forks of a log, or of a run.

    Each with its source log, where it was cut, its edits, and how it ended. Forks of forks are among them.
    """
    path = store_path(store_url(reading, load_config(reading.config).config))
    files = forks_beside(path) if path != MEMORY else []
    wanted = None
    if run is not None:
        with reader_of(reading) as reader:
            wanted = flow_id(View(reader).flow(run))
    elif not files:
        with reading_log(reading):
            pass  # a log that is not there has no forks either, and is not to be taken for one that is
    found: list[ForkTold] = []
    unread: list[tuple[Path, LogError]] = []
    for file in files:
        try:
            with open_log(str(file), read_only=True) as log:
                told = fork_told(log)
        except LogError as error:
            unread.append((file, error))
            continue
        if told is not None and wanted in {None, told.run, told.outcome.run}:
            found.append(told)
    found.sort(key=lambda told: (told.time_ms, told.id))
    rows = [_row(told) for told in found]
    value: JsonObject = {
        "forks": rows,
        "unread": [{"id": file.stem, "problem": str(error)} for file, error in unread],
    }
    return Answer(value, lambda screen: _show(screen, found, unread))


@forks.command(name="rm")
def remove(
    fork_id: Annotated[str, Parameter(name="ID", help="The fork's id, or the beginning of it.")],
    /,
    *,
    reading: Reading = READING,
) -> Answer:
    """Delete a fork: its file, and all that was kept beside it. Nothing else is changed."""
    file = fork_file(reading, fork_id)
    remove_fork(file)
    return Answer(
        {"ok": True, "fork": file.stem, "store": str(file)},
        lambda screen: screen.line(safe("deleted: ", "bold green"), str(file)),
    )


def _row(told: ForkTold) -> JsonObject:
    row: JsonObject = msgspec.to_builtins(told)
    return {**row, "edits": _edits(told.edits)}


def _edits(edits: Sequence[ForkEdit]) -> list[JsonObject]:
    return [{"kind": one.kind, "place": one.place, "key": one.key, "value": one.value} for one in edits]


def _show(screen: Screen, found: Sequence[ForkTold], unread: Sequence[tuple[Path, LogError]]) -> None:
    for told in found:
        how = ", ".join(part for part in (told.outcome.state, told.outcome.end, told.outcome.close) if part)
        edits = ", ".join(f"{one.kind} {one.key}".strip() for one in told.edits) or "no edits"
        screen.one_line(
            safe(told.id, "bold"), f"  {clock(told.time_ms)}  of {told.run} at #{told.place.position}"
        )
        screen.one_line(f"  {edits}; {how}; {counted(told.outcome.events, 'event')} of its own")
    for file, error in unread:
        screen.one_line(safe(file.stem, "bold"), safe(f"  can't be read: {error}", "red"))
    if not found and not unread:
        screen.line(safe("no forks; `intersession fork RUN --at PLACE --no-run` makes one", "dim"))
