"""What lists over the whole log share: they are read newest first, in pages."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Annotated, Final, TypeVar

import msgspec

from intersession_actors.service import bounded

T = TypeVar("T")

USUAL: Final = 50
MOST: Final = 1000

LimitGiven = Annotated[
    float | None, msgspec.Meta(description="At most this many, the newest, 1 to 1000; 50 if not given.")
]


def paged(
    found: Iterable[T], position: Callable[[T], int], limit: float | None
) -> tuple[list[T], str | None]:
    """Return the first page of what is found, each at its position, and the cursor for what is behind it; None if nothing is.

    Raises:
        ToolRefused: the limit is no number.
    """
    most = bounded(limit, "limit", 1, MOST, default=USUAL).value
    rows = list(islice(found, most + 1))
    if len(rows) <= most:
        return rows, None
    return rows[:most], str(position(rows[most - 1]))
