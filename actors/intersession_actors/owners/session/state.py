"""The state of a session, folded from its stream: settings, the queue, the present run, never the transcript. Pure."""

from collections.abc import Collection, Mapping
from typing import Final, Literal

import msgspec

from intersession_actors.owners.streams.strays import foreign
from intersession_actors.rules.policy.chain import budget_of
from intersession_actors.rules.policy.windows import LEAST_ROOM, tokens_of_tools
from intersession_actors.rules.prompt.fitting import tokens_of
from intersession_events import facts
from intersession_events.basics.plain_json import present
from intersession_events.log.recorded import Recorded

REMEMBERED_MESSAGES: Final = 64
UNCOMPACTED: Final = 8
"""How many runs begin without another try, after a compaction that failed."""
REMEMBERED_RUNS: Final = 128
"""How many ended runs a session remembers, to recognise a step that is told to it twice."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the queue, without its message, with the event that queued it as the cause of its start."""

    queued: facts.RunQueued
    cause: str
    correlation: str | None
    time: int
    last_tool_result: str | None = None
    """What an attempt that was cut off had of its tools; the next one knows it and need not ask again."""
    waited: int = 0
    """How many of its attempts were cut off while a call waited for a release (ASK-1), or were steered (CHILD-3)."""
    steered: int = 0
    refused: int = 0
    """How many of its attempts the model's server refused as too long (CTX-3)."""
    collected: bool = False
    """Whether it answers messages of runs before it with its own (QUEUE-2)."""
    interrupted: int = 0
    """How many attempts it had: they were cut off, or refused."""
    shown: facts.AnswerShown | None = None
    """What its channel was shown of the answer while it was said (STREAM-5)."""

    @property
    def budget(self) -> facts.Budget:
        """The run's causal chain's budget (LOOP-5)."""
        return self.queued.budget or budget_of(self.queued, self.correlation, self.time)


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """The present run: its attempt, and its messages so far."""

    waiting: Waiting
    attempt: int
    started_ms: int
    deadline_ms: int
    cause: str
    model: str | None = None
    thinking: str | None = None
    settings: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    last_tool_result: str | None = None
    said: str | None = None
    """The last text that the agent had put on record, for a run that does not come to its end (GATE-5)."""
    context_tokens: int | None = None
    room: int | None = None
    """How many tokens there are for tools and for what is said."""
    given: int = 0
    """How many tokens the agent was given, its tools included, and has recorded since, at most."""
    fit: facts.Fit | None = None
    covers: facts.Covers | None = None
    """What the summary will stand for that the run was asked for."""
    has_tools: bool = True
    held_before: tuple[str, ...] = ()
    """The ids of calls that attempts before waited with for a release, and that so can't have acted (ASK-4)."""
    held_from: int = 0
    """Since when at least one call has been held (milliseconds, the log's time); 0 for none."""
    held_ms: int = 0
    """For how long calls of the attempt were held before; that time does not count for its limit (ASK-1)."""

    @property
    def began_ms(self) -> int:
        """When the attempt began by the wall clock; `started_ms` is the log's time, which stays ahead of a clock that was set back."""
        return self.deadline_ms - self.waiting.queued.timeout_ms if self.deadline_ms else self.started_ms


class HeldCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the present run that was held; `released` is the event that ended that, None if it still waits (ASK-1).

    `may_have_acted`: an attempt was under way when it was released.
    """

    held: facts.ToolCallHeld
    since_ms: int
    released: facts.ToolCallReleased | None = None
    may_have_acted: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session."""

    opened: facts.SessionOpened | None = None
    session_id: str = ""
    archived: bool = False
    settings: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    route: facts.Route | None = None
    chat_name: str | None = None
    chat_type: facts.ChatType | None = None
    channel: str | None = None
    queue: tuple[Waiting, ...] = ()
    running: Running | None = None
    ended: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    """The ids of the last messages from outside, to recognise one that comes twice at once."""
    bound: facts.ThreadBound | None = None
    """The thread that belongs to this session (SPAWN-12)."""
    bound_ms: int = 0
    last_message_ms: int = 0
    began_ms: int = 0
    """When the present generation began (RESET-2)."""
    said_ms: int = 0
    """When a person spoke last; 0 where none has."""
    window: tuple[int, int] | None = None
    """The window of the model that ran last, and what of it is left for tools and for what is said."""
    held: tuple[HeldCall, ...] = ()
    """The held calls of the run at the head, in all its attempts."""
    compacts_at: int | None = None
    """How many tokens could be said, when its agent ran last, before it was to summarise older turns; None is any number (CTX-5)."""
    compactions: int = 0
    """How many summaries were asked for."""
    uncompacted: int = 0
    """How many runs are still to begin before older turns are tried to be summarised again."""
    most: int | None = None
    """The tokens of tools and messages that the model's server accepts, learnt from its refusals (CTX-3)."""

    def thread_left(self, *, age_ms: int, quiet_ms: int) -> "tuple[int, facts.UnbindReason] | None":
        """Return how long the thread stays bound without further messages (milliseconds), and why it ends.

        It was bound `age_ms` ago, and the last message was `quiet_ms` ago.
        """
        bound = self.bound
        if bound is None:
            return None
        limits: list[tuple[int, facts.UnbindReason]] = []
        if bound.max_age_ms:
            limits.append((bound.max_age_ms - age_ms, "max_age"))
        if bound.idle_ms:
            limits.append((bound.idle_ms - min(age_ms, quiet_ms), "idle"))
        return min(limits, default=None)

    @property
    def interrupted(self) -> int:
        """How many attempts the run at the head of the queue had."""
        return self.queue[0].interrupted if self.queue else 0

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self.running is None and not self.queue

    @property
    def held_open(self) -> tuple[HeldCall, ...]:
        """The calls that wait for a release."""
        return tuple(one for one in self.held if one.released is None) if self.held else ()

    @property
    def exists(self) -> bool:
        """Whether the session was opened and is not archived."""
        return self.opened is not None and not self.archived

    @property
    def send_override(self) -> Literal["allow", "deny"] | None:
        """The session's own send policy (POL-2)."""
        match self.settings.get("sendPolicy"):
            case "allow":
                return "allow"
            case "deny":
                return "deny"
            case _:
                return None

    def knows(self, run_id: str) -> bool:
        """Whether a run was queued here before, as far as is remembered."""
        if run_id in self.ended or (
            self.running is not None and self.running.waiting.queued.run_id == run_id
        ):
            return True
        return bool(self.queue) and run_id in [waiting.queued.run_id for waiting in self.queue]


def without(state: Session, frozen: Collection[str]) -> Session:
    """Return the session without some runs: a fork's frozen runs count as absent."""
    if not frozen:
        return state
    running = state.running
    if running is not None and running.waiting.queued.run_id in frozen:
        running = None
    queue = tuple(waiting for waiting in state.queue if waiting.queued.run_id not in frozen)
    if running is state.running and len(queue) == len(state.queue):
        return state
    return msgspec.structs.replace(state, running=running, queue=queue)


EMPTY: Final = Session()
"""Where a session stands of which nothing is recorded."""


