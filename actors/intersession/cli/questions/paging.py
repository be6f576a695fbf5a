"""Lists that are read in pages, newest first: which part is asked for, and how a page is answered and shown."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Generic, TypeVar

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.shell.answer import Answer, Cursor, Since, Until, UsageError
from intersession.cli.shell.terminal import Screen
from intersession.cli.story.unknown import Unknown, tell_unknown
from intersession_actors.debugger import Listed, paged
from intersession_actors.gate import LISTED
from intersession_actors.service import Reader
from intersession_events.plain_json import JsonObject, present
from intersession_projections.spans import Span
from intersession_projections.wording import counted

T = TypeVar("T")

_USUAL: Final = 50
_ALL: Final = 2**53
_CURSOR: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A page, and the cursor of the next one, if there is one."""

    rows: Sequence[T]
    cursor: str | None
    as_lines: bool = False

    def answer(
        self,
        name: str,
        value: Callable[[T], JsonObject],
        show: Callable[[Screen, Sequence[T]], None],
        *,
        what: str,
        hint: str = "",
        if_none: str = "",
        unknown: Sequence[Unknown] = (),
    ) -> Answer:
        """Return what a command answers: the rows under a name. `what` is one of them in a word, `hint` what can be done with it.

        `if_none` is what to look at where there is no row.
        `unknown` are filters that name what the log does not know.
        """
        known: JsonObject = {
            "count": len(self.rows),
            name: [value(row) for row in self.rows],
            "cursor": self.cursor,
        }
        if unknown:
            known["unknown"] = [each.as_value() for each in unknown]

        def told(screen: Screen) -> None:
            if self.as_lines:
                for row in self.rows:
                    screen.json_line(value(row))
                return
            self._show(screen, show, what, hint if self.rows else if_none)
            tell_unknown(screen, unknown)

        return Answer(known, told)

    def _show(
        self, screen: Screen, show: Callable[[Screen, Sequence[T]], None], what: str, hint: str
    ) -> None:
        if self.rows:
            show(screen, self.rows)
        count = counted(len(self.rows), what) if self.rows else f"no {what}s"
        screen.dim("; ".join(filter(None, (count, hint))))
        screen.more(self.cursor)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Page:
    """The part of a list that is asked for: what every list over the whole log takes.

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
        """How many rows there may be."""
        return self.limit or (_ALL if self.jsonl else _USUAL)

    @property
    def given(self) -> JsonObject:
        """What is asked of a verb."""
        if self.cursor is not None and not _CURSOR.fullmatch(self.cursor):
            raise UsageError(
                f"--cursor: {self.cursor[:64]!r} is none, give the one that the page before ended with"
            )
        return present({"since": self.since, "until": self.until, "cursor": self.cursor})

    def span(self, reader: Reader) -> Span:
        """Return which part of the log that is."""
        before = int(self.given["cursor"]) if "cursor" in self.given else None
        since = _position(reader, self.since, "--since")
        return Span(after=since or 0, to=_position(reader, self.until, "--until", is_end=True), before=before)

    def listing(self, found: Listed[T]) -> Listing[T]:
        """Return what a verb has found for this page."""
        return Listing(found.rows, found.cursor, as_lines=self.jsonl)

    def of(self, found: Iterable[T], position: Callable[[T], int]) -> Listing[T]:
        """Return the first page of what is found, each at its position; no more than one beyond it is read."""
        return self.listing(paged(found, position, self.most))


def _position(reader: Reader, typed: str | None, field: str, *, is_end: bool = False) -> int | None:
    return None if typed is None else reader.place(typed, field=field, is_end=is_end).position


PAGE = Page()
