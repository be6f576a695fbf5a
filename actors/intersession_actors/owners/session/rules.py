"""The rules of one session: from commands to events. The session actor calls them. No threads, no clock, no store.

`decide` takes the state (`state.py`), a command and what is known beside them, and returns a plan, or a refusal.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, assert_never

import msgspec

from intersession_actors.owners.session import commands, showing
from intersession_actors.owners.session.answers import (
    decide_failure,
    decide_returned,
    failure_notice,
    limit_notice,
)
from intersession_actors.owners.session.held_calls import (
    calls_over,
    decide_due,
    decide_hold,
    decide_release,
)
from intersession_actors.owners.session.messaging import (
    all_ended,
    collected,
    mode_of,
    next_generation,
    renewed_by,
    reset_events,
    stop_running,
    stopped_for,
    unaffordable,
)
from intersession_actors.owners.session.state import Session, causes, is_current
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.effects import Plan
from intersession_actors.rules.config.messages import INBOUND
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.config.tools import Compaction
from intersession_actors.rules.policy.budgets import judge_spending
from intersession_actors.rules.policy.chain import Spent, check_start
from intersession_actors.rules.policy.sending import Verdict
from intersession_actors.rules.policy.windows import (
    Reckoned,
    has_room_for_tools,
    kept_by_compaction,
    room_before_compaction,
    room_for_words,
    words_of_summary,
)
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.recorded import StreamAppend

SETTINGS_FOR_AGENTS: Final = frozenset(
    {"verboseLevel", "reasoningLevel", "elevatedLevel", "responseUsage", "groupActivation"}
)
"""The settings of a session that its agent is told, beside the model and how much it should think."""

ThreadLeft = tuple[int, facts.UnbindReason] | None
"""For how many milliseconds a thread is still the session's own, and why no longer; None: for good, or there is none."""

SETTINGS: Final = SETTINGS_FOR_AGENTS | {
    "sendPolicy",
    "label",
    "model",
    "thinkingLevel",
    "displayName",
    "hold",
    "queueMode",
}
"""What `sessions.patch` can set (GATE-2). Lineage can't be patched."""


class Beginning(NamedTuple):
    """An attempt's input beside messages: its tools, None if unknown, and its model's window (CTX-1).

    `words` is how many tokens there are for what is said; None is no bound. `compacts_at` is how many of them may be said before
    older turns are summarised, None is any number; `keep` is how many tokens of the newest turns a compaction leaves alone (CTX-5).
    """

    tools: tuple[str, ...] | None
    context_tokens: int | None
    room: int | None
    words: int | None
    withheld: int = 0
    """The number of tools that had no room."""
    compacts_at: int | None = None
    keep: int = 0


def beginning_of(
    state: Session, tools: tuple[str, ...] | None, reckoned: Reckoned, compaction: Compaction | None = None
) -> Beginning:
    """Return the next attempt's tools and window. If tools leave hardly any room, it has none.

    `compaction` says how older turns are summarised, as far as the agent can be asked for that.
    """
    window, room, summarises = reckoned
    if window is None or room is None:
        return Beginning(tools, window, room, None)
    most = state.most if state.window is None or state.window[0] == window else None
    withheld = len(tools) if tools and not has_room_for_tools(room, len(tools), most) else 0
    if withheld:
        tools = ()
    words = room_for_words(room, len(tools or ()), most)
    if compaction is None or not summarises:
        return Beginning(tools, window, room, words, withheld)
    compacts_at = room_before_compaction(compaction, words)
    return Beginning(
        tools, window, room, words, withheld, compacts_at, kept_by_compaction(compaction, compacts_at)
    )


