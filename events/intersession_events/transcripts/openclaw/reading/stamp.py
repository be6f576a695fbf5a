"""What OpenClaw writes before a user's text: `[Sat 2026-11-21 04:05 UTC] `, and where a message of a session came from.

Views strip both, the log never: a message's provenance says the same.
"""

import re
from typing import Final

_STAMP: Final = re.compile(
    r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(?: [^\]\n]{1,40})?\] "
)
_ROUTED: Final = re.compile(
    r"\[Inter-session message\] sourceSession=[^\n]* isUser=false\n"
    r"(?:This content was routed by OpenClaw from another session or internal tool\.[^\n]*\n)?"
)


def strip_stamp(text: str) -> str:
    """Return a user's text without the time stamp and the source before it; any other text as it is (IMP-3)."""
    found = _STAMP.match(text)
    rest = text[found.end() :] if found else text
    routed = _ROUTED.match(rest)
    return rest[routed.end() :] if routed else rest
