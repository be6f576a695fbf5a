"""Writes a session as an entry of a `sessions.json` (EXP-1). Pure."""

from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonObject, is_object, present
from intersession_events.facts import Route
from intersession_projections.copies.openclaw_state.lives import Life
from intersession_projections.views.sessions.row import SessionRow

_OF_A_GENERATION: Final = frozenset(
    {
        "abortCutoffMessageSid",
        "abortCutoffTimestamp",
        "cacheRead",
        "cacheWrite",
        "claudeCliSessionId",
        "cliSessionIds",
        "compactionCount",
        "inputTokens",
        "memoryFlushAt",
        "memoryFlushCompactionCount",
        "outputTokens",
        "systemPromptReport",
        "totalTokensFresh",
    }
)
"""Fields that another system keeps of one transcript: they say nothing of the next."""


def kept_entry(life: Life) -> JsonObject:
    """Return another system's entry for the session's current generation, `{}` if there is none."""
    kept = life.kept
    if kept is None or kept.row.session_id != life.row.session_id:
        return {}
    return _object(kept.source)


def entry_of(life: Life, *, session_id: str | None, session_file: str | None) -> JsonObject:
    """Return the entry of a session. An imported entry keeps all fields that have not changed since.

    `session_id` is the id to write, None for that of the entry that is kept; `session_file` is None without a file.
    """
    now = _fields(life.row)
    if life.kept is None:
        entry, changed = {}, now
    else:
        entry, before = _object(life.kept.source), _fields(life.kept.row)
        # Lineage is what was found out about the session, and its entry need not say it.
        lineage = {name for name in ("spawnedBy", "spawnDepth") if name not in entry}
        changed = {name: value for name, value in now.items() if value != before[name] or name in lineage}
        if life.kept.row.session_id != life.row.session_id:
            entry = {name: value for name, value in entry.items() if name not in _OF_A_GENERATION}
    changed["sessionFile"] = session_file
    if session_id is not None:
        changed["sessionId"] = session_id
    gone = {name for name, value in changed.items() if value is None}
    return {name: value for name, value in (entry | changed).items() if name not in gone}


def route_as_object(route: Route) -> JsonObject:
    """Return a route as the original writes it."""
    whole = {"channel": route.channel, "to": route.to, "accountId": route.account, "threadId": route.thread}
    return present(whole)


def _fields(row: SessionRow) -> JsonObject:
    """Return a row's fields by the original's names; None for missing ones."""
    provider, model = _provider_and_model(row.model)
    provider_override, model_override = _provider_and_model(row.model_override)
    route = row.route
    return {
        "updatedAt": row.updated_at,
        "chatType": row.chat_type,
        "channel": row.channel,
        "label": row.label,
        "displayName": row.display_name,
        "spawnedBy": row.spawned_by,
        "spawnDepth": row.spawn_depth or None,
        "systemSent": row.system_sent or None,
        "abortedLastRun": row.aborted_last_run or None,
        "thinkingLevel": row.thinking_level,
        "verboseLevel": row.verbose_level,
        "reasoningLevel": row.reasoning_level,
        "elevatedLevel": row.elevated_level,
        "responseUsage": row.response_usage,
        "groupActivation": row.group_activation,
        "queueMode": row.queue_mode,
        "sendPolicy": row.send_policy,
        "providerOverride": provider_override,
        "modelOverride": model_override,
        "modelProvider": provider,
        "model": model,
        "contextTokens": row.context_tokens,
        "totalTokens": row.total_tokens,
        "lastChannel": row.last_channel,
        "lastTo": row.last_to,
        "lastAccountId": route.account if route is not None else None,
        "lastThreadId": route.thread if route is not None else None,
        "deliveryContext": None if route is None else route_as_object(route),
    }


def _provider_and_model(name: str | None) -> tuple[str | None, str | None]:
    if name is None:
        return None, None
    provider, _, model = name.partition("/")
    return (provider, model) if provider and model else (None, name)


def _object(source: str) -> JsonObject:
    try:
        values = msgspec.json.decode(source)
    except (ValueError, RecursionError):
        return {}
    return values if is_object(values) else {}
