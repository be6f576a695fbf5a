"""`intersession runs`: the exchanges, spawns and runs of a log, with the ids that `replay` takes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import reader_of
from intersession.cli.questions.endings import ends_named
from intersession.cli.questions.paging import PAGE, Listing, Page
from intersession.cli.shell import READING, Answer, AsOf, Reading, Screen, moment
from intersession.cli.story import Names, Standing, agent_named, began_ms, kind_of, names_of, unknown_names
from intersession_actors.debugger import session_named
from intersession_events.stores import has_writer
from intersession_projections.flows import ExchangeSummary, SpawnSummary
from intersession_projections.forks import frozen_in
from intersession_projections.places import Flow, Then, flow_id, flow_sessions
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.work import WorkFound, WorkKind, WorkWanted


def runs(
    *,
    unfinished: Annotated[bool, Parameter(name="--open", help="Only what is not over yet.")] = False,
    failed: Annotated[
        bool,
        Parameter(help="Only what failed: a run, a turn, the way of its text, or what the flow ended with."),
    ] = False,
    held: Annotated[bool, Parameter(help="Only exchanges that are held, with the text that waits.")] = False,
    kind: Annotated[
        tuple[WorkKind, ...], Parameter(help="Only exchanges, spawns or runs; may be given several times.")
    ] = (),
    end: Annotated[
        tuple[str, ...],
        Parameter(
            help="Only what ended so: its run (of an exchange the first one), its ping-pong or all of it, as --json says it "
            '(ok, turn_limit, announced) or as the list shows it ("a turn failed"); may be given several times.'
        ),
    ] = (),
    session: Annotated[str | None, Parameter(help="Only what this session took part in.")] = None,
    other: Annotated[
        str | None, Parameter(name="--with", help="Only what this session took part in as well.")
    ] = None,
    agent: Annotated[str | None, Parameter(help="Only what a session of this agent took part in.")] = None,
    channel: Annotated[
        str | None, Parameter(help="Only what was asked for on this channel, or what a text of went there.")
    ] = None,
    person: Annotated[
        str | None,
        Parameter(help="Only what this person asked for: ada, telegram:ada, or any name that is shown."),
    ] = None,
    words: Annotated[
        str | None, Parameter(help="Only where somebody said all of these words at once, in any case.")
    ] = None,
    smell: Annotated[
        bool,
        Parameter(help="Mark what is seldom meant: turns that repeat each other, announces nobody got, …"),
    ] = False,
    as_of: AsOf = None,
    page: Page = PAGE,
    reading: Reading = READING,
) -> Answer:
    """List exchanges, spawns and runs, newest first.

    Each line has the id that `replay` takes. What became of a text that went outside stands beside it: delivered, tried
    again, failed, in doubt. Where no process writes the log, nobody is at work on what is not over, and the next start goes
    on with it.

    All filters hold at once, at a place as all of it stood there. A run that belongs to an exchange or a
    spawn is part of it and has no line of its own.
    """
    with reader_of(reading) as reader:
        at = None if as_of is None else reader.place(as_of, field="--at").position
        wanted = WorkWanted(
            kinds=kind,
            ends=ends_named(end),
            is_open=unfinished,
            failed=failed,
            held=held,
            session_key=None if session is None else session_named(reader, session, field="--session"),
            other_key=None if other is None else session_named(reader, other, field="--with"),
            agent_id=agent_named(agent),
            channel=channel,
            person=person,
            words=words,
            span=page.span(reader),
        )
        # Who is at work now says nothing of what stood then.
        at_work = at is not None or has_writer(reader.log)
        work = WorkFound(reader.log, None if at is None else Then(reader.log, at))
        frozen = frozen_in(reader.log, at)
        flows = page.of(work.newest(wanted), lambda flow: flow.accepted)
        rows = Standing.of_all(reader, flows.rows, at_work=at_work, at=at, frozen=frozen)
        listing: Listing[Standing] = Listing(rows, flows.cursor, as_lines=flows.as_lines)
        if smell:
            listing = replace(listing, rows=Standing.with_smells(reader, listing.rows, at))
        names = names_of(reader.log, [key for flow in flows.rows for key in flow_sessions(flow)])
        named = {"--agent": wanted.agent_id, "--channel": channel, "--person": person}
        unknown = [] if listing.rows else unknown_names(reader, named)
    everything = wanted == WorkWanted() and at is None
    if_none = (
        "`intersession sessions` shows who was spoken to, `intersession replay SESSION` tells one"
        if everything
        else ""
    )
    hint = "`intersession replay ID` tells one of them, `intersession why ID` why it ended so"
    if at is not None:
        hint = "`intersession replay ID --at PLACE` tells one of them as far as there"
    elif any(standing.can_be_retried for standing in listing.rows):
        hint = f"{hint}, `intersession retry ID` has a run that failed tried again"
    if at is None and any(standing.is_open for standing in listing.rows):
        hint = f"{hint}, `intersession abort ID` stops what is not over"
    if at is None and any(standing.held is not None for standing in listing.rows):
        hint = f"{hint}, `intersession release ID` lets what is held go on"
    return listing.answer(
        "runs",
        Standing.value,
        lambda screen, rows: _show(screen, rows, names),
        what="row",
        hint=hint,
        if_none=if_none,
        unknown=unknown,
    )


def _show(screen: Screen, found: Sequence[Standing], names: Names) -> None:
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


def _between(flow: Flow, names: Names) -> str:
    match flow:
        case ExchangeSummary():
            return f"{names.of(flow.requester or 'operator')} → {names.of(flow.target)}"
        case SpawnSummary():
            return f"{names.of(flow.asker)} → {names.of(flow.child)}"
        case RunOutcome():
            return names.of(flow.session_key)
