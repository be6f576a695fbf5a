"""What can have happened to a run: one execution of an agent on one input. Stream `session:<key>`."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, cast, get_args

import msgspec

from intersession_events.basics.ids import exchange_stream, spawn_stream
from intersession_events.facts.base import (
    EMPTY,
    ERASED_JSON,
    Budget,
    Digest,
    Fact,
    Mark,
    Remark,
    Said,
    Source,
    Whole,
    Work,
)
from intersession_events.facts.delivery import DeliveryDecided
from intersession_events.facts.message import FileBlock, Message, Usage, files_of, text_of
from intersession_events.facts.message_words import brief_of_message, is_by_method
from intersession_events.facts.reasons import FAILURES, FailureCode, RunStatus
from intersession_events.facts.session import (
    LineImported,
    MessageRecorded,
    Route,
    ToolCallHeld,
    ToolCallReleased,
    TranscriptGiven,
)
from intersession_events.facts.words import NO_TEXT, Frame, Words

__all__ = [
    "SESSION_TOOLS",
    "AnswerShown",
    "Covers",
    "Fit",
    "Form",
    "Instructions",
    "LateReplyDropped",
    "Quote",
    "RunAborted",
    "RunAttempt",
    "RunCompleted",
    "RunEnd",
    "RunEvent",
    "RunFailed",
    "RunInterrupted",
    "RunQueued",
    "RunStarted",
    "Saying",
    "Step",
    "files_in",
    "generation_of",
    "is_imported",
    "is_summary",
    "message_in",
    "run_named",
]

_ARCHIVE: Final = "archive"

Step = Literal["message", "reply", "announce", "compaction"]
"""What a run is for: to answer a message, a turn of a loop, to announce, or to summarise the older turns of its session."""


Form = Literal["message.1", "turn.1", "announce.1", "task.1", "taskAnnounce.1", "result.1", "compaction.1"]


class Quote(Fact, frozen=True, kw_only=True):
    """A text that the session's transcript already has: that of a message, or of the last message of a run."""

    message_id: str | None = None
    run_id: str | None = None


