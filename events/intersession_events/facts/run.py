"""What can have happened to a run: one execution of an agent on one input. Stream `session:<key>`."""

from typing import Literal

import msgspec

from intersession_events.facts.base import Fact
from intersession_events.facts.chain import Budget
from intersession_events.facts.message import Usage
from intersession_events.facts.session import Route
from intersession_events.ids import exchange_stream, spawn_stream

Step = Literal["message", "reply", "announce"]
FailureCode = Literal[
    "backend",
    "bad_reply",
    "reply_too_large",
    "timeout",
    "interrupted",
    "target_gone",
    "store",
    "no_agent",
    "limit",
]


class RunQueued(Fact, frozen=True, kw_only=True):
    """A run was accepted; it starts when the session is free (SEND-10).

    `message_id` names the message it answers. `system_context` is what the agent is told beside it (PROV-1,
    LOOP-3, ANN-1). `route` is where the text goes (INB-2); None delivers nothing. `timeout_ms` counts from
    the start of each attempt, 0 is no limit. `chain` are the sessions the causal chain has visited, `budget` is what it
    may use. `retry_of` is the failed run whose message is tried again by this one (GATE-6).
    """

    run_id: str
    session_id: str
    step: Step
    message_id: str
    system_context: str = ""
    timeout_ms: int = 0
    route: Route | None = None
    caller: str | None = None
    idempotency_key: str | None = None
    request_digest: str | None = None
    exchange_id: str | None = None
    spawn_id: str | None = None
    turn: int | None = None
    chain: tuple[str, ...] = ()
    hops: int = 0
    budget: Budget | None = None
    model: str | None = None
    thinking: str | None = None
    retry_of: str | None = None

    @property
    def flow(self) -> str | None:
        """The stream of the exchange or spawn that the run is part of; None for one by itself."""
        if self.exchange_id is not None:
            return exchange_stream(self.exchange_id)
        return None if self.spawn_id is None else spawn_stream(self.spawn_id)


class Fit(Fact, frozen=True, kw_only=True):
    """What an agent is not shown of a context that is longer than its model takes (CTX-2).

    `left_out` of the transcript's messages, the oldest, and `partial_left_out` of those that earlier attempts recorded. Of each
    text of the messages that are left it is shown so many characters at most: `earlier_chars` in the transcript and in what
    earlier attempts recorded, `asked_chars` in the message to answer and in what the system quotes; None is all of them.
    """

    left_out: int = 0
    partial_left_out: int = 0
    earlier_chars: int | None = None
    asked_chars: int | None = None


class RunStarted(Fact, frozen=True, kw_only=True):
    """An attempt began; the backend is called only after this is durable. `deadline_ms` 0 is none.

    `started_ms` is the time from which the deadline is reckoned: the clock may be set, and the log's time never goes back. None
    where there is no deadline.
    `model` and `thinking` are what the run or its session asks for; None is the agent's own. `settings` are the other
    settings of the session that its agent is given, under their names in `sessions.patch`. `tools` are the names of
    the tools that it has; None was not recorded. `ConfigLoaded` has their descriptions.
    `context_tokens` is the window of the model, `room` what of it is left beside the answer and the agent's own instructions,
    `words` what of that there is for all that is said, beside the tools, and `used` how much is said at most, before anything is
    left out: in tokens. `fit` is what is left out; None is nothing (CTX-1, CTX-2).
    """

    run_id: str
    attempt: int
    context_hash: str
    deadline_ms: int = 0
    model: str | None = None
    thinking: str | None = None
    settings: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    tools: tuple[str, ...] | None = None
    started_ms: int | None = None
    context_tokens: int | None = None
    room: int | None = None
    words: int | None = None
    used: int | None = None
    fit: Fit | None = None


class RunInterrupted(Fact, frozen=True, kw_only=True):
    """An attempt was cut off by a stop or a crash; the run will be tried again.

    `too_long` is what the model's server said, where it refused what it was given as too long: the next attempt gives less (CTX-3).
    """

    run_id: str
    attempt: int
    too_long: str | None = None


class RunCompleted(Fact, frozen=True, kw_only=True):
    """The agent answered. `reply` is this run's final text; None is no text at all (SEND-5).

    `notes` say what of the answer is not recorded as the agent gave it, such as a usage below 0.
    """

    run_id: str
    attempt: int
    reply: str | None = None
    usage: Usage | None = None
    model: str | None = None
    stop_reason: str | None = None
    notes: tuple[str, ...] = ()


class RunFailed(Fact, frozen=True, kw_only=True):
    """The run ended without an answer, and why. `partial` is the text the agent had produced so far.

    `traceback` is for the operator: text without secrets, of at most 8 KiB, where the agent raised. `limit` is the guard over the
    causal chain that kept it from starting, with `code` `limit`, and `used` is as in `LoopEnded`.
    """

    run_id: str
    attempt: int
    code: FailureCode
    error: str
    partial: str | None = None
    traceback: str | None = None
    limit: str | None = None
    used: int | None = None


class RunAborted(Fact, frozen=True, kw_only=True):
    """Somebody stopped the run (GATE-5).

    `gone`: by archiving its session, or with `reset` by resetting it.
    """

    run_id: str
    attempt: int
    by: str
    partial: str | None = None
    gone: bool = False
    reset: bool = False


class LateReplyDropped(Fact, frozen=True, kw_only=True):
    """An attempt that was already closed answered after all; its answer is kept here and nowhere used."""

    run_id: str
    attempt: int
    reply: str | None = None


RunEnd = RunCompleted | RunFailed | RunAborted
"""After one of these a run does nothing more; one that was interrupted may be tried again."""

RunEvent = RunQueued | RunStarted | RunInterrupted | RunEnd | LateReplyDropped


def run_named(event: Fact) -> str | None:
    """Return the id of the run that an event names, of whatever kind it is; None where it names none.

    A message names one itself: `message.run_id`.
    """
    named: str | None = getattr(event, "run_id", None)
    return named
