"""Holds of texts of an exchange before they go on: orders, and what a rule of the host's is asked and says. Pure (LIVE-1)."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from intersession_events.facts import HeldText, HoldBefore, HoldSource


class HoldOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order that an exchange stops before a text goes on.

    `order` tells it from others of its kind: unless every text is wanted, it stops an exchange once.
    """

    source: HoldSource
    before: HoldBefore
    by: str
    order: str
    note: str | None = None


class GoingOn(msgspec.Struct, frozen=True, kw_only=True):
    """A text of an exchange that is about to go on, for the host's rule.

    `step` is `reply` for a text that goes to the other session (`to`), `announce` for one that goes to a channel (`channel`, None
    where there is nowhere to go). `turn` is the turn that the text is from: 0 for the reply of the first run. `speaker` said it; all
    three are session keys. `run_id` is the exchange's first run, by which it is named everywhere.
    """

    run_id: str
    exchange_id: str
    step: HeldText
    text: str
    speaker: str
    to: str | None
    channel: str | None
    turn: int
    requester: str | None
    target: str
    request: str


class Ruling(NamedTuple):
    """A rule's verdict. `note` is its reason, in its words, or in ours if its answer was invalid."""

    holds: bool
    note: str | None = None


HoldRule = Callable[[GoingOn], bool | str | Awaitable[bool | str | None] | None]
"""Says whether a text is held: True, or a text that says why; False and None let it go on. Sync or async."""