class Start(NamedTuple):
    """The next attempt's input: tools, window and context.

    `weighed` is how many tokens were used then, and how many by the turns that no summary covers, where an erasure may have made
    them fewer since.
    """

    beginning: Beginning
    context: RunContext
    weighed: tuple[int, int] | None = None


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """A decision's inputs beside the state and the command. Fields that no applicable rule reads have their defaults.

    `key` is the session's, `now_ms` the clock's time, `verdict` the send policy's. `start` is there where a run can be
    started: its agent is here and its transcript is at hand. `spent` is what its chain has used. `age_ms` is for how long
    the attempt under way has lasted, `was_called` whether its agent was called, `retries` how often an attempt that was cut
    off may be made again. `failure_text` is what a person is told whose message finds no answer. `shown` is what the attempt under
    way has shown in pieces, which the log does not have (STREAM-3). `compaction` says how a summary is asked for.
    """

    log_id: str
    key: str
    now_ms: int = 0
    verdict: Verdict | None = None
    thread_left: ThreadLeft = None
    start: Start | None = None
    spent: Spent = Spent()
    age_ms: int = 0
    was_called: bool = True
    retries: int = 0
    failure_text: str = ""
    shown: str | None = None
    compaction: Compaction = Compaction()


def decide(state: Session, command: commands.Decidable, now: Circumstances) -> Plan | Refused:
    """Return the events of a command: the session's own, and the appends of other streams with them."""
    if now.shown is not None and state.running is not None:
        state = msgspec.structs.replace(state, running=msgspec.structs.replace(state.running, said=now.shown))
    plan, running = _decided(state, command, now), state.running
    if running is not None and running.waiting.shown is not None:
        plan = showing.message_ended(state, plan, key=now.key, log_id=now.log_id, now_ms=now.now_ms)
    if not state.held or isinstance(plan, Refused):
        return plan
    ended = {event.run_id for event in plan.events if isinstance(event, facts.RunEnd)}
    over = calls_over(state, ended)
    return msgspec.structs.replace(plan, events=(*over, *plan.events)) if over else plan


def _decided(  # noqa: C901, PLR0912 - one case a command
    state: Session, command: commands.Decidable, now: Circumstances
) -> Plan | Refused:
    match command:
        case commands.Enqueue():
            return _enqueued(state, command, now)
        case commands.RunReturned():
            return _returned(state, command, now)
        case commands.RecordMessages():
            return _of_the_run(state, decide_messages(state, command))
        case commands.HoldCall():
            return _of_the_run(state, decide_hold(state, command))
        case commands.ReleaseCall():
            return _of_the_run(state, decide_release(state, command))
        case commands.CallDue():
            return _of_the_run(state, decide_due(state, command))
        case commands.Steer():
            return _of_the_run(state, decide_steer(state, command))
        case commands.AddMessage():
            return _denied(now) or _plan(decide_add(state, command))
        case commands.Patch():
            return _plan(decide_patch(state, command))
        case commands.Reset():
            return _plan(decide_reset(state, command))
        case commands.Compact():
            return _plan(decide_compact(state, command, now))
        case commands.Archive():
            return _archived(state, command)
        case commands.Abort():
            return _of_the_run(state, decide_abort(state, command))
        case commands.ShowAnswer():
            return _of_the_run(state, showing.decide_show(state, command, now.verdict))
        case commands.AnswerTaken():
            return _of_the_run(state, showing.decide_taken(state, command))
        case commands.DeadlinePassed():
            return _timed_out(state, command, now)
        case commands.Wake():
            return _ended(state, decide_wake(state, now), now)
        case commands.StartNext():
            return _of_the_run(state, decide_start(state, now))
        case commands.Unbind():
            return _plan(decide_unbind(state, command, now.thread_left))
        case _:
            assert_never(command)


def _plan(
    decided: Sequence[facts.Event] | Refused,
    *,
    carried: tuple[StreamAppend, ...] = (),
    cause: str | None = None,
    correlation: str | None = None,
) -> Plan | Refused:
    if isinstance(decided, Refused):
        return decided
    return Plan(events=tuple(decided), carried=carried, cause=cause, correlation=correlation)


def _of_the_run(
    state: Session, decided: Sequence[facts.Event] | Refused, carried: tuple[StreamAppend, ...] = ()
) -> Plan | Refused:
    """Plan the events of the present or a waiting run: their cause is the run's start, or the event that queued it."""
    first = None if isinstance(decided, Refused) or not decided else decided[0]
    # A compaction is caused by what the run waits for that it goes ahead of.
    is_ahead = isinstance(first, facts.RunQueued)
    run_id = first.run_id if isinstance(first, facts.RunEvent) and not is_ahead else None
    cause, correlation = causes(state, run_id)
    return _plan(decided, carried=carried, cause=cause, correlation=correlation)


