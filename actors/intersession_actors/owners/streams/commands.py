"""What every actor can be told: the kinds of commands, how they end, and what comes back from the log and from other actors."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from intersession_actors.owners.streams.texts import RunTexts
from intersession_actors.rules.errors import RefusalCode
from intersession_actors.rules.policy.chain import Tripped
from intersession_events.facts import Route, RunStatus, Usage
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import Outcome, Recorded

# --- kinds of commands


OnAnswer = Callable[[Any], None]  # told `Accepted | Refused`, and what else the commands of an actor end in
"""Where a door waits for the outcome of a command. It must not block."""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A command is durable. `recorded` are its events; `again`: it had been accepted before."""

    recorded: tuple[Recorded, ...]
    again: bool = False


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A command was refused without any effect. `code` is one of `docs/errors.md`.

    `tripped` is the guard over a causal chain that refused it, where one did (LOOP-5).
    """

    code: RefusalCode
    error: str
    tripped: Tripped | None = None


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all messages to an actor."""

    is_given_up: ClassVar[bool] = False
    """Whether it is given up when the store is away for longer than `runs.storeRetryMaxSeconds`."""


class Request(Command, frozen=True, kw_only=True):
    """A command that a caller may wait for: `answer` gets `Accepted` or `Refused`, once."""

    answer: OnAnswer | None = None

    @property
    def is_waited_for(self) -> bool:
        """Whether a caller waits for the outcome, and can ask again."""
        return self.answer is not None


class Ask:
    """One request to the log or to a session's actor: its answer carries it.

    So an answer that comes late is not taken for the answer to what was asked since.
    """


class Step(Request, frozen=True, kw_only=True):
    """A command to a session that may be the step of a flow, named by its stream.

    The manager of the flow hears `StepTaken` or `StepRefused`, with the same `ask`. `run_id` is the run that the step would queue,
    empty for none. `behind` is the append that the step follows from, if that may not be durable yet.
    """

    flow: str | None = None
    ask: Ask | None = None
    behind: InFlight | None = None

    @property
    def is_waited_for(self) -> bool:
        """Whether a door or a flow waits for the outcome, and can ask again."""
        return self.answer is not None or self.flow is not None

    @property
    def run_id(self) -> str:
        """The run that the step would queue; empty for none."""
        return ""


class FlowCommand(Command, frozen=True, kw_only=True):
    """A command to an existing flow, by the name of its stream."""

    stream: str


class FlowRequest(Request, frozen=True, kw_only=True):
    """A command to an existing flow, by the name of its stream, that a caller may wait for."""

    stream: str


class BeginsFlow(Request, frozen=True, kw_only=True):
    """A command that begins a flow."""

    @property
    def stream(self) -> str:
        """The name of the flow's stream."""
        raise NotImplementedError


class OfOneLife(Command, frozen=True, kw_only=True):
    """An answer that is valid only for the actor that asked: a restarted one reads the log in its place."""


# --- back to an actor, from the log


class StreamLoaded(OfOneLife, frozen=True, kw_only=True):
    """A stream was read. `recorded` is the exception if it could not be."""

    stream: str
    ask: Ask
    recorded: Sequence[Recorded] | Exception


class WasRead(OfOneLife, frozen=True, kw_only=True):
    """A decision's missing input was read: a run's texts, or a causal chain, which the ledger now has (None)."""

    stream: str
    ask: Ask
    found: RunTexts | Exception | None
    run_id: str = ""


class Appended(OfOneLife, frozen=True, kw_only=True):
    """The log's answer to an append."""

    stream: str
    ask: Ask
    outcome: Outcome


class StoreDue(OfOneLife, frozen=True, kw_only=True):
    """It is time to repeat a stream's request to the store."""

    stream: str
    number: int


# --- to the process managers


class RunEnded(FlowCommand, frozen=True, kw_only=True):
    """A run of a flow ended, by its session's stream. `cause` is the id of that event.

    `thread` is the one that the session is bound to. `gone`: the session was archived, and the run ended with it. `behind`
    is the append of that event, where the word came before it was durable; if that fails, the word is void. `in_transcript`:
    the text is that of the last message of the run. `by` is the caller who aborted it.
    """

    run_id: str
    status: RunStatus
    text: str | None = None
    in_transcript: bool = True
    error: str | None = None
    usage: Usage | None = None
    model: str | None = None
    last_tool_result: str | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    cause: str | None = None
    thread: Route | None = None
    gone: bool = False
    by: str | None = None
    behind: InFlight | None = None

    @property
    def is_void(self) -> bool:
        """Whether the end was not recorded after all: the session repeats it."""
        return self.behind is not None and self.behind.has_failed

    @property
    def awaited(self) -> str:
        """The id that a flow waits for."""
        return self.run_id


class DeliveryEnded(FlowCommand, frozen=True, kw_only=True):
    """A delivery that a flow waits for is final."""

    delivery_id: str
    outcome: Literal["done", "failed", "unknown", "denied", "withheld"]
    note: str | None = None
    cause: str | None = None

    @property
    def awaited(self) -> str:
        """The id that a flow waits for."""
        return self.delivery_id


class Resume(FlowCommand, frozen=True, kw_only=True):
    """Resume an open flow after a restart. `ended` are the known outcomes of its runs and deliveries."""

    ended: tuple[RunEnded | DeliveryEnded, ...] = ()


class ChildGone(FlowCommand, frozen=True, kw_only=True):
    """A child's session was archived."""


class StepTaken(FlowCommand, frozen=True, kw_only=True):
    """A session's actor recorded a flow's step with its own events; empty if it had taken the step before.

    Without `ask` nobody had asked for it: another append has carried events of the flow.
    """

    recorded: tuple[Recorded, ...]
    ask: Ask | None = None


class StepRefused(FlowCommand, frozen=True, kw_only=True):
    """A session's actor could not take the step that was to queue `run_id`; nothing was recorded."""

    run_id: str
    code: RefusalCode
    error: str
    ask: Ask | None = None


def refusal_of(step: Step, flow: str, refused: Refused) -> StepRefused:
    """Return the message to a flow whose step was refused."""
    return StepRefused(stream=flow, run_id=step.run_id, code=refused.code, error=refused.error, ask=step.ask)


class SessionReadBack(Command, frozen=True, kw_only=True):
    """A session's actor continues from the log: it failed, or found events there that were new to it.

    What it should have told was perhaps not told. If it failed, what it was told is `lost` with it.
    """

    key: str
    lost: bool
