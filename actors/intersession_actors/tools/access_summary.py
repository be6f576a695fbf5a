"""What a call decided about access, for the one receipt it leaves (VIS-4)."""

import msgspec


class AccessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The canonical keys that were returned, and how many sessions were there and not seen."""

    keys: tuple[str, ...] = ()
    denied_count: int = 0