def _ended(state: Session, decided: Sequence[facts.Event], now: Circumstances) -> Plan | Refused:
    """Plan the end of the present run, with the notice to a person whose message found no answer."""
    notice = failure_notice(
        state, decided, key=now.key, text=now.failure_text, log_id=now.log_id, now_ms=now.now_ms
    )
    return _of_the_run(state, decided, notice)


def _denied(now: Circumstances) -> Refused | None:
    if now.verdict is None or now.verdict.allowed:
        return None
    return Refused(code="policy_denied", error=f"sessionKey: {now.verdict.rule}")


def _enqueued(state: Session, command: commands.Enqueue, now: Circumstances) -> Plan | Refused:
    if is_known(state, command):
        return Plan()  # told twice, after a restart of whoever tells it: the log has it
    if (denied := _denied(now)) is not None:
        return denied
    full = judge_spending(command.counted) if command.counted and command.queue is not None else None
    if full is not None:
        command = msgspec.structs.replace(command, queueing=None)  # it stops and collects nothing
    decided = decide_enqueue(state, command, log_id=now.log_id, thread_left=now.thread_left)
    if isinstance(decided, Refused):
        return decided
    notice: tuple[StreamAppend, ...] = ()
    if full is not None and command.queue is not None:
        decided.append(unaffordable(command.queue.run_id, full))
        notice = limit_notice(
            command.queue,
            command.budget,
            now.failure_text,
            key=now.key,
            log_id=now.log_id,
            now_ms=command.message.timestamp,
        )
    return Plan(
        events=tuple(decided),
        carried=command.carried + notice,
        cause=command.causation,
        correlation=command.budget.root,
    )


def is_known(state: Session, command: commands.Enqueue) -> bool:
    """Whether the log has a message already."""
    run = command.queue
    return (run is not None and state.knows(run.run_id)) or command.message.id in state.heard


def _returned(state: Session, command: commands.RunReturned, now: Circumstances) -> Plan | Refused:
    events, carried = decide_returned(
        state, command, key=now.key, log_id=now.log_id, now_ms=now.now_ms, retry_interrupted=now.retries
    )
    if isinstance(next(iter(events), None), facts.LateReplyDropped):
        return _plan(events, cause=command.causation, correlation=command.correlation)
    return _of_the_run(state, events, carried) if carried else _ended(state, events, now)


def _archived(state: Session, command: commands.Archive) -> Plan | Refused:
    """Plan the archiving. That of a sub-agent whose work is done is caused by the end of its spawn; time is its own cause."""
    ends = [append.drafts[0] for append in command.carried if command.reason == "cleanup"]
    cause, correlation = (ends[0].causation, ends[0].correlation) if ends else (None, None)
    decided = decide_archive(state, command)
    return _plan(decided, carried=command.carried, cause=cause, correlation=correlation)


def _timed_out(state: Session, command: commands.DeadlinePassed, now: Circumstances) -> Plan | Refused:
    running = state.running
    if running is not None and (running.held_from or running.held_ms != command.held_ms):
        return Plan()  # its time stands still while a call is held
    events = decide_failure(
        state,
        run_id=command.run_id,
        attempt=command.attempt,
        code="timeout",
        error=timed_out(running.waiting.queued) if running is not None else "timeout",
    )
    return _ended(state, events, now)


