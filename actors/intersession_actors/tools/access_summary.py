"""What a call decided about access, for the one receipt it leaves (VIS-4)."""

import msgspec


class AccessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The canonical keys that were returned, and how many sessions were there and not seen.

    `denied_targets` are single targets that were refused, as given, and why.
    """

    keys: tuple[str, ...] = ()
    denied: int = 0
    denied_targets: tuple[tuple[str, str], ...] = ()