def evolve(state: Session | None, recorded: Recorded) -> Session:  # noqa: C901, PLR0912 - one case an event
    """Apply one recorded event of the session's stream."""
    replace = msgspec.structs.replace
    # An event of another kind of stream comes out behind all cases. So there is no catch-all, and a new kind of
    # session's event that has no case is an error of types, without a look at each event's class ahead of the match.
    event: facts.SessionEvent | facts.RunEvent = recorded.event  # type: ignore[assignment] # pyright: ignore[reportAssignmentType]
    state = EMPTY if state is None else state
    if (message := facts.message_in(event)) is not None:
        state = _noted(replace(state, last_message_ms=recorded.time), message)
        if message.provenance is not None and message.provenance.kind == "external_user":
            state = replace(state, said_ms=recorded.time)
    match event:  # those first that are most
        case facts.MessageRecorded() | facts.TranscriptGiven():
            return state
        case facts.RunQueued():
            waiting = Waiting(
                queued=replace(event, message=None, answers=event.message_id),
                cause=recorded.id,
                correlation=recorded.correlation,
                time=recorded.time,
            )
            if event.step == "compaction":  # what waits is answered on the summary
                return replace(state, queue=(waiting, *state.queue), compactions=state.compactions + 1)
            at = len(state.queue)
            if event.ahead:
                at = 1 if state.interrupted else 0  # an attempt that was cut off is tried again first
            return replace(state, queue=(*state.queue[:at], waiting, *state.queue[at:]))
        case facts.RunStarted():
            queue, at = state.queue, 0
            if queue[0].queued.run_id != event.run_id:
                # In a fork another one than the first may start: those that are frozen stay where they are (FORK-6).
                at = next((at for at, one in enumerate(queue) if one.queued.run_id == event.run_id), 0)
            head = queue[at]
            running = Running(
                waiting=head,
                attempt=event.attempt,
                started_ms=recorded.time,
                deadline_ms=event.deadline_ms,
                cause=recorded.id,
                model=event.model,
                thinking=event.thinking,
                settings=event.settings,
                last_tool_result=head.last_tool_result,
                held_from=recorded.time if state.held_open else 0,
                held_before=tuple(
                    one.held.call_id
                    for one in state.held
                    if one.held.run_id == event.run_id and not one.may_have_acted
                )
                if state.held
                else (),
                covers=event.covers,
            )
            return _reckoned(
                replace(state, queue=(*queue[:at], *queue[at + 1 :]), running=running), event, running
            )
        case facts.RunCompleted():
            if event.message is None:  # as of each compaction
                state = _uncompacted(state, event)
            return _ended(_tries_more(state), event.run_id)
        case facts.RunFailed() | facts.RunAborted(into=None):
            return _ended(_uncompacted(state, event), event.run_id)
        case facts.RunAborted(into=into):
            state = _ended(state, event.run_id)
            together = (
                replace(one, collected=True) if one.queued.run_id == into else one for one in state.queue
            )
            return replace(state, queue=tuple(together))
        case facts.RunInterrupted():
            return _put_back(state, event)
        case facts.ToolCallHeld():
            return _held(state, HeldCall(held=event, since_ms=recorded.time))
        case facts.ToolCallReleased():
            return _released(state, event, recorded.time)
        case facts.AnswerShown():
            return _shown(state, event)
        case facts.SessionOpened():
            settings = {
                name: value
                for name, value in (
                    ("label", event.label),
                    ("displayName", event.display_name),
                    ("model", event.model),
                    ("thinkingLevel", event.thinking_level),
                    ("verboseLevel", event.verbose_level),
                )
                if value is not None
            }
            return replace(
                state,
                opened=event,
                session_id=event.session_id,
                began_ms=recorded.time,
                said_ms=0,
                archived=False,
                settings=settings,
                route=None,
                chat_name=None,
                chat_type=event.chat_type,
                channel=event.channel,
            )
        case facts.SessionPatched():
            changed = {name: value for name, value in state.settings.items() if name not in event.cleared}
            return replace(state, settings=changed | event.values)
        case facts.RouteChanged():
            return replace(
                state,
                route=event.route,
                chat_name=event.display_name or state.chat_name,
                chat_type=event.chat_type or state.chat_type,
                channel=event.route.channel,
            )
        case facts.SessionReset():
            return replace(state, session_id=event.session_id, began_ms=recorded.time)
        case facts.SessionArchived():
            return replace(state, archived=True)
        case facts.ThreadBound():
            return replace(
                state, bound=event, bound_ms=recorded.time, route=event.route, channel=event.route.channel
            )
        case facts.ThreadUnbound():
            route = None if state.route == event.route else state.route
            return replace(state, bound=None, route=route)
        case facts.SessionImported():
            return _imported(state, event)
        case facts.LineImported() | facts.LateReplyDropped():
            return state  # what was imported was said elsewhere, and nobody uses a late reply
    raise foreign(recorded)


def _imported(state: Session, event: facts.SessionImported) -> Session:
    imported = {
        "sendPolicy": event.send_policy,
        "label": event.label,
        # Not `event.model`: that is the model which ran last, and its provider is not even part of it.
        "model": event.model_override,
        "thinkingLevel": event.thinking_level,
        "verboseLevel": event.verbose_level,
        "displayName": event.display_name,
        **event.other_settings,
    }
    settings = dict(state.settings) | present(imported)
    return msgspec.structs.replace(
        state,
        session_id=event.session_id,
        settings=settings,
        route=event.route or state.route,
        channel=event.channel or state.channel,
    )


def _shown(state: Session, event: facts.AnswerShown) -> Session:
    running = state.running
    if running is None:
        return state
    waiting = msgspec.structs.replace(running.waiting, shown=None if event.error is not None else event)
    return msgspec.structs.replace(state, running=msgspec.structs.replace(running, waiting=waiting))


