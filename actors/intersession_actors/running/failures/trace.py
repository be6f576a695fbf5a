"""A traceback as text that can be recorded and shown: without secrets, of a bounded size, harmless to a terminal."""

import traceback
from types import TracebackType
from typing import Final

from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.gate.limits import ERROR
from intersession_actors.rules.gate.values import plain_text, storable

MOST_TRACEBACK_BYTES: Final = 8_192
_MOST_READ: Final = 4 * MOST_TRACEBACK_BYTES
"""So much is looked through for secrets before it is cut, lest a half of one is left."""

_MOST_FRAMES: Final = 30
_MOST_ERROR_READ: Final = 10 * ERROR.most
_OURS: Final = ("intersession_actors.running.host.", "concurrent.futures.", "asyncio.")
"""The frames of our own calls say nothing about the host's code and are left out at the top."""


def traced(error: BaseException) -> str | None:
    """Return an exception's traceback, with what caused it; None where it has none, or can't be shown.

    Where it is too long its middle is left out: the last lines say what was raised and where.
    """
    try:
        begun = _below_our_calls(error.__traceback__)
        if begun is None:
            return None
        shown = traceback.TracebackException(
            type(error), error, begun, limit=-_MOST_FRAMES, compact=True, max_group_width=5, max_group_depth=3
        )
        text = _fitted("".join(shown.format()), _MOST_READ)
        text = text.encode(errors="backslashreplace").decode()
        text, _ = redact_text(text)
    except BaseException:  # noqa: BLE001 - a host's exception class may do anything
        return None
    return _fitted(_printable(text).rstrip(), MOST_TRACEBACK_BYTES)


def described(error: BaseException) -> str:
    """Return an exception as one short text without secrets: it is told to who asked. Its own `__str__` may raise."""
    try:
        text = plain_text(str(error))
    except BaseException:  # noqa: BLE001 - a host's exception class may do anything
        text = "(its text can't be shown)"
    text, _ = redact_text(storable(text[:_MOST_ERROR_READ]))
    name = storable(type(error).__name__)
    shown = f"{name}: {text}" if text else name
    return shown if len(shown) <= ERROR.most else f"{shown[: ERROR.most]}…"


def one_line(text: str) -> str:
    """Return a text on one line: what is not printable is shown as its escape."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _printable(text: str) -> str:
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text
    )


def _below_our_calls(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if not f"{module}.".startswith(_OURS):
            return trace
        trace = trace.tb_next
    return trace


def _fitted(text: str, most_bytes: int) -> str:
    encoded = text.encode(errors="backslashreplace")
    if len(encoded) <= most_bytes:
        return text
    head, tail = most_bytes // 4, most_bytes - most_bytes // 4 - len(_CUT)
    return (
        encoded[:head].decode(errors="ignore") + _CUT + encoded[len(encoded) - tail :].decode(errors="ignore")
    )


_CUT: Final = "\n  [...]\n"
