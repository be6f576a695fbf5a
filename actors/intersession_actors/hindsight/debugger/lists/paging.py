"""What lists over the whole log share: they are read newest first, in pages, and say where a limit did not hold."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Annotated, Final, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec

from intersession_actors.calls.service.arguments import bounded
from intersession_actors.rules.gate.limits import Name, PlaceText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject

T = TypeVar("T")

USUAL: Final = 50
MOST: Final = 1000

AtArgument = Annotated[
    int | float | PlaceText | None,
    msgspec.Meta(description="As the log stood at this place. Default: head."),
]

LimitArgument = Annotated[
    float | None, msgspec.Meta(description="At most this many, the newest, 1 to 1000; 50 if not given.")
]


class Listed(NamedTuple, Generic[T]):
    """A page of a list, and the cursor for the next; None if there is none."""

    rows: list[T]
    cursor: str | None


class Numbered(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of a list whose cursor is the number of rows before a page."""

    cursor: Annotated[Name | None, msgspec.Meta(description="The cursor of the page before this one.")] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many rows, 1 to 1000; 50 if not given.")
    ] = None

    def page_of(self, rows: Sequence[T]) -> Listed[T]:
        """Return the page of the rows.

        Raises:
            ToolRefused: the cursor is invalid.
        """
        if self.cursor is not None and not (self.cursor.isascii() and self.cursor.isdigit()):
            raise invalid(
                "cursor", "it is no cursor of this list, give the one that the page before ended with"
            )
        first, limit = int(self.cursor or 0), most_of(self.limit)
        behind = first + limit
        return Listed([*rows[first:behind]], str(behind) if len(rows) > behind else None)


class PageAnswer(TypedDict):
    """What the answer of every list has: how many rows there are, and the `cursor` for those behind them."""

    count: int
    cursor: str | None
    limitApplied: NotRequired[int]


def most_of(limit: float | None) -> int:
    """Return the greatest number of rows.

    Raises:
        ToolRefused: the limit is no number.
    """
    return bounded(limit, "limit", 1, MOST, default=USUAL).value


def limits_applied(given: msgspec.Struct) -> JsonObject:
    """Return what an answer says of limits that are beyond their bounds: what holds in their place, as `limitApplied`.

    Raises:
        ToolRefused: a limit is no number.
    """
    told: JsonObject = {}
    for field, least in _LIMITS.items():
        told |= bounded(getattr(given, field, None), field, least, MOST, default=least).told
    return told


_LIMITS: Final = {"limit": 1, "messages": 0}
"""The fields of verbs that are limits, and the least that each can be."""


def paged(found: Iterable[T], position: Callable[[T], int], most: int) -> Listed[T]:
    """Return the first page of matches, each with its position; reads at most one match beyond it."""
    rows = list(islice(found, most + 1))
    if len(rows) <= most:
        return Listed(rows, None)
    return Listed(rows[:most], str(position(rows[most - 1])))
