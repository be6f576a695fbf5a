"""What an actor can be asked, and what comes back to it from the log, the agents, the channels and the clock."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from intersession_actors.errors import RefusalCode
from intersession_events.facts import Route, RunStatus, Usage
from intersession_events.log import Outcome, Recorded

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


# --- back to an actor, from outside


class StreamLoaded(Command, frozen=True, kw_only=True):
    """A stream was read. `recorded` is the exception if it could not be."""

    stream: str
    recorded: Sequence[Recorded] | Exception


class Appended(Command, frozen=True, kw_only=True):
    """The log's word on an append."""

    stream: str
    outcome: Outcome


# --- to the process managers


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
