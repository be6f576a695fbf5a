"""`intersession fork`: a run as it stood at a place, as a log of its own. And `forks`: what was made, and how it came out."""

from typing import Annotated, Final

from cyclopts import App, Parameter

from intersession.cli.host import fork_file, in_fork, reader_of, reading_log, store_of
from intersession.cli.shell import OK, READING, REFUSED, Answer, Reading, Screen, clock, safe
from intersession.cli.time_travel.forking import (
    OTHERWISE,
    Otherwise,
    forked,
    show,
    show_outcomes,
)
from intersession.cli.time_travel.seeing import At
from intersession_actors.debugger import View
from intersession_actors.forking import Listed, Wanted, came_told, forks_of, outcomes_told
from intersession_events.forks import remove_fork
from intersession_projections.places import flow_id
from intersession_projections.wording import counted


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
        came = forked(reader, inside, Wanted(flow_id(flow), what), otherwise, run=not no_run)
    diverged = any(one.carried is not None and one.carried.state == "diverged" for one in came)
    code = REFUSED if diverged else OK
    rows = outcomes_told(came)
    value = came_told(came[0]) if len(came) == 1 else {"outcomes": rows}

    def told(screen: Screen) -> None:
        if otherwise.jsonl:
            for one in came:
                screen.json_line(came_told(one))
        elif len(came) == 1 or no_run:
            for one in came:
                show(screen, one)
        else:
            show_outcomes(screen, rows)

    return Answer(value, told, code)


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
    path = store_of(reading).place
    wanted = None
    if run is not None:
        with reader_of(reading) as reader:
            wanted = flow_id(View(reader).flow(run))
    listed = forks_of(path, wanted)
    if run is None and not (listed.forks or listed.unread):
        with reading_log(reading):
            pass  # a log that is not there has no forks either, and is not to be taken for one that is
    return Answer(listed.told(), lambda screen: _show(screen, listed))


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


def _show(screen: Screen, listed: Listed) -> None:
    for told in listed.forks:
        how = ", ".join(part for part in (told.outcome.state, told.outcome.end, told.outcome.close) if part)
        edits = ", ".join(f"{one.kind} {one.key}".strip() for one in told.edits) or "no edits"
        screen.one_line(
            safe(told.id, "bold"), f"  {clock(told.time_ms)}  of {told.run} at #{told.place.position}"
        )
        screen.one_line(f"  {edits}; {how}; {counted(told.outcome.events, 'event')} of its own")
        if told.outcome.left is not None:
            screen.one_line(safe(f"  {told.outcome.left.text}", "yellow"))
    for file, error in listed.unread:
        screen.one_line(safe(file.stem, "bold"), safe(f"  can't be read: {error}", "red"))
    if not (listed.forks or listed.unread):
        screen.line(safe("no forks; `intersession fork RUN --at PLACE --no-run` makes one", "dim"))
