"""The second answer of `agent`: the end of a run in the original's form. Pure."""

import msgspec

from intersession.gateway.protocol.frames import ErrorCode, Frame, error_shape
from intersession_projections.views.run_outcomes.outcome import RunOutcome


def second_answer(outcome: RunOutcome) -> tuple[Frame, Frame | None]:
    """Return the payload for an ended run, and its error if it has one."""
    base: Frame = {"runId": outcome.run_id, "status": outcome.status}
    if outcome.failed:
        error = outcome.error or outcome.status
        code: ErrorCode = "AGENT_TIMEOUT" if outcome.status == "timeout" else "UNAVAILABLE"
        shape = error_shape(code, error, details={"code": outcome.code or "backend"})
        return base | {"status": "error", "summary": error}, shape
    started, ended = outcome.started_ms, outcome.ended_ms
    result = {
        "payloads": [] if outcome.reply is None else [{"text": outcome.reply, "mediaUrl": None}],
        "meta": {
            "durationMs": 0 if started is None or ended is None else max(0, ended - started),
            "aborted": outcome.status == "aborted",
            "agentMeta": {
                "sessionId": outcome.session_id,
                "model": outcome.model,
                "usage": msgspec.to_builtins(outcome.usage),
            },
        },
    }
    summary = "completed" if outcome.status == "ok" else "aborted"
    return base | {"summary": summary, "result": result}, None