def _put_back(state: Session, event: facts.RunInterrupted) -> Session:
    running = state.running
    if running is None:
        return state
    refused = event.too_long is not None
    waiting = msgspec.structs.replace(
        running.waiting,
        last_tool_result=running.last_tool_result,
        refused=running.waiting.refused + refused,
        waited=running.waiting.waited + (bool(state.held_open) or event.steered_by is not None),
        steered=running.waiting.steered + (event.steered_by is not None),
        interrupted=event.attempt,
    )
    most = state.most
    if refused and running.room is not None:
        most = max(min(running.room, running.given) // 2, LEAST_ROOM)
    return msgspec.structs.replace(state, running=None, queue=(waiting, *state.queue), most=most)


def _reckoned(state: Session, event: facts.RunStarted, running: Running) -> Session:
    """Note the room in the attempt that begins. Limits learnt for another window are dropped."""
    window, room, words = event.context_tokens, event.room, event.words
    if window is None or room is None or words is None:
        return state
    most = state.most if state.window is None or state.window[0] == window else None
    running = msgspec.structs.replace(
        running,
        context_tokens=window,
        room=room if most is None else min(room, most),
        given=min(event.used or 0, words) + tokens_of_tools(len(event.tools or ())),
        fit=event.fit,
        has_tools=event.tools != (),
    )
    if event.covers is not None:  # another agent, on another model, may be the one that summarises
        return msgspec.structs.replace(state, running=running)
    return msgspec.structs.replace(
        state,
        running=running,
        window=(window, room),
        most=most,
        compacts_at=event.compacts_at,
        uncompacted=max(state.uncompacted - 1, 0),
    )


def _held(state: Session, held: HeldCall) -> Session:
    running = state.running
    if running is not None and not running.held_from:
        running = msgspec.structs.replace(running, held_from=held.since_ms)
    return msgspec.structs.replace(state, running=running, held=(*state.held, held))


def _released(state: Session, event: facts.ToolCallReleased, at_ms: int) -> Session:
    held = tuple(
        msgspec.structs.replace(one, released=event, may_have_acted=state.running is not None)
        if one.held.hold_id == event.hold_id
        else one
        for one in state.held
    )
    state = msgspec.structs.replace(state, held=held)
    running = state.running
    if running is None or not running.held_from or state.held_open:
        return state
    held_ms = running.held_ms + at_ms - running.held_from
    running = msgspec.structs.replace(running, held_from=0, held_ms=held_ms)
    return msgspec.structs.replace(state, running=running)


def _tries_more(state: Session) -> Session:
    """Let the next run have a little more than the model's server accepted: another machine may accept more."""
    if state.most is None or state.window is None:
        return state
    more = state.most + state.most // 16 + 1
    return msgspec.structs.replace(state, most=more if more < state.window[0] else None)


def _ended(state: Session, run_id: str) -> Session:
    running, queue = state.running, state.queue
    if running is not None and running.waiting.queued.run_id == run_id:
        running = None
    else:
        queue = tuple(waiting for waiting in queue if waiting.queued.run_id != run_id)
    return msgspec.structs.replace(
        state,
        running=running,
        queue=queue,
        held=tuple(one for one in state.held if one.held.run_id != run_id) if state.held else (),
        ended=(*state.ended, run_id)[-REMEMBERED_RUNS:],
    )


def _uncompacted(state: Session, end: facts.RunEnd) -> Session:
    """Let the next runs begin without a summary where a compaction gave none: else it would be tried before each of them."""
    running = state.running
    known = state.queue if running is None else (running.waiting, *state.queue)
    ended = next((one for one in known if one.queued.run_id == end.run_id), None)
    if ended is None or ended.queued.step != "compaction":
        return state
    if isinstance(end, facts.RunCompleted) and end.covers is not None:
        return state
    return msgspec.structs.replace(state, uncompacted=UNCOMPACTED)


def _noted(state: Session, message: facts.Message) -> Session:
    if message.role == "user":
        heard = (*state.heard, message.id)[-REMEMBERED_MESSAGES:]
        return msgspec.structs.replace(state, heard=heard)
    running = state.running
    if running is None or message.run_id != running.waiting.queued.run_id:
        return state
    if running.room is not None:
        running = msgspec.structs.replace(running, given=running.given + tokens_of(message))
        state = msgspec.structs.replace(state, running=running)
    text = facts.text_of(message)
    match message.role:
        case "toolResult" if text:
            running = msgspec.structs.replace(running, last_tool_result=text)
        case "assistant" if text:
            running = msgspec.structs.replace(running, said=text)
        case _:
            return state
    return msgspec.structs.replace(state, running=running)


def is_current(state: Session, run_id: str, attempt: int) -> bool:
    """Whether this attempt is the present one."""
    running = state.running
    return running is not None and running.waiting.queued.run_id == run_id and running.attempt == attempt


def causes(state: Session, run_id: str | None = None) -> tuple[str | None, str | None]:
    """Return the cause and correlation for events of a run, present or waiting; without a name, of the first."""
    running = state.running
    if running is not None and run_id in {None, running.waiting.queued.run_id}:
        return running.cause, running.waiting.correlation
    for waiting in state.queue:
        if run_id in {None, waiting.queued.run_id}:
            return waiting.cause, waiting.correlation
    return None, None
