"""The rules of one session: what a command leads to. The session actor asks them. No threads, no clock, no store.

Each function takes the state (`state.py`) and a command and returns events, or a refusal.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.agents import Answered
from intersession_actors.policy import (
    Reckoned,
    Spent,
    check_start,
    counts_use,
    has_room_for_tools,
    room_for_words,
)
from intersession_actors.prompt import RunContext
from intersession_actors.session import commands
from intersession_actors.session.state import Session, is_current
from intersession_actors.streams import Refused
from intersession_events import facts

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
}
"""What `sessions.patch` can set (GATE-2). Lineage can't be patched."""


class Beginning(NamedTuple):
    """What an attempt begins with beside what is said: its tools, None where that is not known, and what its model takes (CTX-1).

    `words` is how many tokens there are for what is said; None is no bound, in old recordings.
    """

    tools: tuple[str, ...] | None
    context_tokens: int | None
    room: int | None
    words: int | None


def beginning_of(state: Session, tools: tuple[str, ...] | None, reckoned: Reckoned) -> Beginning:
    """Return what the next attempt begins with. Where there is hardly room beside its tools, it has none."""
    window, room = reckoned
    if window is None or room is None:
        return Beginning(tools, window, room, None)
    most = state.most if state.window is None or state.window[0] == window else None
    if tools and not has_room_for_tools(room, len(tools), most):
        tools = ()
    return Beginning(tools, window, room, room_for_words(room, len(tools or ()), most))


def decide_enqueue(
    state: Session, command: commands.Enqueue, *, thread_left: ThreadLeft = None
) -> list[facts.Event] | Refused:
    """Return what accepting a message leads to: perhaps an opening, the message, perhaps its run."""
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
        session_id = command.opening.session_id
    if command.session_id not in {None, session_id}:
        return _replaced("sessionKey")
    stopped = _stop_running(state, command.interrupts) if command.interrupts is not None else []
    waiting = len(state.queue) + (state.running is not None) - len(stopped)
    if command.at_most is not None and command.queue is not None and waiting >= command.at_most:
        return Refused(code="busy", error=f"sessionKey: {waiting} runs are waiting already, try again later")
    if command.route is not None and _route_differs(state, command.route):
        events.append(command.route)
    events += stopped
    events.append(facts.MessageRecorded(session_id=session_id, message=command.message))
    if command.patch is not None:
        events.append(command.patch)
    if command.queue is not None:
        budget = command.budget
        events.append(
            msgspec.structs.replace(
                command.queue, session_id=session_id, budget=budget, chain=budget.path, hops=budget.hops
            )
        )
    return events


def _replaced(field: str) -> Refused:
    """Return the refusal of what was authorised for another generation than the one there is now (HIST-6)."""
    return Refused(code="not_visible", error=f"{field}: the session was replaced meanwhile, list again")


def _is_bound(state: Session, route: facts.Route, left: ThreadLeft) -> bool:
    return state.bound is not None and state.bound.route == route and (left is None or left[0] > 0)


def decide_unbind(state: Session, command: commands.Unbind, left: ThreadLeft) -> list[facts.Event]:
    """Return that the session's thread is its own no more; nothing where it has none, or has it a while yet."""
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
    """Return the records of a run's own messages, unless the attempt is over."""
    if not is_current(state, command.run_id, command.attempt):
        return Refused(code="invalid_request", error="run: this attempt is over, stop working on it")
    return [
        facts.MessageRecorded(session_id=state.session_id, message=message, attempt=command.anew)
        for message in command.messages
    ]


def decide_add(state: Session, command: commands.AddMessage) -> list[facts.Event] | Refused:
    """Return the record of a message that no run answers."""
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
    """Return the beginning of a new generation, and the end of all that was under way or waited in the one before."""
    if not state.exists:
        return Refused(code="not_visible", error="key: the session is gone")
    if command.previous not in {None, state.session_id}:
        return _replaced("key")
    return [
        *_all_ended(state, command.by or command.reason, "the session was reset", reset=True),
        facts.SessionReset(
            session_id=command.session_id,
            previous_session_id=state.session_id,
            reason=command.reason,
            by=command.by,
        ),
    ]


def decide_archive(state: Session, command: commands.Archive) -> list[facts.Event] | Refused:
    """Return the archiving; what is archived already stays as it is."""
    if not state.exists:
        return Refused(code="not_visible", error="key: the session is gone")
    if command.session_id not in {None, state.session_id}:
        return _replaced("key")
    if command.only_idle and not state.idle:
        return Refused(code="busy", error="key: the session has work to do, wait for it")
    events = _all_ended(state, command.by or "archive", "the session was archived")
    if state.bound is not None:
        events.append(facts.ThreadUnbound(route=state.bound.route, reason="archived"))
    events.append(facts.SessionArchived(session_id=state.session_id, reason=command.reason, by=command.by))
    return events


def _all_ended(state: Session, by: str, why: str, *, reset: bool = False) -> list[facts.Event]:
    """Return the ends of all runs of a conversation that is over: those that wait, and the one under way."""
    events: list[facts.Event] = [
        facts.RunFailed(
            run_id=waiting.queued.run_id, attempt=0, code="target_gone", error=f"target_gone: {why}"
        )
        for waiting in state.queue
    ]
    stopped = _stop_running(state, by)
    return events + [msgspec.structs.replace(aborted, gone=True, reset=reset) for aborted in stopped]


