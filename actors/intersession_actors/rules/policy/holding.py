"""What can want a text of an exchange looked at before it goes on: the word of whom, before what, how often. Pure (LIVE-1)."""

import msgspec

from intersession_events.facts import HoldBefore, HoldSource


class HoldOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody's word that an exchange is to stop before a text goes on.

    `order` tells it from others of its kind: unless every text is wanted, it stops an exchange once.
    """

    source: HoldSource
    before: HoldBefore
    by: str
    order: str
    note: str | None = None
