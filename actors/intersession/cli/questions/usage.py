"""`intersession usage`: total usage of runs."""

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import msgspec
from cyclopts import Parameter

from intersession.cli.host.reading import reading_log
from intersession.cli.shell.answer import COMMON, Answer, Common, UsageError
from intersession.cli.shell.terminal import Screen
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_events.log.log import Log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.places import kept
from intersession_events.stores.tailing.tail import Tail
from intersession_events.stores.tailing.view import QueryableView
from intersession_projections.questions.messages import used_by_person
from intersession_projections.questions.places.grammar import UnknownPlace, parse_time
from intersession_projections.views.usage import By, UsageView, Used, used

_MICROS = 1_000_000


def usage(
    *,
    by: Annotated[By, Parameter(help="What to add up by: day, agent, session, model or person.")] = "agent",
    since: Annotated[str | None, Parameter(help="Only from this day of UTC on.")] = None,
    until: Annotated[str | None, Parameter(help="Only up to this day of UTC.")] = None,
    left: Annotated[
        bool, Parameter(help="Show what is used and left of budgets instead.", negative=())
    ] = False,
    common: Common = COMMON,
) -> Answer:
    """Add up what runs have used; or show what budgets have left.

    Tokens and money are what agents reported of runs that were answered, and what imported answers say. A person's is all that
    came of their words; the log is read for that. All other sums are kept in `<store>.views`, or in the log's database,
    and brought up to date first.
    """
    if left:
        from intersession.cli.questions.budgets import of_budgets  # noqa: PLC0415 - sums need no settings

        with reading_log(common) as log:
            return of_budgets(log)
    span = {"since_ms": _ms(since, "--since"), "until_ms": _ms(until, "--until")}
    if by == "person":
        with reading_log(common) as log:
            rows = used_by_person(log, **span)
        return _answer(rows, by)
    with reading_log(common) as log, closing(_view(log)) as view:
        with Screen().progress("Adding up") as progress:
            Tail(log, view).catch_up(progress)
        rows = used(view.query, by, **span)
    return _answer(rows, by)


def _answer(rows: Sequence[Used], by: By) -> Answer:
    value: JsonObject = {"count": len(rows), "usage": [_value(row, by) for row in rows]}
    return Answer(value, lambda screen: _show(screen, rows, by))


def _view(log: Log) -> QueryableView:
    try:
        return kept(UsageView(), log)
    except StoreUnavailable:
        return ViewFile(UsageView(), log, MEMORY)  # nothing can be written beside the log


def _ms(typed: str | None, field: str) -> int | None:
    try:
        return None if typed is None else parse_time(typed, field=field)
    except UnknownPlace as error:
        raise UsageError(str(error)) from error


def _value(row: Used, by: By) -> JsonObject:
    value: JsonObject = msgspec.to_builtins(row)
    return {by: value.pop("of")} | value


def _show(screen: Screen, rows: Sequence[Used], by: By) -> None:
    if rows:
        screen.table(
            [by, "runs", "input", "output", "cache read", "cache write", "tokens", "cost"],
            [
                (
                    row.of or "not told",
                    *map(
                        str,
                        (row.runs, row.input, row.output, row.cache_read, row.cache_write, row.total_tokens),
                    ),
                    f"{row.cost_micros / _MICROS:.6f}" if row.cost_micros else "",
                )
                for row in rows
            ],
        )
    screen.dim(counted(sum(row.runs for row in rows), "run") + " with known usage")