def decide_abort(state: Session, command: commands.Abort) -> list[facts.RunAborted]:
    """Return the abort of one run, under way or in the queue, or of all of them; nothing if there is no such run."""
    aborted = _stop_running(state, command.by)
    aborted += [
        facts.RunAborted(run_id=waiting.queued.run_id, attempt=0, by=command.by) for waiting in state.queue
    ]
    return [event for event in aborted if command.run_id in {None, event.run_id}]


def _stop_running(state: Session, by: str) -> list[facts.RunAborted]:
    """Return the abort of the run under way, if one is."""
    running = state.running
    if running is None:
        return []
    run_id = running.waiting.queued.run_id
    return [facts.RunAborted(run_id=run_id, attempt=running.attempt, by=by, partial=running.said)]


def decide_start(
    state: Session, *, context: RunContext, beginning: Beginning, spent: Spent, now_ms: int
) -> list[facts.Event]:
    """Return the start of the run at the head of the queue, if the session is free.

    A run whose chain has meanwhile used all that it may does not start, and says so (LOOP-5); the one that a chain begins
    with always does.
    """
    if state.running is not None or not state.queue or not state.exists:
        return []
    head = state.queue[0]
    queued, budget = head.queued, head.budget
    tripped = check_start(budget, spent) if queued.run_id != budget.root else None
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
    return [started(state, queued, context=context, beginning=beginning, now_ms=now_ms)]


def queued_to_start(
    state: Session, decided: Sequence[facts.Event]
) -> tuple[facts.MessageRecorded, facts.RunQueued] | None:
    """Return the message and the run that an enqueuing ends with, if the free session can start it in the same append.

    A session that opens or changes its settings with it starts the run afterwards, and so does one whose chain may be
    over what it may use by then (`check_start`).
    """
    match decided:
        case [
            *before,
            facts.MessageRecorded() as said,
            facts.RunQueued(budget=facts.Budget() as budget) as queued,
        ] if state.idle and state.exists and all(isinstance(event, facts.RouteChanged) for event in before):
            return None if counts_use(budget) else (said, queued)
        case _:
            return None


def started(
    state: Session,
    queued: facts.RunQueued,
    *,
    context: RunContext,
    beginning: Beginning,
    now_ms: int,
) -> facts.RunStarted:
    """Return the start of the next attempt of a run."""
    return facts.RunStarted(
        run_id=queued.run_id,
        attempt=state.interrupted + 1,
        context_hash=context.hash,
        deadline_ms=now_ms + queued.timeout_ms if queued.timeout_ms else 0,
        model=queued.model or state.settings.get("model"),
        thinking=queued.thinking or state.settings.get("thinkingLevel"),
        settings={name: value for name, value in state.settings.items() if name in SETTINGS_FOR_AGENTS},
        tools=beginning.tools,
        started_ms=now_ms if queued.timeout_ms else None,
        context_tokens=beginning.context_tokens,
        room=beginning.room,
        words=beginning.words,
        used=None if beginning.room is None else context.used,
        fit=context.fit,
    )


def timed_out(queued: facts.RunQueued) -> str:
    """Say that a run has had its time."""
    return f"timeout: the run had {queued.timeout_ms / 1000:g} s"


def is_task(queued: facts.RunQueued) -> bool:
    """Whether a run is a sub-agent's, on its task; the announce and what its requester makes of it are no tasks."""
    return queued.spawn_id is not None and queued.step == "message" and queued.caller is not None


def decide_wake(state: Session, *, retry_interrupted: int, now_ms: int) -> list[facts.Event]:
    """Return what becomes of an attempt that the last process left behind (docs/reliability.md, rule 4)."""
    running = state.running
    if running is None:
        return []
    queued = running.waiting.queued
    run_id = queued.run_id
    if is_task(queued) and 0 < running.deadline_ms <= now_ms:
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
    if running.attempt - running.waiting.refused <= retry_interrupted:
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


def decide_answer(
    state: Session,
    answered: Answered,
    *,
    run_id: str,
    attempt: int,
    reply: str | None,
    messages: tuple[facts.Message, ...],
) -> list[facts.Event]:
    """Return the end of a run that answered. An attempt that is over already only leaves a note."""
    if not is_current(state, run_id, attempt):
        return [facts.LateReplyDropped(run_id=run_id, attempt=attempt, reply=reply)]
    recorded: list[facts.Event] = [
        facts.MessageRecorded(session_id=state.session_id, message=message) for message in messages
    ]
    return [
        *recorded,
        facts.RunCompleted(
            run_id=run_id,
            attempt=attempt,
            reply=reply,
            usage=answered.usage,
            model=answered.model,
            stop_reason=answered.stop_reason,
            notes=answered.notes,
        ),
    ]


def decide_failure(
    state: Session,
    *,
    run_id: str,
    attempt: int,
    code: facts.FailureCode,
    error: str,
    traceback: str | None = None,
) -> list[facts.Event]:
    """Return the end of a run that broke; nothing if the attempt is over already."""
    if not is_current(state, run_id, attempt):
        return []
    partial = state.running.said if state.running is not None else None
    # The code is the first word of what people and agents read (docs/errors.md).
    words = error if error.startswith(f"{code}:") else f"{code}: {error}"
    return [
        facts.RunFailed(
            run_id=run_id, attempt=attempt, code=code, error=words, partial=partial, traceback=traceback
        )
    ]