class Instructions(Fact, frozen=True, kw_only=True):
    """Instructions for an agent beside a message, as the form and the values that they are rendered from (PROV-4).

    The text of a form and version never changes: another text is a new version. `session` is the session that reads them
    and `channel` its own, `other` the session at the other end (None for the operator) and `other_channel` its channel.
    `is_target` is true for the session that was asked, `turns` is the number of turns. `asked`, `replied` and `latest`
    are quoted texts, each by its place in the session's transcript, or in full where that lacks it. `label`, `files` of
    `total_bytes` in `place`, and `mount_path` are what a sub-agent was started with.
    """

    QUOTES: ClassVar[tuple[str, ...]] = ("asked", "replied", "latest")
    """The fields that quote."""

    TEXTS: ClassVar[tuple[str, ...]] = (*QUOTES, "label", "mount_path")
    """The fields that may hold what somebody said."""

    form: Form
    session: str
    channel: str | None = None
    other: str | None = None
    other_channel: str | None = None
    is_target: bool = False
    turns: Whole = 0
    asked: str | Quote | None = None
    replied: str | Quote | None = None
    latest: str | Quote | None = None
    label: str | None = None
    files: Whole = 0
    total_bytes: Whole = 0
    place: str = ""
    mount_path: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What somebody said in it."""
        return tuple(text for name in self.TEXTS if isinstance(text := getattr(self, name), str) and text)


class RunQueued(Fact, frozen=True, kw_only=True):
    """A run was accepted; it starts when the session is free (SEND-10).

    `message` is the message it answers; `answers` names one that was recorded before, as a fork has it of an import. A
    compaction answers none, and goes ahead of all runs that wait (CTX-5).
    `instructions` go to the agent beside it (PROV-1, LOOP-3, ANN-1); `system_context` is a text of the caller's own in
    their place. `route` is the destination of the answer (INB-2); with None it goes nowhere. `timeout_ms` counts from
    the start of each attempt; 0 is no limit. `budget` is the state and the limits of its causal chain. `retry_of` is the
    failed run whose message this run answers again (GATE-6). `request_digests` are the SHA-256 of the request, by which its
    key is known again (SEND-11); an erasure takes them (ERASE-4). `collects` is the most messages that one run answers where
    this one waits with others (QUEUE-2); `ahead` has it answered before all that wait (QUEUE-3).
    """

    topic: ClassVar[str] = "run_queued.1"
    begins: ClassVar[Work | None] = "run"

    run_id: str
    session_id: str
    step: Step
    message: Message | None = None
    answers: str = ""
    system_context: Remark = ""
    instructions: Instructions | None = None
    timeout_ms: Whole = 0
    route: Route | None = None
    caller: str | None = None
    idempotency_key: str | None = None
    request_digest: str | None = None
    request_digests: tuple[Digest, ...] = ()
    exchange_id: str | None = None
    spawn_id: str | None = None
    turn: Whole | None = None
    budget: Budget | None = None
    model: str | None = None
    thinking: str | None = None
    retry_of: str | None = None
    collects: Whole | None = None
    ahead: bool = False

    @property
    def digests(self) -> tuple[str | None, ...]:
        """The digests by which the request is known again."""
        return self.request_digests or (self.request_digest,)

    @property
    def chain(self) -> tuple[str, ...]:
        """The sessions that its causal chain has come through, its own last."""
        return () if self.budget is None else self.budget.path

    @property
    def hops(self) -> int:
        """The sends and spawns on the way."""
        return 0 if self.budget is None else self.budget.hops

    @property
    def message_id(self) -> str:
        """The id of the message that it answers."""
        return self.answers if self.message is None else self.message.id

    @property
    def flow(self) -> str | None:
        """The stream of the exchange or spawn that the run is part of; None for one by itself."""
        if self.exchange_id is not None:
            return exchange_stream(self.exchange_id)
        return None if self.spawn_id is None else spawn_stream(self.spawn_id)

    @property
    def doer(self) -> str | None:
        origin = None if self.message is None else self.message.provenance
        return self.caller if origin is not None and is_by_method(origin) else None

    def in_words(self, at: Frame) -> Words:
        message, who = self.message, at.agent
        if self.step == "compaction":
            return Words(
                self.caller, at.key, "is to summarise its older turns",
                "is to summarise its older turns",
                step=f"{who} is asked to summarise its older turns",
                after=f"after the start: {who} has been asked for a summary, and has not begun yet",
            )  # fmt: skip
        said = Words(None, at.key, self.run_id) if message is None else brief_of_message(message, at.key)
        words = Words(
            self.doer or said.who or self.caller, at.key, said.brief,
            step=f"{who} is asked for {at.of_run}",
            after=f"after the start: {who} has been asked, and has not begun yet",
        )  # fmt: skip
        if self.retry_of is None:
            return words
        brief = f"{said.brief} (tries {self.retry_of} again)"
        return words._replace(brief=brief, how=f"wants run {self.retry_of} tried again")


class Covers(Fact, frozen=True, kw_only=True):
    """The part of a session's transcript that a summary stands for: its first `messages` messages (CTX-5).

    `through` is the id of the last of them. Its agent read them from number `since` on: those before are in the summary
    only as far as the one before it (`earlier`, a run) told of them. `tokens` is the most tokens that all of them have.
    """

    messages: Whole
    through: str
    since: Whole = 0
    earlier: str | None = None
    tokens: Whole = 0


class Fit(Fact, frozen=True, kw_only=True):
    """The part of a context that is left out because it is longer than the model's window (CTX-2).

    The oldest `left_out` messages of the transcript, and `partial_left_out` of those that earlier attempts recorded, are
    left out. The texts of the others are cut: to `earlier_chars` characters in the transcript and in earlier attempts,
    to `asked_chars` in the message to answer and in the system's quotes; None leaves them whole. `summary` is the run whose
    summary stands in the place of the first `summarised` of the messages that are left out. `until`: a compaction is
    given none from this number on.
    """

    left_out: Whole = 0
    partial_left_out: Whole = 0
    earlier_chars: Whole | None = None
    asked_chars: Whole | None = None
    summary: str | None = None
    summarised: Whole = 0
    until: Whole | None = None

    @property
    def lost(self) -> int:
        """How many messages are left out that no summary stands for."""
        return max(self.left_out - self.summarised, 0) + self.partial_left_out

    @property
    def left_out_text(self) -> str:
        """What is left out, in words behind others; empty where all of it is in a summary."""
        if self.lost:
            return f", {_earlier(self.lost)} left out"
        if self.summarised:
            return f", {_earlier(self.summarised)} summarised"
        return "" if self.until is not None and self.earlier_chars is None else ", long texts cut"


def _earlier(count: int) -> str:
    return "1 earlier message" if count == 1 else f"{count} earlier messages"


SESSION_TOOLS: Final = (
    "sessions_list",
    "sessions_history",
    "sessions_search",
    "sessions_send",
    "sessions_spawn",
    "agents_list",
)
"""The tools of an attempt that has all of them; as this one value, which is not stored. Another set is stored, in full."""


class RunAttempt(Fact, frozen=True, kw_only=True):
    """Something that happened in an attempt of a run."""

    leads_to: ClassVar[RunStatus | None] = None

    run_id: str
    attempt: Whole = 1

    @property
    def status(self) -> RunStatus | None:
        """How the attempt ended; None where it is under way, or had ended before."""
        return self.leads_to

    @property
    def spoken(self) -> str | None:
        """What its agent said: its reply, or its text until it failed; None is no text."""
        return None

    @property
    def trouble(self) -> str | None:
        """Why it did not answer."""
        return None


class RunStarted(RunAttempt, frozen=True, kw_only=True):
    """An attempt began; the backend is called only after this is durable. A `deadline_ms` of 0 is no deadline.

    The deadline follows the machine's clock, which may be set; the log's time never goes back. `model` and `thinking`
    are the choice of the run or its session; None leaves it to the agent. `settings` are the other settings of the
    session that its agent reads, by their names in `sessions.patch`. `tools` are the names of its tools: all of them
    (`SESSION_TOOLS`) where that is left out, not recorded where it is null; `ConfigLoaded` has their descriptions.
    Token counts: `context_tokens` is the model's window, `room` the part of it beside the answer and the agent's own
    instructions, `words` the part of the room beside the tools, `used` the most that all texts take before any is left
    out. `fit` is the part that is left out; None leaves out nothing (CTX-1, CTX-2). `compacts_at` is how much `used` may be
    before older turns are summarised first; None: they are not. A compaction `covers` what it is given to summarise (CTX-5).
    """

    topic: ClassVar[str] = "run_started.1"
    in_stories: ClassVar[bool] = False

    context_hash: str
    deadline_ms: Whole = 0
    model: str | None = None
    thinking: str | None = None
    settings: dict[str, str] = msgspec.field(default_factory=EMPTY)
    tools: tuple[str, ...] | None = SESSION_TOOLS
    context_tokens: Whole | None = None
    room: Whole | None = None
    words: Whole | None = None
    used: Whole | None = None
    fit: Fit | None = None
    compacts_at: Whole | None = None
    covers: Covers | None = None

    def in_words(self, at: Frame) -> Words:
        who, left_out = at.agent, "" if self.fit is None else self.fit.left_out_text
        again = "" if self.attempt == 1 else f" again (attempt {self.attempt})"
        return Words(
            at.key, None, f"attempt {self.attempt}{left_out}",
            step=f"{who} begins {at.of_run}{again}{left_out}",
            after=f"at work{again}: {who} has begun, and has not answered yet",
        )  # fmt: skip


class RunInterrupted(RunAttempt, frozen=True, kw_only=True):
    """A stop or a crash cut an attempt off; the run will be tried again.

    `too_long` is the error of a model's server that refused its input as too long: the next attempt sends less (CTX-3).
    `steered_by` is the session that gave it a message, which the next attempt has (CHILD-3).
    """

    topic: ClassVar[str] = "run_interrupted.1"
    leads_to: ClassVar[RunStatus | None] = "interrupted"
    mark: ClassVar[Mark | None] = "failed"

    too_long: Remark | None = None
    steered_by: str | None = None

    @property
    def doer(self) -> str | None:
        return self.steered_by

    def in_words(self, at: Frame) -> Words:
        who, run, attempt = at.agent, at.of_run, self.attempt
        if self.steered_by is not None:
            return Words(
                self.steered_by, at.key, f"attempt {attempt} was steered",
                f"steers attempt {attempt}: the run starts again with the message",
                step=f"{who} is steered at {run} by {at.named(self.steered_by)}",
                after=f"steered: {who} had begun, and begins again with the message",
            )  # fmt: skip
        if self.too_long is not None:
            return Words(
                at.key, None, f"attempt {attempt} was too long for the model",
                f"was given more than its model takes in attempt {attempt}; the run starts again with less", self.too_long,
                step=f"{who} is given less, since {run} was too long for its model",
                after=f"refused as too long: {who} had begun, and is given less",
            )  # fmt: skip
        return Words(
            at.key, None, f"attempt {attempt} was cut off",
            f"was cut off in attempt {attempt}; the run starts again",
            step=f"{who} is cut off at {run}",
            after=f"cut off: {who} had begun, and has not answered yet",
        )  # fmt: skip


class AnswerShown(RunAttempt, frozen=True, kw_only=True):
    """The channel of the person is about to show the answer while it is said (STREAM-5).

    The second one of a run has the `receipt` of the message that was begun, as source text of the channel's JSON, or the `error`
    with which the channel did not take it.
    """

    topic: ClassVar[str] = "answer_shown.1"
    in_stories: ClassVar[bool] = False

    receipt: Source | None = None
    error: Remark | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"receipt": None if self.receipt is None else ERASED_JSON}

    def in_words(self, at: Frame) -> Words:
        if self.error is not None:
            return Words(
                at.key,
                None,
                f"not shown while it is said: {self.error}",
                step=f"{at.of_run} is not shown unfinished",
            )
        how = "is about to be shown" if self.receipt is None else "is shown"
        return Words(
            at.key, None, f"the answer {how} while it is said",
            step=f"the answer of {at.agent} {how} while it is said",
            after=f"at work: the answer of {at.agent} {how} while it is said",
        )  # fmt: skip


class RunCompleted(RunAttempt, frozen=True, kw_only=True):
    """The agent answered. `message` is the last message of its answer, in the generation `session_id`.

    The run's final text is that message's, or else `text` where there is none or not `message_is_reply`; None is no text at all (SEND-5). `notes`
    say what of the answer is not recorded as the agent gave it, such as a usage below 0. That of a compaction is a summary,
    which stands from then on for the messages that it `covers`.
    """

    topic: ClassVar[str] = "run_completed.1"
    leads_to: ClassVar[RunStatus | None] = "ok"
    ends: ClassVar[Work | None] = "run"

    session_id: str = ""
    message: Message | None = None
    message_is_reply: bool = True
    text: Said | None = None
    usage: Usage | None = None
    model: str | None = None
    stop_reason: str | None = None
    notes: tuple[Remark, ...] = ()
    covers: Covers | None = None

    @property
    def reply(self) -> str | None:
        """The run's final text; None is no text at all."""
        return self.text if self.message is None or not self.message_is_reply else text_of(self.message)

    @property
    def spoken(self) -> str | None:
        return self.reply

    def in_words(self, at: Frame) -> Words:
        who, without = at.agent, "" if self.reply else " without a text"
        own = None if self.message is None else brief_of_message(self.message, at.key).brief
        if self.covers is not None:
            return Words(
                at.key, None, f"summary of the first {self.covers.messages} messages",
                f"summarises the first {self.covers.messages} messages of the transcript", self.reply,
                step=f"{who} has summarised the first {self.covers.messages} messages",
                after=f"after the summary: {who} has summarised the first {self.covers.messages} messages",
            )  # fmt: skip
        return Words(
            at.key, None, self.reply or own or NO_TEXT, "; ".join(("answers without a text", *self.notes)),
            step=f"{who} is done with {at.of_run}{without}",
            after=f"after the reply: {who} has answered{without}, and is done",
        )  # fmt: skip


