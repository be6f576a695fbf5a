"""`intersession runs`: the exchanges, spawns and runs of a log, with the ids that `replay` takes."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import has_writer, reader_of
from intersession.cli.shell import READING, Answer, Newest, Reading, Screen, moment, safe
from intersession.cli.story import Flow, Names, Standing, began_ms, flow_id, kind_of
from intersession_actors.service import Reader
from intersession_projections.flows import ExchangeSummary, SpawnSummary
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.timeline import counted


def runs(
    *,
    limit: Newest = 50,
    unfinished: Annotated[bool, Parameter(name="--open", help="Only what is not over yet.")] = False,
    reading: Reading = READING,
) -> Answer:
    """List exchanges, spawns and runs, newest first, with the ids that `replay` takes.

    What became of a text that went outside stands beside it: delivered, tried again, failed, in doubt. Where no process writes the
    log, nobody is at work on what is not over, and the next start goes on with it.

    A run that belongs to an exchange or a spawn is part of it and has no line of its own.
    """
    with reader_of(reading) as reader:
        at_work = has_writer(reader.log)
        found = [
            Standing.of(reader.flows, flow, at_work=at_work)
            for flow in _found(reader, limit, unfinished=unfinished)
        ]
    value = {"count": len(found), "runs": [standing.value() for standing in found]}
    return Answer(value, lambda screen: _show(screen, found))


def _found(reader: Reader, limit: int, *, unfinished: bool) -> list[Flow]:
    flows: list[Flow] = []
    if unfinished:
        exchanges = [reader.flows.exchange(_id(stream)) for stream in reader.flows.open_exchanges()]
        spawns = [reader.flows.spawn(_id(stream)) for stream in reader.flows.open_spawns()]
        flows += [flow for flow in (*exchanges, *spawns) if flow is not None]
        flows += [run for run in reader.runs.open_runs() if reader.flows.flow_of_run(run.run_id) is None]
    else:
        flows += reader.flows.exchanges(limit)
        flows += reader.flows.spawns(limit)
        flows += _runs_alone(reader, limit)
    return sorted(flows, key=lambda flow: -flow.accepted)[:limit]


def _runs_alone(reader: Reader, limit: int) -> list[RunOutcome]:
    """Return the newest runs that belong to no flow; how far back they lie is not known before."""
    asked = limit
    while True:
        recent = reader.runs.recent(asked)
        alone = [run for run in recent if reader.flows.flow_of_run(run.run_id) is None]
        if len(alone) >= limit or len(recent) < asked:
            return alone[:limit]
        asked *= 4


def _id(stream: str) -> str:
    return stream.partition(":")[2]


def _show(screen: Screen, found: Sequence[Standing]) -> None:
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


def _between(flow: Flow, names: Names) -> str:
    match flow:
        case ExchangeSummary():
            return f"{names.of(flow.requester or 'operator')} → {names.of(flow.target)}"
        case SpawnSummary():
            return f"{names.of(flow.asker)} → {names.of(flow.child)}"
        case RunOutcome():
            return names.of(flow.session_key)