def decide_enqueue(  # noqa: C901 - one step a part of the command
    state: Session, command: commands.Enqueue, *, log_id: str = "", thread_left: ThreadLeft = None
) -> list[facts.Event] | Refused:
    """Return the events of an accepted message: perhaps an opening, then the message, with its run if one will answer it."""
    events: list[facts.Event] = []
    session_id = state.session_id
    if command.only_bound is not None and not _is_bound(state, command.only_bound, thread_left):
        return Refused(code="not_visible", error="thread: it belongs to this session no more")
    if not state.exists:
        if command.opening is None or (state.archived and command.session_id is not None):
            return Refused(code="not_visible", error="sessionKey: the session is gone")
        events.append(command.opening)
        if command.bound is not None:
            events.append(command.bound)
        if command.given is not None:
            events.append(command.given)
        session_id = command.opening.session_id
    if command.session_id not in {None, session_id}:
        return _replaced("sessionKey")
    to, renewed = session_id, list[facts.Event]()
    if command.renewal is not None and (renewed := renewed_by(state, command, log_id)):
        to = next_generation(command, log_id)
    mode = mode_of(state, command)
    stopped = [] if renewed else stopped_for(state, command, mode)
    waiting = 0 if renewed else len(state.queue) + (state.running is not None) - len(stopped)
    if command.at_most is not None and command.queue is not None and waiting >= command.at_most:
        return Refused(code="busy", error=f"sessionKey: {waiting} runs are waiting already, try again later")
    if command.route is not None and _route_differs(state, command.route):
        events.append(command.route)
    events += stopped
    if command.patch is not None:
        events.append(command.patch)
    if command.queue is None:
        if command.renewal is not None and command.renewal.command is not None:
            # A bare command is said in the conversation that it ends.
            return [*events, facts.MessageRecorded(session_id=session_id, message=command.message), *renewed]
        said = facts.MessageRecorded(session_id=to, message=command.message)
        return [*events, *renewed, said]
    events += renewed
    events.append(
        msgspec.structs.replace(
            command.queue,
            session_id=to,
            message=command.message,
            answers="",
            budget=command.budget,
            collects=command.queueing.cap if command.queueing is not None and mode == "collect" else None,
            ahead=mode == "interrupt" and any(one.queued.caller != INBOUND for one in state.queue),
        )
    )
    return events


def _replaced(field: str) -> Refused:
    """Return the refusal of a command that was authorised for another generation than the present one (HIST-6)."""
    return Refused(code="not_visible", error=f"{field}: the session was replaced meanwhile, list again")


def _is_bound(state: Session, route: facts.Route, left: ThreadLeft) -> bool:
    return state.bound is not None and state.bound.route == route and (left is None or left[0] > 0)


def decide_unbind(state: Session, command: commands.Unbind, left: ThreadLeft) -> list[facts.Event]:
    """Return the event that unbinds the session's thread; none if it has no thread, or keeps it for now."""
    if state.bound is None:
        return []
    if not command.only_due:
        return [facts.ThreadUnbound(route=state.bound.route, reason="unbound", by=command.by)]
    if left is None or left[0] > 0:
        return []
    return [facts.ThreadUnbound(route=state.bound.route, reason=left[1])]


def _route_differs(state: Session, change: facts.RouteChanged) -> bool:
    return change.route != state.route or (
        change.display_name is not None and change.display_name != state.chat_name
    )


def decide_messages(state: Session, command: commands.RecordMessages) -> list[facts.Event] | Refused:
    """Return the records of a run's own messages, unless the attempt has ended."""
    if not is_current(state, command.run_id, command.attempt):
        return Refused(code="invalid_request", error="run: this attempt is over, stop working on it")
    return [
        facts.MessageRecorded(session_id=state.session_id, message=message, attempt=command.anew)
        for message in command.messages
    ]


MOST_STEERED: Final = 16
"""How often one run may be steered: each time its agent begins again."""


def decide_steer(state: Session, command: commands.Steer) -> list[facts.Event] | Refused:
    """Return the message for a run, and the end of its attempt; none where it has the message already."""
    if command.message.id in state.heard:
        return []
    said = facts.MessageRecorded(session_id=state.session_id, message=command.message)
    running = state.running
    if running is None or running.waiting.queued.run_id != command.run_id:
        waits = any(one.queued.run_id == command.run_id for one in state.queue)
        over = "target: its run is over, read its result, or send it a message with sessions_send"
        return [said] if waits else Refused(code="invalid_request", error=over)
    if running.waiting.steered >= MOST_STEERED:
        error = f"target: its run was steered {MOST_STEERED} times, cancel it, or wait for its result"
        return Refused(code="busy", error=error)
    attempt = running.attempt
    return [said, facts.RunInterrupted(run_id=command.run_id, attempt=attempt, steered_by=command.by)]


def decide_add(state: Session, command: commands.AddMessage) -> list[facts.Event] | Refused:
    """Return the record of a message without a run."""
    if not state.exists:
        return Refused(code="not_visible", error="sessionKey: the session is gone")
    if command.session_id not in {None, state.session_id}:
        return _replaced("sessionKey")
    return [facts.MessageRecorded(session_id=state.session_id, message=command.message)]


