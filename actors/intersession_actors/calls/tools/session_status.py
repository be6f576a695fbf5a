"""`session_status`: how a session stands that a caller can see, and what has happened there since (CHILD-5)."""

from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import AccessSummary
from intersession_actors.calls.service.resolve import resolve_target
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import KeyText
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.access import Requester
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonMapping, JsonObject, present
from intersession_events.facts import ready, run_named, topic_of
from intersession_events.log.recorded import Recorded

MOST_CHANGES: Final = 100
"""How many changes an answer has: the newest."""


@ready
class SessionStatus(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments (CHILD-5). `current` is the caller's own session."""

    session_key: KeyText = "current"
    changes_since: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] | None = None


def session_status(
    service: Service, requester: Requester, arguments: JsonMapping
) -> tuple[JsonObject, AccessSummary]:
    """Return how a session stands, and the access decisions.

    Raises:
        ToolRefused: `invalid_request` naming the field, or why the session is not to be looked at.
    """
    given = read_arguments(SessionStatus, arguments)
    typed = given.session_key
    if typed == "current":
        if requester.key is None:
            raise invalid("sessionKey", "the operator has no session of its own, name one")
        typed = str(requester.key)
    target = resolve_target(service.reader, requester, typed, "status")
    row, key = target.row, str(target.key)
    if row is None:
        raise ToolRefused("not_visible", "sessionKey: the session is not open yet")
    run = None if row.running is None else service.runs.get(row.running)
    # A label may hold a secret, as anything that people type (HIST-5).
    label = row.label if row.label is None or target.key == requester.key else redact_text(row.label)[0]
    answer: JsonObject = {
        "status": "ok",
        "sessionKey": target.shown,
        "sessionId": row.session_id,
        "agentId": row.agent_id,
        "state": row.run_state,
        "queued": row.queued,
        "updatedAt": row.updated_at,
        "children": service.flows.running_children(row.key),
    } | present(
        {
            "running": None if run is None else present({"runId": run.run_id, "startedAt": run.started_ms}),
            "label": label,
            "model": row.model_override or row.model,
            "thinkingLevel": row.thinking_level,
            "contextTokens": row.context_tokens,
            "totalTokens": row.total_tokens,
            "filledPercent": row.filled,
            "abortedLastRun": row.aborted_last_run or None,
        }
    )
    return answer | _changes(service, row.key, given.changes_since), AccessSummary(
        keys=(key,), judged=target.judged
    )


def _changes(service: Service, key: str, since: int | None) -> JsonObject:
    """Return the version of a session's stream, and its events behind an earlier one: no words, kinds and runs alone."""
    stream = session_stream(key)
    newest = service.log.stream(stream, backwards=True, limit=1)
    version = newest[0].version if newest else 0
    if since is None:
        return {"stateVersion": version}
    if since > version:
        raise invalid("changesSince", f"{since} has not come yet, give a stateVersion of an earlier answer")
    found = service.log.stream(stream, after=max(since, version - MOST_CHANGES), limit=MOST_CHANGES)
    gap = {"historyGap": True} if version - since > MOST_CHANGES else {}
    return {"stateVersion": version, "changes": [_change(one) for one in found]} | gap


def _change(recorded: Recorded) -> JsonObject:
    kind = topic_of(recorded.event).rpartition(".")[0]
    return {"type": kind, "version": recorded.version, "at": recorded.time} | present(
        {"runId": run_named(recorded.event)}
    )
