"""A tool call on its way: who calls, from which run, and an answer that may still have to be waited for."""

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from intersession_actors.service import Wait


class Answer(msgspec.Struct, frozen=True):
    """The answer, as a model sees it."""

    result: dict[str, Any]


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """The answer once `future` is done or `timeout` seconds are over; `finish` makes it from the log.

    `wait` is what the caller's session is seen to wait for meanwhile (SEND-10).
    """

    future: "Future[None]"
    timeout: float
    finish: Callable[[], dict[str, Any]]
    wait: Wait | None = None


def ordinals() -> Callable[[], int]:
    """Return a counter of the calls of one run; the same run, tried again, counts the same."""
    counter = itertools.count(1)
    return lambda: next(counter)