def decide_patch(state: Session, command: commands.Patch) -> list[facts.Event] | Refused:
    """Return the change of settings; none if nothing changes (GATE-2)."""
    unknown = sorted((set(command.values) | set(command.cleared)) - SETTINGS)
    if unknown:
        return Refused(
            code="invalid_request", error=f"{unknown[0]}: can't be patched, use {sorted(SETTINGS)}"
        )
    events: list[facts.Event] = []
    if not state.exists:
        if command.opening is None:
            return Refused(code="not_visible", error="key: the session is gone")
        events.append(command.opening)
    values = {name: value for name, value in command.values.items() if state.settings.get(name) != value}
    cleared = tuple(name for name in command.cleared if name in state.settings)
    if values or cleared:
        events.append(facts.SessionPatched(values=values, cleared=cleared, by=command.by))
    return events


def decide_reset(state: Session, command: commands.Reset) -> list[facts.Event] | Refused:
    """Return the beginning of a new generation, and the end of all running and waiting runs of the last one."""
    if not state.exists:
        return Refused(code="not_visible", error="key: the session is gone")
    if command.previous not in {None, state.session_id}:
        return _replaced("key")
    return reset_events(state, command)


def decide_compact(
    state: Session, command: commands.Compact, now: Circumstances
) -> list[facts.Event] | Refused:
    """Return the compaction that a caller asks for; none for one that is known already (CTX-6)."""
    if not state.exists:
        return Refused(code="not_visible", error="key: the session is gone")
    if command.session_id not in {None, state.session_id}:
        return _replaced("key")
    if state.knows(command.run_id):
        return []
    return [
        compaction_of(command.run_id, state, now, state.compacts_at, caller=command.by, wish=command.wish)
    ]


def decide_archive(state: Session, command: commands.Archive) -> list[facts.Event] | Refused:
    """Return the archiving; none for an archived session."""
    if not state.exists:
        return Refused(code="not_visible", error="key: the session is gone")
    if command.session_id not in {None, state.session_id}:
        return _replaced("key")
    if command.only_idle and not state.idle:
        return Refused(code="busy", error="key: the session has work to do, wait for it")
    events = all_ended(state, command.by or "archive", "the session was archived")
    if state.bound is not None:
        events.append(facts.ThreadUnbound(route=state.bound.route, reason="archived"))
    events.append(facts.SessionArchived(session_id=state.session_id, reason=command.reason, by=command.by))
    return events


def decide_abort(state: Session, command: commands.Abort) -> list[facts.RunAborted]:
    """Return the abort of one running or waiting run, or of all; none if there is no such run."""
    aborted = stop_running(state, command.by)
    aborted += [
        facts.RunAborted(run_id=waiting.queued.run_id, attempt=0, by=command.by) for waiting in state.queue
    ]
    return [event for event in aborted if command.run_id in {None, event.run_id}]


def decide_start(state: Session, now: Circumstances) -> list[facts.Event]:
    """Return the start of the run at the head of the queue, if the session is free.

    A run whose chain has meanwhile used all that it may does not start, and says so (LOOP-5); the one that a chain begins
    with always does.
    """
    if state.exists and state.queue and state.queue[0].queued.collects and (ends := collected(state)):
        return ends
    if state.running is not None or not state.queue or not state.exists or now.start is None:
        return []
    head = state.queue[0]
    queued, budget = head.queued, head.budget
    tripped = check_start(budget, now.spent) if queued.run_id != budget.root else None
    if tripped is not None:
        error = f"limit: {tripped.words}, so this run was not started"
        return [
            facts.RunFailed(
                run_id=queued.run_id,
                attempt=state.interrupted,
                code="limit",
                error=error,
                limit=tripped.setting,
                used=tripped.value,
            )
        ]
    context = now.start.context
    if context.compacts and context.covers is None:
        nothing = "there is nothing to summarise"
        return [
            facts.RunCompleted(
                run_id=queued.run_id,
                attempt=state.interrupted,
                session_id=state.session_id,
                notes=(nothing,),
            )
        ]
    if now.start.beginning.compacts_at is not None and is_full(state, now.start):
        return [compaction_before(state, queued, now)]
    return [started(state, queued, now.start, now.now_ms)]


