"""The outcome of one run, and how each of its events changes it. Pure."""

from typing import ClassVar, Literal, NamedTuple, cast

import msgspec

from intersession_events.basics.ids import SESSIONS, exchange_stream, spawn_stream
from intersession_events.facts import (
    RunAborted,
    RunAttempt,
    RunCompleted,
    RunEnd,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    Step,
    Usage,
    ready,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.views.flows.rows import FAILED_RUNS

RunStatus = Literal["queued", "running", "ok", "error", "timeout", "aborted"]


@ready
class RunOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a run. Times in ms; `started_ms` is the start of attempt `attempt`.

    `reply` is the run's own final text and None is no text; for a run that failed or was aborted it is what the
    agent had said until then. `status` "timeout" is a failure with the code `timeout`. `accepted` and `position` are the
    positions of the run's first and last event, the versions their places in the session's stream; `root` is the
    chain's root (the event's correlation id). `retry_of` is the failed run that this one tries again, `into` the one that
    answers its message (QUEUE-2).
    """

    kind: ClassVar[Literal["run"]] = "run"
    run_id: str
    session_key: str
    session_id: str
    step: Step
    message_id: str
    status: RunStatus
    queued_ms: int
    accepted: int
    position: int
    first_version: int
    last_version: int
    attempt: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    code: str | None = None
    error: str | None = None
    reply: str | None = None
    usage: Usage | None = None
    model: str | None = None
    caller: str | None = None
    exchange_id: str | None = None
    spawn_id: str | None = None
    turn: int | None = None
    chain: tuple[str, ...] = ()
    hops: int = 0
    timeout_ms: int = 0
    root: str | None = None
    retry_of: str | None = None
    into: str | None = None

    @property
    def ended(self) -> bool:
        """Whether it has ended for good."""
        return self.status not in {"queued", "running"}

    @property
    def accepted_ms(self) -> int:
        """When it was accepted, under the name that exchanges and spawns use."""
        return self.queued_ms

    @property
    def is_open(self) -> bool:
        """Whether it is not over, under the name that exchanges and spawns use."""
        return not self.ended

    @property
    def flow(self) -> str | None:
        """The stream of its exchange or spawn."""
        if self.exchange_id is not None:
            return exchange_stream(self.exchange_id)
        return None if self.spawn_id is None else spawn_stream(self.spawn_id)

    @property
    def is_alone(self) -> bool:
        """Whether it belongs to no exchange and no spawn."""
        return self.exchange_id is None and self.spawn_id is None

    @property
    def failed(self) -> bool:
        """Whether it ended without an answer, and was not stopped on request."""
        return self.status in FAILED_RUNS


class RunRequest(NamedTuple):
    """The caller of a run outside of flows, and its idempotency key."""

    caller: str
    key: str


def asked_in(event: RunQueued) -> RunRequest | None:
    """Return the caller of a run and its key; None without a key, or for a run of an exchange or a spawn."""
    if event.idempotency_key is None or event.flow is not None:
        return None
    return RunRequest(event.caller or "operator", event.idempotency_key)


def begin_run(recorded: Recorded, event: RunQueued) -> RunOutcome:
    """Return the row of a run that is accepted."""
    return RunOutcome(
        run_id=event.run_id,
        session_key=recorded.stream.removeprefix(SESSIONS),
        session_id=event.session_id,
        step=event.step,
        message_id=event.message_id,
        status="queued",
        queued_ms=recorded.time,
        accepted=recorded.position,
        position=recorded.position,
        first_version=recorded.version,
        last_version=recorded.version,
        caller=event.caller,
        exchange_id=event.exchange_id,
        spawn_id=event.spawn_id,
        turn=event.turn,
        chain=event.chain,
        hops=event.hops,
        model=event.model,
        timeout_ms=event.timeout_ms,
        root=recorded.correlation,
        retry_of=event.retry_of,
    )


class EndOfRun(NamedTuple):
    """The end of a run, from its last event. `reply` is the final text, or the text so far."""

    status: RunStatus
    error: str | None = None
    reply: str | None = None


def end_of(event: RunEnd) -> EndOfRun:
    """Return how a run ended."""
    return EndOfRun(cast("RunStatus", event.status), event.trouble, event.spoken)


def evolve_run(before: RunOutcome, recorded: Recorded, event: RunAttempt) -> RunOutcome:
    """Return the state of a run after one of its events."""
    replace = msgspec.structs.replace
    row = replace(before, position=recorded.position, last_version=recorded.version, attempt=event.attempt)
    if isinstance(event, RunStarted):
        return replace(row, status="running", started_ms=recorded.time)
    if isinstance(event, RunInterrupted):
        return replace(row, status="queued")
    if event.ends is None:
        return row  # its answer is shown while it is said
    if isinstance(event, RunCompleted):
        row = replace(row, usage=event.usage, model=event.model or row.model)
    elif isinstance(event, RunFailed):
        row = replace(row, code=event.code)
    elif isinstance(event, RunAborted):
        row = replace(row, into=event.into)
    return replace(row, status=cast("RunStatus", event.status), ended_ms=recorded.time)
