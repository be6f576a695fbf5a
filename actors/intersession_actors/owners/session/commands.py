"""The session actor's messages: from doors, from flows' managers, and from its own timers and calls."""

from collections.abc import Mapping, Sequence

from intersession_actors.outside.agents.result import AgentResult
from intersession_actors.owners.session.folding import Awake
from intersession_actors.owners.streams.commands import Command, OfOneLife, Request, Step
from intersession_actors.rules.config.messages import Queueing
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.policy.budgets import Counted
from intersession_actors.rules.policy.resetting import Renewal
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events import facts
from intersession_events.log.recorded import StreamAppend
from intersession_events.log.states import Folded


class Enqueue(Step, frozen=True, kw_only=True):
    """Record a message and queue the run that answers it, in one append with events of other streams.

    `flow` is the stream of the flow whose step this is: its manager hears `StepTaken` or `StepRefused`.
    `opening` is recorded first where the session does not exist yet; without it a missing session is refused.
    `session_id`, where given, is the generation that was authorised; another one now is refused (HIST-6).
    `patch` is what an owner's command changes, recorded with it (POL-2). `carried` are appends of other
    streams for the same transaction. `at_most` bounds the queue (`busy`). `queue` None records the message
    only (INB-2). `budget` is of the causal chain that both are of (LOOP-5). `bound` is a thread that the
    session is bound to as it opens, `given` the transcript that it begins with (CHILD-6); `only_bound` refuses the message unless the session is bound to this
    thread (SPAWN-12). `interrupts` is who stops the run under way for the sake of this one: in the same
    append, so that a message that is refused or known already stops nothing (GATE-4). `renewal` is what can begin the session
    anew, before the message or, at an owner's bare command, behind it (RESET-1). `queueing` is what becomes of a person's
    message while the session is at work, unless the session's own setting says otherwise (QUEUE-1). `counted` are the limits
    of budgets that hold for it (LIMIT-2).
    """

    budget: facts.Budget
    message: facts.Message
    queue: facts.RunQueued | None = None
    opening: facts.SessionOpened | None = None
    route: facts.RouteChanged | None = None
    patch: facts.SessionPatched | None = None
    session_id: str | None = None
    bound: facts.ThreadBound | None = None
    given: facts.TranscriptGiven | None = None
    only_bound: facts.Route | None = None
    carried: tuple[StreamAppend, ...] = ()
    check_policy: bool = False
    at_most: int | None = None
    interrupts: str | None = None
    renewal: Renewal | None = None
    queueing: Queueing | None = None
    counted: tuple[Counted, ...] = ()
    causation: str | None = None

    @property
    def run_id(self) -> str:
        """The queued run; empty for none."""
        return self.queue.run_id if self.queue is not None else ""


class RecordMessages(Request, frozen=True, kw_only=True):
    """Messages of a running attempt: tool calls and their results.

    `anew` says on record in which attempt that was, where it was not the first. `judged` is what was asked and known, where it is a
    refusal's.
    """

    run_id: str
    attempt: int
    messages: tuple[facts.Message, ...]
    anew: int | None = None
    judged: Judgement | None = None


class HoldCall(Request, frozen=True, kw_only=True):
    """A tool call of a running attempt that waits for a release, unless an earlier attempt's did already (ASK-1)."""

    held: facts.ToolCallHeld


class ReleaseCall(Request, frozen=True, kw_only=True):
    """Release a held call as it is, with other `arguments`, or refused with `text` (ASK-2). `by` is the caller."""

    hold_id: str
    action: facts.CallRelease
    by: str | None
    arguments: str | None = None
    text: str | None = None


class CallDue(Command, frozen=True, kw_only=True):
    """The time for the release of a held call is over."""

    hold_id: str


class Steer(Request, frozen=True, kw_only=True):
    """Give a run that is not over a message: the attempt under way is cut off, and the next one has it (CHILD-3)."""

    run_id: str
    message: facts.Message
    by: str


class AddMessage(Request, frozen=True, kw_only=True):
    """Record a message without a run (chat.inject, a mirrored delivery)."""

    message: facts.Message
    session_id: str | None = None
    check_policy: bool = False


class Abort(Request, frozen=True, kw_only=True):
    """Stop a run, queued or running. `run_id` None stops all of the session: what runs, and what waits (GATE-5)."""

    run_id: str | None
    by: str


class Patch(Request, frozen=True, kw_only=True):
    """Change settings of a session; opens a missing one if `opening` is given."""

    values: Mapping[str, str]
    cleared: tuple[str, ...] = ()
    by: str | None = None
    opening: facts.SessionOpened | None = None


class Reset(Request, frozen=True, kw_only=True):
    """Begin a new generation under the same key, after `previous` if that was authorised (HIST-6). `by` requested it."""

    session_id: str
    previous: str | None = None
    reason: str = "reset"
    by: str | None = None


