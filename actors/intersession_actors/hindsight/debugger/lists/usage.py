"""The verb `usage`: tokens and money of runs, added up by person, agent, session, model and day (ANS-11)."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Annotated, Final

import msgspec

from intersession_actors.hindsight.debugger.lists.paging import Numbered, PageAnswer
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.config.prices import Price, prices_of, whole
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import PlaceText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.basics.progress import Progress
from intersession_events.facts import ready
from intersession_events.log.log import Log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.places import kept
from intersession_events.stores.tailing.tail import Tail
from intersession_events.stores.tailing.view import QueryableView
from intersession_projections.questions.messages import used_by_person
from intersession_projections.questions.places.grammar import UnknownPlace, parse_time
from intersession_projections.views.usage import By, Sums, UsageView, Used, used

_USUAL: Final[tuple[By, ...]] = ("agent",)
_MICROS: Final = 1_000_000


@ready
class UsageOf(Numbered, frozen=True, kw_only=True):
    """The arguments of `usage`; null counts as missing."""

    by: Annotated[
        Annotated[Sequence[By], msgspec.Meta(min_length=1, max_length=5)] | None,
        msgspec.Meta(
            description="What to add up by: day, agent, session, model, person; several at once. Default: agent."
        ),
    ] = None
    since: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(description="Only from this day of UTC on: an ISO time or ms."),
    ] = None
    until: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(description="Only up to this day of UTC: an ISO time or ms."),
    ] = None


class UsageAnswer(PageAnswer):
    """Rows `{<each of by>, runs, input, output, cacheRead, cacheWrite, totalTokens, costMicros, unpriced}`, most tokens first, days in their order.

    `costMicros` is in millionths of the currency: what agents said, and for runs of which they did not, by the prices of the
    configuration. `unpriced` is the number of runs that neither tells of. `totals` are the same over all rows, on all pages.
    """

    usage: list[JsonObject]
    totals: JsonObject


def list_usage(view: View, given: UsageOf) -> UsageAnswer:
    """Return what runs have used, in the sessions that the caller sees; of imports what their answers say.

    Raises:
        ToolRefused: a time or the cursor is invalid.
    """
    return paged_usage(given, *usage_found(view, given))


def paged_usage(given: UsageOf, rows: list[JsonObject], totals: JsonObject) -> UsageAnswer:
    """Return a page of the rows.

    Raises:
        ToolRefused: the cursor is invalid.
    """
    page, cursor = given.page_of(rows)
    return {"usage": page, "totals": totals, "count": len(page), "cursor": cursor}


def usage_found(
    view: View, given: UsageOf, progress: Progress | None = None
) -> tuple[list[JsonObject], JsonObject]:
    """Return all rows of the same, and the totals. `progress` hears of the view of usage, where that has to catch up.

    Raises:
        ToolRefused: a time is invalid, or a limited caller adds up by person (`forbidden`).
    """
    by: Sequence[By] = tuple(dict.fromkeys(given.by or _USUAL))
    if "person" in by and not view.is_operator:
        raise ToolRefused("forbidden", "by: only the operator adds up by person, leave person out")
    since, until = _ms(given.since, "since"), _ms(given.until, "until")
    # A limited caller's sums are over the sessions that it sees.
    asked: Collection[By] = by if view.is_operator else {*by, "session"}
    if "person" in by:
        found = used_by_person(view.log, since_ms=since, until_ms=until)
    else:
        found = _of_view(view.log, asked, since, until, progress)
    if not view.is_operator:
        found = [*view.seen_of(found, lambda one: [one.session_key])]
    prices = prices_of(view.reader.config.models)
    sums: dict[tuple[str, ...], _Costs] = {}
    for one in found:
        sums.setdefault(tuple(one.of(each) for each in by), _Costs()).take(one, prices)
    rows: list[JsonObject] = [dict(zip(by, of, strict=True)) | costs.value for of, costs in sums.items()]
    rows.sort(key=lambda row: (row.get("day", ""), -row["totalTokens"], *(row[each] for each in by)))
    total = _Costs()
    for one in found:
        total.take(one, prices)
    return rows, total.value


def _of_view(
    log: Log,
    by: Collection[By],
    since: int | None,
    until: int | None,
    progress: Progress | None,
) -> list[Used]:
    with closing(_view(log)) as view:
        Tail(log, view).catch_up(progress)
        return used(view.query, by, since_ms=since, until_ms=until)


def _view(log: Log) -> QueryableView:
    try:
        return kept(UsageView(), log)
    except StoreUnavailable:
        return ViewFile(UsageView(), log, MEMORY)  # nothing can be written beside the log


class _Costs:
    """Sums with their money: exact until they are told."""

    def __init__(self) -> None:
        self._sums = Sums()
        self._priced = Decimal(0)
        self._unpriced = 0

    def take(self, one: Used, prices: Mapping[str, Price]) -> None:
        """Add a model's usage."""
        sums, price = one.sums, prices.get(one.model)
        self._sums = self._sums.and_also(sums)
        if price is None:
            self._unpriced += sums.unpriced
        else:
            self._priced += price.micros(
                sums.unpriced_input, sums.unpriced_output, sums.unpriced_cache_read, sums.unpriced_cache_write
            )

    @property
    def value(self) -> JsonObject:
        """The row as JSON."""
        sums = self._sums
        return {
            "runs": sums.runs,
            "input": sums.input,
            "output": sums.output,
            "cacheRead": sums.cache_read,
            "cacheWrite": sums.cache_write,
            "totalTokens": sums.total_tokens,
            "costMicros": sums.cost_micros + whole(self._priced),
            "unpriced": self._unpriced,
        }


def _ms(given: float | str | None, field: str) -> int | None:
    if given is None:
        return None
    try:
        return parse_time(given, field=field) if isinstance(given, str) else int(given)
    except (UnknownPlace, ValueError, OverflowError) as error:
        raise invalid(field, str(error).removeprefix(f"{field}: ")) from None
