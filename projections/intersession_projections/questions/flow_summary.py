"""The progress of an exchange, a spawn or a run: plain JSON for programs, a few words for people; used by lists."""

from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import FailureCode
from intersession_events.facts.reasons import (
    FAILURES,
    HELD_BEFORE,
    HELD_TEXTS,
    LOOP_ENDS,
    closed,
    counted,
)
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.flows.rows import ExchangeSummary, SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome


def flow_value(flow: Flow, *, at_work: bool | None = True) -> JsonObject:
    """Return its state as `--json` prints it. Times in ms; unknown fields are left out.

    `atWork` says whether a process is there that goes on with it, `at_work`, where it is not over and that is known.
    """
    value: JsonObject = {
        "id": flow_id(flow),
        "kind": flow.kind,
        "runId": flow.run_id,
        "acceptedAt": flow.accepted_ms,
        "accepted": flow.accepted,
        "position": flow.position,
    }
    match flow:
        case ExchangeSummary() | SpawnSummary():
            value |= {
                "state": "open" if flow.is_open else "closed",
                "requester": (flow.asker if isinstance(flow, SpawnSummary) else flow.requester) or "operator",
                "closeReason": flow.close_reason,
                "closedAt": flow.closed_ms,
                "inferred": flow.inferred or None,
                "atWork": at_work if flow.is_open else None,
            }
        case RunOutcome():
            value |= {
                "state": "closed" if flow.ended else "open",
                "atWork": None if flow.ended else at_work,
                "requester": flow.caller,
                "closedAt": flow.ended_ms,
            }
    match flow:
        case ExchangeSummary():
            value |= {
                "target": flow.target,
                "status": flow.primary_status,
                "turns": flow.turns,
                "maxTurns": flow.max_turns,
                "loopEnd": flow.end_reason,
                "limit": flow.limit,
                "hold": flow.hold,
            }
        case SpawnSummary():
            value |= {
                "target": flow.child,
                "label": flow.label,
                "status": flow.status,
                "archived": flow.archived,
            }
        case RunOutcome():
            value |= {
                "target": flow.session_key,
                "status": flow.status,
                "attempt": flow.attempt or None,
                "errorCode": flow.code,
                "error": flow.error,
                "retryOf": flow.retry_of,
            }
    return present(value)


def in_words(flow: Flow, *, at_work: bool = True, waits: str | None = None) -> str:
    """Return its state and why it ended, in a few words.

    `at_work` is whether a process writes the log: without one nobody works on what is not over. `waits` says what that waits for,
    where somebody has looked.
    """
    match flow:
        case ExchangeSummary():
            return _exchange_in_words(flow, at_work=at_work, waits=waits)
        case SpawnSummary():
            return _spawn_in_words(flow, at_work=at_work, waits=waits)
        case RunOutcome():
            return waits if waits is not None and at_work else _run_in_words(flow, at_work=at_work)


def _exchange_in_words(flow: ExchangeSummary, *, at_work: bool, waits: str | None) -> str:
    parts = [] if flow.turns == 0 else [counted(flow.turns, "turn")]
    if flow.end_reason is not None and (flow.turns or flow.end_reason not in {"no_requester", "one_way"}):
        parts.append(LOOP_ENDS[flow.end_reason])
    if flow.held is not None:
        parts.append(waits or f"HELD before {HELD_TEXTS[flow.held]} goes on, as {flow.held_by} wants")
    elif flow.close_reason is None:
        hold = "" if flow.hold is None else f", to be held before {HELD_BEFORE[flow.hold]}"
        parts.append(
            f"{waits or 'not over yet'}{hold}" if at_work else f"{waits or 'not over'}, {_NOBODY}{hold}"
        )
    else:
        parts.append(closed(flow.close_reason, sent=flow.delivery_id is not None))
    return "; ".join(dict.fromkeys(parts))  # a session that is gone ends both


def _spawn_in_words(flow: SpawnSummary, *, at_work: bool, waits: str | None) -> str:
    task = {
        None: waits or "at work" if at_work else f"{waits or 'task not done'}, {_NOBODY}",
        "ok": "task done",
        "error": "task failed",
        "timeout": "task took too long",
    }
    parts = [task.get(flow.status, f"task {flow.status}")]
    if flow.close_reason is not None:
        parts.append(closed(flow.close_reason, sent=flow.delivery_id is not None))
    elif flow.status is not None:
        parts.append(waits or "to be announced" if at_work else f"{waits or 'to be announced'}, {_NOBODY}")
    return "; ".join(parts)


_NOBODY = "and nobody is at work on it: the next start goes on"


def _run_in_words(flow: RunOutcome, *, at_work: bool) -> str:
    match flow.status:
        case "queued":
            return "waits for its turn, or for its agent" if at_work else f"waiting, {_NOBODY}"
        case "running":
            return "at work" if at_work else f"cut off in attempt {flow.attempt}, {_NOBODY}"
        case "ok":
            return "answered" if flow.reply else "answered without a text"
        case "error" | "timeout":
            code: FailureCode | None = flow.code  # type: ignore[assignment] # pyright: ignore[reportAssignmentType]
            return FAILURES.get(code, "failed") if code is not None else "failed"
        case "aborted":
            return flow.error or "aborted"
