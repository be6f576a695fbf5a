"""`intersession usage`: total usage of runs."""

from collections.abc import Sequence
from typing import Annotated, Final

from cyclopts import Parameter

from intersession.cli.host.reading import reading_log
from intersession.cli.host.verb_call import VerbCall, asks, at_most
from intersession.cli.shell.answer import Answer, Common
from intersession.cli.shell.terminal import Screen
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.usage import UsageAnswer, UsageOf, paged_usage, usage_found
from intersession_actors.hindsight.debugger.verbs.verbs import USAGE
from intersession_events.facts.reasons import counted

_MICROS: Final = 1_000_000
_SINCE = Annotated[str | None, Parameter(help="Only from this day of UTC on.")]
_UNTIL = Annotated[str | None, Parameter(help="Only up to this day of UTC.")]


@asks(
    USAGE,
    options={"since": _SINCE, "until": _UNTIL, "limit": at_most("At most this many rows. Default: 50.")},
)
def usage(
    asked: VerbCall[UsageAnswer],
    *,
    left: Annotated[
        bool, Parameter(help="Show what is used and left of budgets instead.", negative=())
    ] = False,
) -> Answer:
    """Add up what runs have used; or show what budgets have left.

    Tokens and money are what agents reported of runs that were answered, and what imported answers say. Of a run whose agent
    did not report what it cost, money is by the prices of --config (`models.providers.*.models[].cost`). A person's is all
    that came of their words; the log is read for that. All other sums are kept in `<store>.views`, or in the log's
    database, and brought up to date first.
    """
    if left:
        from intersession.cli.questions.budgets import of_budgets  # noqa: PLC0415 - sums need no settings

        with reading_log(Common(store=asked.reading.store)) as log:
            return of_budgets(log)
    with asked.view() as view:
        given = read_arguments(UsageOf, asked.given)
        with Screen().progress("Adding up") as progress:
            rows, totals = usage_found(view, given, progress)
    found = paged_usage(given, rows, totals)
    by = [*dict.fromkeys(given.by or ("agent",))]
    return Answer(dict(found), lambda screen: _show(screen, found, by))


def _show(screen: Screen, found: UsageAnswer, by: Sequence[str]) -> None:
    rows = found["usage"]
    if rows:
        screen.table(
            [*by, "runs", "input", "output", "cache read", "cache write", "tokens", "cost", "no price"],
            [
                (
                    *(row[each] or "not told" for each in by),
                    *(
                        str(row[name])
                        for name in ("runs", "input", "output", "cacheRead", "cacheWrite", "totalTokens")
                    ),
                    f"{row['costMicros'] / _MICROS:.6f}" if row["costMicros"] else "",
                    str(row["unpriced"] or ""),
                )
                for row in rows
            ],
        )
    totals = found["totals"]
    told = [counted(totals["runs"], "run") + " with known usage"]
    if totals["costMicros"]:
        told.append(f"{totals['costMicros'] / _MICROS:.6f} in all")
    if totals["unpriced"]:
        told.append(f"of {totals['unpriced']} neither a cost nor a price is known")
    screen.dim("; ".join(told))
    screen.more(found["cursor"])
