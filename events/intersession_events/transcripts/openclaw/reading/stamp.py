"""The envelope that OpenClaw writes before a user's text: `[Sat 2026-11-21 04:05 UTC] `. Views strip it, the log never."""

import re
from typing import Final

_STAMP: Final = re.compile(
    r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(?: [^\]\n]{1,40})?\] "
)


def strip_stamp(text: str) -> str:
    """Return a user's text without the time stamp before it; any other text as it is (IMP-3)."""
    found = _STAMP.match(text)
    return text[found.end() :] if found else text