class Archive(Step, frozen=True, kw_only=True):
    """Archive the session; `carried` are the appends of the flow that asked for it.

    With `only_idle` a session that has work to do is left alone (`busy`); without, its runs end with it. `session_id`,
    where given, is the generation that was authorised; another one now is left alone, too (`not_visible`, HIST-6). `by` is
    the caller; None where its time has come.
    """

    reason: facts.ArchiveReason
    by: str | None = None
    session_id: str | None = None
    only_idle: bool = False
    carried: tuple[StreamAppend, ...] = ()


class Unbind(Request, frozen=True, kw_only=True):
    """Unbind the session's thread (SPAWN-12), as `by` requested; with `only_due` only if its time is over."""

    only_due: bool = False
    by: str | None = None


class CheckSend(Request, frozen=True, kw_only=True):
    """Ask whether the send policy lets this session's texts out now (ANN-4). The answer gets its `Verdict`, or `Refused`."""

    channel: str | None


class Wake(Command, frozen=True, kw_only=True):
    """Look at the log and go on: after a restart, or because an agent was registered."""


class ReadAgain(Command, frozen=True, kw_only=True):
    """Another writer wrote to the session's stream (an import): read it again before any decision."""


class SessionRead(OfOneLife, frozen=True, kw_only=True):
    """The session's stream was read. `folded` is the exception if it could not be."""

    folded: Folded[Awake] | Exception


class ContextBuilt(OfOneLife, frozen=True, kw_only=True):
    """A run's input was read from the log. `context` is a `RunContext` or an exception."""

    run_id: str
    attempt: int
    context: RunContext | Exception


class RunReturned(Command, frozen=True, kw_only=True):
    """The agent returned, or failed. `result` is an `AgentResult`.

    `causation` is the start of that attempt, `correlation` its chain: the session may be at another run by now.
    """

    is_given_up = True

    run_id: str
    attempt: int
    result: AgentResult
    causation: str | None = None
    correlation: str | None = None


class ShowAnswer(Command, frozen=True, kw_only=True):
    """The agent of an attempt has said something that its channel can show while the rest is said (STREAM-5)."""

    run_id: str
    attempt: int


class AnswerTaken(Command, frozen=True, kw_only=True):
    """The channel took the first words of an answer, with a receipt (source text of JSON), or did not, with an error."""

    run_id: str
    attempt: int
    receipt: str | None = None
    error: str | None = None


class DeadlinePassed(Command, frozen=True, kw_only=True):
    """The attempt's time is over (LOOP-7)."""

    run_id: str
    attempt: int
    held_ms: int = 0
    """For how long its calls had been held when the time was set."""


class IdleFor(OfOneLife, frozen=True, kw_only=True):
    """The session has had nothing to do since version `version`."""

    version: int


class ContextDue(OfOneLife, frozen=True, kw_only=True):
    """It is time to read a run's context again, which the store could not give."""

    run_id: str


class Compact(Request, frozen=True, kw_only=True):
    """Have the older turns summarised, ahead of all runs that wait (CTX-6).

    `run_id` is the compaction's, `wish` what its caller wants of the summary. `session_id`, where given, is the generation that was
    authorised.
    """

    run_id: str
    by: str | None = None
    wish: str | None = None
    session_id: str | None = None


class StartNext(Command, frozen=True, kw_only=True):
    """Start the run at the head of the queue: the session is free, and the run's context is read."""


Decidable = (
    Enqueue
    | RunReturned
    | RecordMessages
    | HoldCall
    | ReleaseCall
    | CallDue
    | Steer
    | AddMessage
    | Patch
    | Reset
    | Compact
    | Archive
    | Abort
    | ShowAnswer
    | AnswerTaken
    | DeadlinePassed
    | Wake
    | StartNext
    | Unbind
)
"""What the rules decide."""

SessionCommand = Decidable | CheckSend | ReadAgain
"""What is taken one after the other on the session's stream."""


def message_for(
    run: facts.RunQueued,
    text: str,
    provenance: facts.Provenance,
    now_ms: int,
    files: Sequence[facts.FileBlock] = (),
) -> facts.Message:
    """Return the message of a run to be queued: its text and files, its sender, and its time (milliseconds)."""
    return facts.Message(
        id=run.message_id,
        role="user",
        content=content_of(text, files),
        timestamp=now_ms,
        provenance=provenance,
    )


def content_of(text: str, files: Sequence[facts.FileBlock]) -> str | tuple[facts.Block, ...]:
    """Return the content of a message: the text alone, or its blocks where files go with it."""
    if not files:
        return text
    return (*((facts.TextBlock(text=text),) if text else ()), *files)
