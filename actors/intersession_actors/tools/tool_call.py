"""A tool call on its way: who calls, from which run, and an answer that may still have to be waited for."""

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from intersession_actors.access_rules import Requester
from intersession_actors.core import CallingRun
from intersession_actors.tools.access_summary import AccessSummary
from intersession_actors.waits import Wait


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


class Caller:
    """Who calls: a session or the operator, perhaps from inside a run.

    `name` is what idempotency keys are kept under: the session's key or the credential's name.
    """

    def __init__(
        self, *, key: str | None, name: str, requester: Requester, run: CallingRun | None, ordinal: int
    ) -> None:
        self.key = key
        self.name = name
        self.requester = requester
        self.run = run
        self.ordinal = ordinal
        self.summary: AccessSummary | None = None
        """What the call decided about access; a tool that decides nothing leaves it None (VIS-4)."""


def ordinals() -> Callable[[], int]:
    """Return a counter of the calls of one run; the same run, tried again, counts the same."""
    counter = itertools.count(1)
    return lambda: next(counter)