class RunFailed(RunAttempt, frozen=True, kw_only=True):
    """The run ended without an answer, and why. `partial` is the text the agent had produced so far.

    `traceback` is for the operator: text without secrets, of at most 8 KiB, where the agent raised. `limit` is the guard over the
    causal chain that kept it from starting, with `code` `limit`, and `used` is as in `LoopEnded`.
    """

    topic: ClassVar[str] = "run_failed.1"
    leads_to: ClassVar[RunStatus | None] = "error"
    mark: ClassVar[Mark | None] = "failed"
    ends: ClassVar[Work | None] = "run"

    code: FailureCode
    error: Remark
    partial: Said | None = None
    traceback: Remark | None = None
    limit: str | None = None
    used: Whole | None = None

    @property
    def status(self) -> RunStatus | None:
        return "timeout" if self.code == "timeout" else "error"

    @property
    def spoken(self) -> str | None:
        return self.partial

    @property
    def trouble(self) -> str | None:
        return self.error

    def in_words(self, at: Frame) -> Words:
        who, failed = at.agent, FAILURES[self.code]
        # An agent's error begins with its code, as it is answered.
        error = self.error.removeprefix(f"{self.code}: ")
        said = "\n".join(text for text in (self.partial, self.traceback) if text is not None) or None
        return Words(
            at.key, None, f"{self.code}: {error}", f"{failed}: {self.error}", said,
            step=f"{who} fails at {at.of_run}: it {failed}",
            after=f"after the end: {who} has not answered: it {failed}",
        )  # fmt: skip


