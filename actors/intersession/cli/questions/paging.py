"""Lists in pages, newest first: which part is selected, and how a page is answered and shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.shell.answer import Answer, Cursor, Since, Until
from intersession.cli.shell.terminal import Screen
from intersession.cli.story.unknown import Unknown, tell_unknown
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.lists.paging import Listed
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import LISTED
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts.reasons import counted
from intersession_projections.basics.spans import Span

T = TypeVar("T")

_USUAL: Final = 50
_ALL: Final = 2**53


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Page:
    """The selected part of a list: the options of every list over the whole log.

    Args:
        limit: At most this many, the newest. Default: 50; with --jsonl, all.
        jsonl: Print JSON, one row a line, all of them unless --limit says less.
    """

    since: Since = None
    until: Until = None
    cursor: Cursor = None
    limit: Annotated[int | None, Parameter(validator=Number(gte=1, lte=LISTED.most))] = None
    jsonl: bool = False

    @property
    def most(self) -> int:
        """The greatest number of rows."""
        return self.limit or (_ALL if self.jsonl else _USUAL)

    @property
    def given(self) -> JsonObject:
        """The arguments of the verb."""
        return present({"since": self.since, "until": self.until, "cursor": self.cursor})

    def span(self, reader: Reader) -> Span:
        """Return the selected part of the log."""
        return span_of(View(reader), read_arguments(InSpan, self.given))

    def answer(
        self,
        found: Listed[T],
        name: str,
        value: Callable[[T], JsonObject],
        show: Callable[[Screen, Sequence[T]], None],
        *,
        what: str,
        hint: str = "",
        if_none: str = "",
        unknown: Sequence[Unknown] = (),
    ) -> Answer:
        """Return the answer of a command: the rows under a name. `what` names one row, `hint` says what can be done with it.

        `if_none` is what to look at where there is no row.
        `unknown` are filters that name what the log does not know.
        """
        rows, cursor = found
        known: JsonObject = {"count": len(rows), name: [value(row) for row in rows], "cursor": cursor}
        if unknown:
            known["unknown"] = [each.as_value() for each in unknown]

        def told(screen: Screen) -> None:
            if self.jsonl:
                for row in rows:
                    screen.json_line(value(row))
                return
            if rows:
                show(screen, rows)
            count, more = (counted(len(rows), what), hint) if rows else (f"no {what}s", if_none)
            screen.dim("; ".join(filter(None, (count, more))))
            screen.more(cursor)
            tell_unknown(screen, unknown)

        return Answer(known, told)


PAGE = Page()
