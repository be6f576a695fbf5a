"""How far an exchange, a spawn or a run has got: as plain JSON for programs, in a few words for people."""

from typing import Any

from intersession_events.facts import FailureCode
from intersession_projections.flows import ExchangeSummary, SpawnSummary
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.timeline import CLOSES, FAILURES, LOOP_ENDS, counted

Flow = ExchangeSummary | SpawnSummary | RunOutcome


def flow_id(flow: Flow) -> str:
    """Return the id that `replay` takes."""
    match flow:
        case ExchangeSummary():
            return flow.exchange_id
        case SpawnSummary():
            return flow.spawn_id
        case RunOutcome():
            return flow.run_id


def kind_of(flow: Flow) -> str:
    """Return what it is, in a word."""
    match flow:
        case ExchangeSummary():
            return "exchange"
        case SpawnSummary():
            return "spawn"
        case RunOutcome():
            return "run"


def began_ms(flow: Flow) -> int:
    """Return when it was accepted."""
    return flow.queued_ms if isinstance(flow, RunOutcome) else flow.accepted_ms


def flow_value(flow: Flow) -> dict[str, Any]:
    """Return where it stands, as `--json` prints it. Times in ms; what is not known is left out."""
    value: dict[str, Any] = {
        "id": flow_id(flow),
        "kind": kind_of(flow),
        "runId": flow.run_id,
        "acceptedAt": began_ms(flow),
        "accepted": flow.accepted,
        "position": flow.position,
        "inWords": in_words(flow),
    }
    match flow:
        case ExchangeSummary() | SpawnSummary():
            value |= {
                "state": "open" if flow.is_open else "closed",
                "requester": (flow.asker if isinstance(flow, SpawnSummary) else flow.requester) or "operator",
                "closeReason": flow.close_reason,
                "closedAt": flow.closed_ms,
                "inferred": flow.inferred or None,
            }
        case RunOutcome():
            value |= {
                "state": "closed" if flow.ended else "open",
                "requester": flow.caller,
                "closedAt": flow.ended_ms,
            }
    match flow:
        case ExchangeSummary():
            value |= {
                "target": flow.target,
                "turns": flow.turns,
                "maxTurns": flow.max_turns,
                "loopEnd": flow.end_reason,
                "limit": flow.limit,
            }
        case SpawnSummary():
            value |= {
                "target": flow.child,
                "label": flow.label,
                "status": flow.status,
                "archived": flow.archived,
            }
        case RunOutcome():
            value |= {"target": flow.session_key, "status": flow.status, "errorCode": flow.code}
    return {name: item for name, item in value.items() if item is not None}


def in_words(flow: Flow) -> str:
    """Return where it stands and why it ended, in a few words."""
    match flow:
        case ExchangeSummary():
            return _exchange_in_words(flow)
        case SpawnSummary():
            return _spawn_in_words(flow)
        case RunOutcome():
            return _run_in_words(flow)


def _exchange_in_words(flow: ExchangeSummary) -> str:
    parts = [] if flow.turns == 0 else [counted(flow.turns, "turn")]
    if flow.end_reason is not None and (flow.turns or flow.end_reason not in {"no_requester", "one_way"}):
        parts.append(LOOP_ENDS[flow.end_reason])
    if flow.close_reason is None:
        parts.append("not over yet")
    else:
        parts.append(CLOSES[flow.close_reason])
    return "; ".join(parts)


def _spawn_in_words(flow: SpawnSummary) -> str:
    task = {None: "at work", "ok": "task done", "error": "task failed", "timeout": "task took too long"}
    parts = [task.get(flow.status, f"task {flow.status}")]
    if flow.close_reason is not None:
        parts.append(CLOSES[flow.close_reason])
    elif flow.status is not None:
        parts.append("to be announced")
    return "; ".join(parts)


def _run_in_words(flow: RunOutcome) -> str:
    match flow.status:
        case "queued":
            return "waits for its turn"
        case "running":
            return "at work"
        case "ok":
            return "answered" if flow.reply else "answered without a text"
        case "error" | "timeout":
            code: FailureCode | None = flow.code  # type: ignore[assignment] # pyright: ignore[reportAssignmentType]
            return FAILURES.get(code, "failed") if code is not None else "failed"
        case "aborted":
            return flow.error or "aborted"
