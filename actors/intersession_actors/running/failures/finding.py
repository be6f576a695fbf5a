"""One thing that is wrong now, or worth knowing, and what to do about it."""

from typing import Literal

import msgspec

Level = Literal["error", "warning", "note"]
"""`error`: somebody gets no answer, or something can be lost; `warning`: something stands still; `note`: good to know."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `code` stays the same from version to version; `what` and `advice` are for people."""

    code: str
    level: Level
    what: str
    advice: str


def wrong(code: str, what: str, advice: str) -> Finding:
    """Return a finding of level `error`: somebody gets no answer, or something can be lost."""
    return Finding(code=code, level="error", what=what, advice=advice)


def warning(code: str, what: str, advice: str) -> Finding:
    """Return a finding of level `warning`: something stands still."""
    return Finding(code=code, level="warning", what=what, advice=advice)


def note(code: str, what: str, advice: str) -> Finding:
    """Return a finding of level `note`: it is good to know."""
    return Finding(code=code, level="note", what=what, advice=advice)
