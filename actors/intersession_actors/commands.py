"""What an actor can be asked, and what comes back to it from the log, the agents, the channels and the clock."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from intersession_actors.codes import RefusalCode
from intersession_actors.send_policy import Verdict
from intersession_events.exchange import ExchangeAccepted, RunStatus
from intersession_events.message import Message, Usage
from intersession_events.recorded import Outcome, Recorded, StreamAppend
from intersession_events.run import RunQueued
from intersession_events.session import (
    ArchiveReason,
    Route,
    RouteChanged,
    SessionOpened,
    SessionPatched,
    ThreadBound,
)
from intersession_events.spawn import SpawnAccepted

Answer = Callable[[Any], None]
"""Where a door waits for the outcome of a command. Must not block."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what an actor is told."""


# --- to a session's actor


class Accepted(Command, frozen=True, kw_only=True):
    """A command is durable. `recorded` are its events."""

    recorded: tuple[Recorded, ...]
    again: bool = False


class Refused(Command, frozen=True, kw_only=True):
    """A command was refused and left nothing behind. `code` is one of `docs/errors.md`.

    `limit` names the setting that was reached, where one was, and `value` what was used of it.
    """

    code: RefusalCode
    error: str
    limit: str | None = None
    value: int = 0


class Enqueue(Command, frozen=True, kw_only=True):
    """Record a message and queue the run that answers it, in one append with events of other streams.

    `flow` is the stream of the flow whose step this is: its manager hears `StepTaken` or `StepRefused`.
    `opening` is recorded first where the session does not exist yet; without it a missing session is refused.
    `session_id`, where given, is the generation that was authorised; another one now is refused (HIST-6).
    `patch` is what an owner's command changes, recorded with it (POL-2). `carried` are appends of other streams for the same transaction. `at_most` bounds the queue (`busy`).
    `queue` None records the message only (INB-2). `bound` is a thread that the session is bound to as it opens; `only_bound`
    refuses the message unless the session is bound to this thread (SPAWN-12).
    """

    message: Message
    queue: RunQueued | None = None
    flow: str | None = None
    opening: SessionOpened | None = None
    route: RouteChanged | None = None
    patch: SessionPatched | None = None
    session_id: str | None = None
    bound: ThreadBound | None = None
    only_bound: Route | None = None
    carried: tuple[StreamAppend, ...] = ()
    check_policy: bool = False
    at_most: int | None = None
    causation: str | None = None
    correlation: str | None = None
    answer: Answer | None = None


class RecordMessages(Command, frozen=True, kw_only=True):
    """An attempt of a run produced messages before its end: tool calls and their results."""

    run_id: str
    attempt: int
    messages: tuple[Message, ...]
    answer: Answer | None = None


class AddMessage(Command, frozen=True, kw_only=True):
    """Record a message that no run answers (chat.inject, a mirrored delivery)."""

    message: Message
    session_id: str | None = None
    check_policy: bool = False
    answer: Answer | None = None


class Abort(Command, frozen=True, kw_only=True):
    """Stop a run, queued or running. `run_id` None stops whatever runs."""

    run_id: str | None
    by: str
    answer: Answer | None = None


class Patch(Command, frozen=True, kw_only=True):
    """Change settings of a session; opens it where `opening` is given and it does not exist."""

    values: Mapping[str, str]
    cleared: tuple[str, ...] = ()
    by: str | None = None
    opening: SessionOpened | None = None
    answer: Answer | None = None


class Reset(Command, frozen=True, kw_only=True):
    """Begin a new generation under the same key."""

    session_id: str
    reason: str = "reset"
    answer: Answer | None = None


class Archive(Command, frozen=True, kw_only=True):
    """Take the session out of the list; `carried` are the appends of the flow that asked for it.

    With `only_idle` a session that has work to do is left alone (`busy`); without, its runs end with it.
    """

    reason: ArchiveReason
    only_idle: bool = False
    flow: str | None = None
    carried: tuple[StreamAppend, ...] = ()
    answer: Answer | None = None


class Unbind(Command, frozen=True, kw_only=True):
    """Take the session's thread from it (SPAWN-12); with `only_due` only if it has had its time."""

    only_due: bool = False
    answer: Answer | None = None


class CheckSend(Command, frozen=True, kw_only=True):
    """Does the send policy let this session's words out now (ANN-4)? The answer gets its `Verdict`."""

    channel: str | None
    answer: Answer


class Wake(Command, frozen=True, kw_only=True):
    """Look at the log and go on: after a restart, or because an agent was registered."""


# --- back to an actor, from outside