class RunAborted(RunAttempt, frozen=True, kw_only=True):
    """Somebody stopped the run (GATE-5).

    `gone`: by archiving its session, or with `reset` by resetting it. `into` is the run behind it that answers its
    message together with its own (QUEUE-2): then nobody stopped it.
    """

    topic: ClassVar[str] = "run_aborted.1"
    from_outside: ClassVar[bool] = True
    leads_to: ClassVar[RunStatus | None] = "aborted"
    mark: ClassVar[Mark | None] = "failed"
    ends: ClassVar[Work | None] = "run"

    by: str
    partial: Said | None = None
    gone: bool = False
    reset: bool = False
    into: str | None = None

    @property
    def spoken(self) -> str | None:
        return self.partial

    @property
    def trouble(self) -> str | None:
        return f"aborted by {self.by}" if self.into is None else f"answered together with run {self.into}"

    def in_words(self, at: Frame) -> Words:
        if self.into is not None:
            return Words(
                None, at.key, f"collected into {self.into}", f"is answered together with run {self.into}",
                step=f"{at.of_run} is collected into {self.into}",
                after=f"after the end: its message waits for {at.agent} with run {self.into}",
            )  # fmt: skip
        how = f"was stopped, as {self._archived()}" if self.gone else f"was aborted by {self.by}"
        return Words(
            self.by, at.key, self.partial or NO_TEXT, how, self.partial,
            step=f"{at.agent} is stopped at {at.of_run}",
            after=f"after the end: {at.agent} was stopped before it had answered",
        )  # fmt: skip

    def _archived(self) -> str:
        """Say that its session was archived or reset, and by whom."""
        if self.reset:
            return f"{self.by} reset its session"
        return "its session was archived" if self.by == _ARCHIVE else f"{self.by} archived its session"


