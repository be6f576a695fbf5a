"""What can go wrong, as the operator and the host's `on_failure` are told of it, and tracebacks as text that can be shown."""

import logging
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.gate.limits import ERROR
from intersession_actors.rules.gate.values import plain_text, storable

FailureKind = Literal[
    "run_failed",
    "run_interrupted",
    "run_parked",
    "late_reply",
    "reply_withheld",
    "delivery_retry",
    "delivery_failed",
    "delivery_unknown",
    "delivery_denied",
    "delivery_parked",
    "actor_restarted",
    "actor_given_up",
    "slow_handler",
    "loop_blocked",
    "flow_restarted",
    "flow_set_aside",
    "files_left",
    "hold_rule_failed",
    "store_trouble",
    "row_unreadable",
    "batch_refused",
    "answer_lost",
    "config_refused",
    "checkpoint_failed",
    "checkpoint_unpublished",
    "schedule_missed",
]
"""Which kind of failure it is. More kinds may come: treat one that you do not know by its `level`."""

FailureLevel = Literal["info", "warning", "error"]


MOST_TRACEBACK_BYTES: Final = 8_192
_MOST_READ: Final = 4 * MOST_TRACEBACK_BYTES
"""The length that is searched for secrets before a text is cut, so that no half of one is left."""

_MOST_FRAMES: Final = 30
_MOST_ERROR_READ: Final = 10 * ERROR.most
_OURS: Final = ("intersession_actors.running.host.", "concurrent.futures.", "asyncio.")
"""The frames of our own calls say nothing about the host's code and are left out at the top."""


def traced(error: BaseException) -> str | None:
    """Return an exception's traceback, with its causes; None if it has none, or can't be shown.

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
    """Return an exception as one short text without secrets, for the caller. Its own `__str__` may raise."""
    try:
        text = plain_text(str(error))
    except BaseException:  # noqa: BLE001 - a host's exception class may do anything
        text = "(its text can't be shown)"
    text, _ = redact_text(storable(text[:_MOST_ERROR_READ]))
    name = storable(type(error).__name__)
    shown = f"{name}: {text}" if text else name
    return shown if len(shown) <= ERROR.most else f"{shown[: ERROR.most]}…"


def one_line(text: str) -> str:
    """Return a text on one line, with unprintable characters escaped."""
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


class Kind(NamedTuple):
    """How a kind of failure is reported: the logger below `intersession`, the level, and the words."""

    logger: str
    level: FailureLevel
    words: str


KINDS: Final[Mapping[FailureKind, Kind]] = {
    "run_failed": Kind("runs", "error", "run failed"),
    "run_interrupted": Kind("runs", "warning", "run was cut off and is tried again"),
    "run_parked": Kind("runs", "warning", "run waits: its agent is not registered in this process"),
    "late_reply": Kind("runs", "warning", "answer came after its attempt was over and is dropped"),
    "reply_withheld": Kind(
        "runs", "warning", "answer to a person was a word for silence, nothing is delivered"
    ),
    "delivery_retry": Kind("deliveries", "warning", "delivery failed and is tried again"),
    "delivery_failed": Kind("deliveries", "error", "delivery failed for good"),
    "delivery_unknown": Kind("deliveries", "error", "delivery in doubt, it is not sent again"),
    "delivery_denied": Kind("deliveries", "warning", "delivery forbidden by the send policy"),
    "delivery_parked": Kind("deliveries", "warning", "delivery waits: nobody registered its channel here"),
    "actor_restarted": Kind("actors", "error", "actor failed and is started again"),
    "actor_given_up": Kind("actors", "error", "actor failed too often and is degraded until the next start"),
    "slow_handler": Kind("actors", "warning", "handler was slow, others had to wait"),
    "loop_blocked": Kind("host", "warning", "event loop was blocked, all else on it had to wait"),
    "flow_restarted": Kind("flows", "error", "flow failed and is tried again"),
    "flow_set_aside": Kind("flows", "error", "flow can't go on and is set aside until the next start"),
    "files_left": Kind("flows", "warning", "attachments could not be removed"),
    "hold_rule_failed": Kind("flows", "error", "rule of the host failed, what it was asked about is held"),
    "store_trouble": Kind("store", "error", "store is not available"),
    "row_unreadable": Kind("store", "error", "a row of the log can't be read"),
    "batch_refused": Kind("store", "warning", "a batch was refused and is written one by one"),
    "answer_lost": Kind("store", "error", "answer given up, the store was away too long"),
    "config_refused": Kind("config", "error", "configuration refused, the old one stays"),
    "checkpoint_failed": Kind("checkpoints", "error", "no checkpoint could be taken"),
    "checkpoint_unpublished": Kind("checkpoints", "warning", "checkpoint not published, it is tried again"),
    "schedule_missed": Kind("schedules", "warning", "scheduled job did not run when it was due"),
}

LEVELS: Final[Mapping[FailureLevel, int]] = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure. Fields that its kind does not have are None.

    `what` says it in words. `session_key`, `run_id` and `attempt` name the run, `stream` the flow or delivery, `channel`
    where a text should go, `actor` who failed. `code` is a run's failure code, `error` one line without secrets,
    `traceback` text without secrets, of a bounded size. `retry_at_ms` is when it is tried again, `time_ms` when it was told.
    """

    kind: FailureKind
    level: FailureLevel
    what: str
    time_ms: int
    session_key: str | None = None
    run_id: str | None = None
    attempt: int | None = None
    stream: str | None = None
    channel: str | None = None
    actor: str | None = None
    code: str | None = None
    error: str | None = None
    retry_at_ms: int | None = None
    traceback: str | None = None


_NAMES: Final = (
    ("session", "session_key"),
    ("run", "run_id"),
    ("attempt", "attempt"),
    ("flow", "stream"),
    ("channel", "channel"),
    ("actor", "actor"),
    ("code", "code"),
)


def failure_line(failure: Failure) -> str:
    """Return a failure as one line of a log: `what: name=value …: error`. No value can begin another line."""
    given = ((name, getattr(failure, field)) for name, field in _NAMES)
    named = " ".join(f"{name}={value}" for name, value in given if value is not None)
    if failure.retry_at_ms is not None:
        named += f" again_in={max(0, failure.retry_at_ms - failure.time_ms) / 1000:.0f}s"
    error = failure.error or ""
    if failure.code is not None:
        error = error.removeprefix(f"{failure.code}: ")  # it is named already
    return one_line(": ".join(part for part in (failure.what, named, error) if part))
