"""What can go wrong, as the operator and the host's `on_failure` are told of it: one value for each kind of failure."""

import logging
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_actors.running.failures.trace import one_line

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
]
"""Which kind of failure it is. More kinds may come: treat one that you do not know by its `level`."""

FailureLevel = Literal["info", "warning", "error"]


class Kind(NamedTuple):
    """How a kind of failure is told: by which logger below `intersession`, how loud, and in which words."""

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
}

LEVELS: Final[Mapping[FailureLevel, int]] = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something went wrong. What does not belong to its kind is None.

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
    """Return a failure as one line of a log: `what: name=value …: error`. Nothing in it can begin another line."""
    given = ((name, getattr(failure, field)) for name, field in _NAMES)
    named = " ".join(f"{name}={value}" for name, value in given if value is not None)
    if failure.retry_at_ms is not None:
        named += f" again_in={max(0, failure.retry_at_ms - failure.time_ms) / 1000:.0f}s"
    error = failure.error or ""
    if failure.code is not None:
        error = error.removeprefix(f"{failure.code}: ")  # it is named already
    return one_line(": ".join(part for part in (failure.what, named, error) if part))