def is_full(state: Session, start: Start) -> bool:
    """Whether older turns are to be summarised before a run begins (CTX-5).

    Not where a summary would win nothing, nor right behind one that failed: then the oldest messages are left out.
    """
    beginning, context, weighed = start
    used, open_tokens = weighed or (context.used, context.open_tokens)
    return (
        beginning.compacts_at is not None
        and used > beginning.compacts_at
        and open_tokens > beginning.keep
        and not context.compacts
        and not state.uncompacted
    )


def compaction_before(state: Session, queued: facts.RunQueued, now: Circumstances) -> facts.RunQueued:
    """Return the compaction that goes ahead of a run: the session's n-th one."""
    run_id = ids.derive(now.log_id, "compaction", queued.run_id, state.compactions)
    compacts_at = None if now.start is None else now.start.beginning.compacts_at
    return compaction_of(run_id, state, now, compacts_at, caller=None, wish=None)


def compaction_of(
    run_id: str,
    state: Session,
    now: Circumstances,
    compacts_at: int | None,
    *,
    caller: str | None,
    wish: str | None,
) -> facts.RunQueued:
    """Return a compaction's run. `wish` is what its caller wants of the summary."""
    compaction = now.compaction
    return facts.RunQueued(
        run_id=run_id,
        session_id=state.session_id,
        step="compaction",
        instructions=facts.Instructions(
            form="compaction.1",
            session=now.key,
            turns=words_of_summary(compacts_at),
            asked=wish or compaction.custom_instructions,
        ),
        timeout_ms=milliseconds(compaction.timeout_seconds),
        model=compaction.model,
        caller=caller,
    )


def started(state: Session, queued: facts.RunQueued, start: Start, now_ms: int) -> facts.RunStarted:
    """Return the start of the next attempt of a run."""
    beginning, context, _ = start
    return facts.RunStarted(
        run_id=queued.run_id,
        attempt=state.interrupted + 1,
        context_hash=context.hash,
        deadline_ms=now_ms + queued.timeout_ms if queued.timeout_ms else 0,
        model=queued.model or state.settings.get("model"),
        thinking=queued.thinking or state.settings.get("thinkingLevel"),
        settings={name: value for name, value in state.settings.items() if name in SETTINGS_FOR_AGENTS},
        tools=facts.SESSION_TOOLS if beginning.tools == facts.SESSION_TOOLS else beginning.tools,
        context_tokens=beginning.context_tokens,
        room=beginning.room,
        words=beginning.words,
        used=None if beginning.room is None else context.used,
        fit=context.fit,
        compacts_at=beginning.compacts_at,
        covers=context.covers if context.compacts else None,
    )


def timed_out(queued: facts.RunQueued) -> str:
    """Return the end of a run whose time is over."""
    return f"timeout: the run had {queued.timeout_ms / 1000:g} s"


def is_task(queued: facts.RunQueued) -> bool:
    """Whether a run is a sub-agent's task; its announce and its requester's reaction are not."""
    return queued.spawn_id is not None and queued.step == "message" and queued.caller is not None


def decide_wake(state: Session, now: Circumstances) -> list[facts.Event]:
    """Return the outcome of an attempt that the last process left behind (docs/reliability.md, rule 4)."""
    running = state.running
    if running is None:
        return []
    queued = running.waiting.queued
    run_id = queued.run_id
    time_left = running.deadline_ms + running.held_ms - running.began_ms - now.age_ms
    if is_task(queued) and running.deadline_ms and not running.held_from and time_left <= 0:
        # A sub-agent's time is over when the log says so (SPAWN-8, P7); another run gets its time anew.
        return [
            facts.RunFailed(
                run_id=run_id,
                attempt=running.attempt,
                code="timeout",
                error=timed_out(queued),
                partial=running.said,
            )
        ]
    # An attempt whose agent was never called does not count as interrupted, nor one that waited for a person.
    counted = running.attempt - running.waiting.refused - running.waiting.waited
    if not now.was_called or state.held_open or counted <= now.retries:
        return [facts.RunInterrupted(run_id=run_id, attempt=running.attempt)]
    return [
        facts.RunFailed(
            run_id=run_id,
            attempt=running.attempt,
            code="interrupted",
            error=f"interrupted: the process ended during attempt {running.attempt}",
            partial=running.said,
        )
    ]
