"""`intersession runs`: the exchanges, spawns and runs of a log, with the ids that `replay` takes."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import has_writer, reader_of
from intersession.cli.shell import (
    READING,
    Answer,
    Cursor,
    Newest,
    Reading,
    Screen,
    Since,
    Until,
    moment,
    page_before,
    place,
    safe,
)
from intersession.cli.story import Flow, Names, Standing, began_ms, flow_id, kind_of, session_named
from intersession_projections.flows import ExchangeSummary, SpawnSummary
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.timeline import counted
from intersession_projections.work import WorkFound, WorkKind, WorkWanted


def runs(
    *,
    limit: Newest = 50,
    unfinished: Annotated[bool, Parameter(name="--open", help="Only what is not over yet.")] = False,
    failed: Annotated[
        bool, Parameter(help="Only what failed: a run, the way of its text, or what the flow ended with.")
    ] = False,
    kind: Annotated[
        tuple[WorkKind, ...], Parameter(help="Only exchanges, spawns or runs; may be given several times.")
    ] = (),
    session: Annotated[str | None, Parameter(help="Only what this session took part in.")] = None,
    agent: Annotated[str | None, Parameter(help="Only what a session of this agent took part in.")] = None,
    channel: Annotated[
        str | None, Parameter(help="Only what was asked for on this channel, or what a text of went there.")
    ] = None,
    person: Annotated[
        str | None, Parameter(help="Only what this person asked for: their id or name on the channel.")
    ] = None,
    since: Since = None,
    until: Until = None,
    cursor: Cursor = None,
    reading: Reading = READING,
) -> Answer:
    """List exchanges, spawns and runs, newest first, with the ids that `replay` takes.

    What became of a text that went outside stands beside it: delivered, tried again, failed, in doubt. Where no process writes the
    log, nobody is at work on what is not over, and the next start goes on with it.

    A run that belongs to an exchange or a spawn is part of it and has no line of its own.
    """
    with reader_of(reading) as reader:
        wanted = WorkWanted(
            kinds=kind,
            is_open=unfinished,
            failed=failed,
            session_key=None if session is None else session_named(reader, session, field="--session"),
            agent_id=agent,
            channel=channel,
            person=person,
            after=0 if since is None else reader.place(place(since) or 0, field="--since").position,
            to=None if until is None else reader.place(place(until) or 0, field="--until").position,
            before=page_before(cursor),
        )
        at_work = has_writer(reader.log)
        flows = list(islice(WorkFound(reader.log).newest(wanted), limit + 1))
        found = [Standing.of(reader.flows, flow, at_work=at_work) for flow in flows[:limit]]
    following = str(flows[limit - 1].accepted) if len(flows) > limit else None
    value = {"count": len(found), "runs": [standing.value() for standing in found], "cursor": following}
    return Answer(value, lambda screen: _show(screen, found, following))


def _show(screen: Screen, found: Sequence[Standing], following: str | None) -> None:
    if found:
        names = Names()
        screen.table(
            ["id", "what", "accepted (UTC)", "between", "how it stands"],
            [
                (
                    flow_id(standing.flow),
                    kind_of(standing.flow),
                    moment(began_ms(standing.flow)),
                    _between(standing.flow, names),
                    standing.in_words(),
                )
                for standing in found
            ],
        )
    screen.line(
        safe(
            f"{counted(len(found), 'line') if found else 'nothing'}; `intersession replay ID` tells one",
            "dim",
        )
    )
    if following is not None:
        screen.to_copy(safe(f"more: --cursor {following}", "dim"))


def _between(flow: Flow, names: Names) -> str:
    match flow:
        case ExchangeSummary():
            return f"{names.of(flow.requester or 'operator')} → {names.of(flow.target)}"
        case SpawnSummary():
            return f"{names.of(flow.asker)} → {names.of(flow.child)}"
        case RunOutcome():
            return names.of(flow.session_key)