class ReadAgain(Command, frozen=True, kw_only=True):
    """Somebody else wrote to the session's stream (an import): read it again before anything is decided."""


class StreamLoaded(Command, frozen=True, kw_only=True):
    """A stream was read. `recorded` is the exception if it could not be."""

    stream: str
    recorded: Sequence[Recorded] | Exception


class Appended(Command, frozen=True, kw_only=True):
    """The log's word on an append."""

    stream: str
    outcome: Outcome


class ContextBuilt(Command, frozen=True, kw_only=True):
    """What a run's agent is to see was read from the log. `context` is a `RunContext` or an exception."""

    run_id: str
    attempt: int
    context: Any


class RunReturned(Command, frozen=True, kw_only=True):
    """The agent came back, or broke. `result` is an `AgentResult`."""

    run_id: str
    attempt: int
    result: Any


class DeadlinePassed(Command, frozen=True, kw_only=True):
    """The attempt has had its time (LOOP-7)."""

    run_id: str
    attempt: int


class IdleFor(Command, frozen=True, kw_only=True):
    """The session has had nothing to do since version `version`."""

    version: int


# --- to the process managers


class OpenExchange(Command, frozen=True, kw_only=True):
    """A send was allowed: accept it (SEND-3)."""

    accepted: ExchangeAccepted
    opening: SessionOpened | None = None
    run_timeout_ms: int = 0
    at_most: int | None = None
    causation: str | None = None
    correlation: str | None = None
    answer: Answer | None = None


class OpenSpawn(Command, frozen=True, kw_only=True):
    """A spawn was allowed: accept it (SPAWN-6).

    `answer` hears that it is accepted, `started` that its child is there, or why it never will be.
    """

    accepted: SpawnAccepted
    started: Answer | None = None
    causation: str | None = None
    correlation: str | None = None
    answer: Answer | None = None


class AskStarted(Command, frozen=True, kw_only=True):
    """Somebody asks again whether the child of a spawn is there; `started` hears as in `OpenSpawn`."""

    stream: str
    started: Answer


class Prepared(Command, frozen=True, kw_only=True):
    """What a child needs is there, its files and its thread; or it can't be had, and why."""

    stream: str
    manifest_sha256: str | None = None
    thread: Route | None = None
    refused: Refused | None = None


class FilesRemoved(Command, frozen=True, kw_only=True):
    """A child's files are gone, or could not be removed."""

    stream: str
    error: str | None = None


class ChildGone(Command, frozen=True, kw_only=True):
    """A child's session was archived."""

    stream: str


class RunEnded(Command, frozen=True, kw_only=True):
    """A run of a flow ended, as its session's stream says. `cause` is the id of the event that says it.

    `thread` is the one that the session is bound to.
    """

    stream: str
    run_id: str
    status: RunStatus
    text: str | None = None
    error: str | None = None
    usage: Usage | None = None
    model: str | None = None
    last_tool_result: str | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    cause: str | None = None
    thread: Route | None = None


class StepTaken(Command, frozen=True, kw_only=True):
    """A session's actor recorded a flow's step together with its own events."""

    stream: str
    recorded: tuple[Recorded, ...]


class StepRefused(Command, frozen=True, kw_only=True):
    """A session's actor could not take the step that was to queue `run_id`; nothing was recorded."""

    stream: str
    run_id: str
    code: RefusalCode
    error: str


class SessionRestarted(Command, frozen=True, kw_only=True):
    """A session's actor failed and was started again; what it had been told may be lost."""

    key: str


class DeliveryEnded(Command, frozen=True, kw_only=True):
    """A delivery a flow waits for is final."""

    stream: str
    delivery_id: str
    outcome: Literal["done", "failed", "unknown", "denied"]
    note: str | None = None
    cause: str | None = None


class Resume(Command, frozen=True, kw_only=True):
    """Carry an open flow on after a restart. `ended` are outcomes of its runs and deliveries, as far as there are."""

    stream: str
    ended: tuple[RunEnded | DeliveryEnded, ...] = ()


class SendChecked(Command, frozen=True, kw_only=True):
    """The send policy's word on a delivery."""

    stream: str
    verdict: Verdict


class DeliveryReturned(Command, frozen=True, kw_only=True):
    """The channel came back. `result` is `Delivered` or `NotDelivered`."""

    stream: str
    attempt: int
    result: Any


class RetryDue(Command, frozen=True, kw_only=True):
    """It is time to try a delivery again."""

    stream: str
    attempt: int


class ArchiveDue(Command, frozen=True, kw_only=True):
    """It is time to archive a child (SPAWN-11)."""

    stream: str