class LateReplyDropped(Fact, frozen=True, kw_only=True):
    """An attempt that was already closed answered after all; its answer is kept here and used nowhere."""

    topic: ClassVar[str] = "late_reply_dropped.1"
    mark: ClassVar[Mark | None] = "failed"

    run_id: str
    attempt: Whole = 1
    reply: Said | None = None

    def in_words(self, at: Frame) -> Words:
        return Words(
            at.key, None, self.reply or NO_TEXT, "answered too late; nobody uses it", self.reply,
            step=f"{at.agent} answers too late at {at.of_run}",
        )  # fmt: skip


RunEnd = RunCompleted | RunFailed | RunAborted
"""After one of these a run does nothing more; one that was interrupted may be tried again."""


RunEvent = (
    RunQueued
    | RunStarted
    | AnswerShown
    | RunInterrupted
    | RunEnd
    | LateReplyDropped
    | ToolCallHeld
    | ToolCallReleased
)


def run_named(event: Fact) -> str | None:
    """Return the id of the run that an event is of, by its own name or its message's; None for an event of no run."""
    if isinstance(event, MessageRecorded):
        return event.message.run_id
    named: str | None = getattr(event, "run_id", None)
    return named


Saying = MessageRecorded | RunQueued | RunCompleted
"""The events that can bring a message into a transcript, of the generation `session_id`."""

_SAYING: Final = frozenset(get_args(Saying))


def message_in(event: Fact) -> Message | None:
    """Return the message that an event brings into its session's transcript; None where it brings none."""
    return event.message if type(event) in _SAYING else None  # type: ignore[attr-defined]  # asked of every event, so no cast


def files_in(event: Fact) -> tuple[FileBlock, ...]:
    """Return the files that an event names: those of the messages that it brings, or of a text for a channel."""
    message = message_in(event)
    if message is not None:
        return files_of(message)
    if isinstance(event, TranscriptGiven):
        return tuple(file for one in event.given for file in files_of(one))
    return event.files if isinstance(event, DeliveryDecided) else ()


def generation_of(event: Fact) -> str | None:
    """Return the generation whose transcript an event brings a message or an imported line into; None where it brings none."""
    if isinstance(event, LineImported) or message_in(event) is not None:
        return cast("Saying | LineImported", event).session_id
    return None


def is_summary(event: Fact) -> bool:
    """Whether an event is the end of a compaction, whose text stands for messages (CTX-5)."""
    return isinstance(event, RunCompleted) and event.covers is not None


def is_imported(event: Fact) -> bool:
    """Whether an event is a message that another system had recorded."""
    return isinstance(event, MessageRecorded) and event.source is not None
