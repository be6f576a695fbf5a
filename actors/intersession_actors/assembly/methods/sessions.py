"""The methods on sessions: `sessions.*`, `chat.history`, `chat.inject` (GATE-1, GATE-2)."""

from collections.abc import Mapping
from typing import Final

import msgspec

from intersession_actors.assembly.methods.params import (
    ChatHistoryParams,
    ChatInjectParams,
    CompactParams,
    DeleteParams,
    PatchParams,
    PreviewParams,
    ResetParams,
    ResolveParams,
    SessionsListParams,
)
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.calls.service.arguments import bounded, read_arguments
from intersession_actors.calls.service.asking import ask_session, asked_within, digest_of
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.resolve import Resolved, TargetRefused, resolve_label
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.sessions_list import DEFAULT_LIMIT, MAX_LIMIT, list_sessions
from intersession_actors.owners.session.commands import AddMessage, Archive, Compact, Patch, Reset
from intersession_actors.rules.errors import UNREADABLE, ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.access import not_visible
from intersession_actors.rules.policy.spawning import THINKING_LEVELS
from intersession_actors.rules.policy.windows import find_model, model_names, reckon
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonMapping, present
from intersession_events.facts import ERASED, Event, Message, MessageRecorded, Provenance, TextBlock, text_of
from intersession_projections.views.sessions.row import SessionRow

MOST_PREVIEWS: Final = 64
MOST_PREVIEWED: Final = 50
_PREVIEW_CHARS: Final = 240
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "elevated_level": "kept and told to the agent; it grants nothing here",
    "response_usage": "kept and told to the agent; nothing is added to its replies here",
    "group_activation": "kept and told to the agent; here the host decides which messages of a group it hands over",
}
"""What callers are told of settings of the original that only an agent can make something of."""


class GatewaySessions:
    """Sessions for the gateway's callers."""

    def __init__(self, service: Service, targets: Targets) -> None:
        self._service = service
        self._targets = targets

    # --- transcripts

    def chat_history(self, call: Call, params: JsonMapping) -> Result:
        """Return the last messages of a session, uncut (HIST-3)."""
        given = read_arguments(ChatHistoryParams, params)
        found = self._targets.seen_or_main(call, given.session_key)
        row = found.row
        session_id = found.session_id or ""
        limit = bounded(given.limit, "limit", 1, 1000, default=200)
        page = self._service.reader.history.messages(
            str(found.key), session_id, limit=limit.value, include_tools=True
        )
        return {
            **limit.told,
            "sessionKey": str(found.key),
            "sessionId": found.session_id,
            "messages": list(page.messages),
            "thinkingLevel": row.thinking_level if row is not None else None,
            "verboseLevel": row.verbose_level if row is not None else None,
        }

    def chat_inject(self, call: Call, params: JsonMapping) -> Result:
        """Record an assistant message without a run; once, however often the run that calls this is retried (SEND-13)."""
        given = read_arguments(ChatInjectParams, params)
        found = self._targets.seen(call, given.session_key, "send")
        if found.row is None:
            raise ToolRefused("not_visible", not_visible(given.session_key))
        service = self._service
        text = f"[{given.label}] {given.message}" if given.label else given.message

        def is_same(event: Event) -> bool:
            return (
                isinstance(event, MessageRecorded)
                and event.session_id == found.session_id
                and text_of(event.message) in {text, ERASED}
            )

        def words() -> str:
            return digest_of([str(found.key), text])

        within = asked_within(service, call.caller, "chat.inject", words, is_same)
        message_id = service.new_id() if within is None else within[0]
        if (
            within is not None
            and within[1]
            and service.sessions.versions_of_message(str(found.key), message_id)
        ):
            return {"ok": True, "messageId": message_id}
        message = Message(
            id=message_id,
            role="assistant",
            content=(TextBlock(text=text),),
            timestamp=service.clock.now_ms(),
            model="gateway-injected",
            provenance=Provenance(
                kind="internal_system", source_channel="operator", edited_by=call.caller.name
            ),
        )
        ask_session(
            service,
            str(found.key),
            AddMessage(message=message, session_id=found.session_id, check_policy=True),
        )
        return {"ok": True, "messageId": message.id}

    # --- the list

    def list(self, call: Call, params: JsonMapping) -> Result:
        """List sessions, as `sessions_list` does for the operator, with the original's own additions.

        Keys are whole, as everywhere in the gateway: a client finds the session that an event names by them.
        """
        given = read_arguments(SessionsListParams, params)
        parent = None
        if given.spawned_by is not None:
            parent = str(self._targets.seen(call, given.spawned_by, "status", field="spawnedBy").key)
        arguments: Result = {
            "activeMinutes": given.active_minutes,
            "label": given.label,
            "agentId": given.agent_id,
            "search": given.search,
            "messageLimit": 1 if given.include_last_message else 0,
        }
        limit = bounded(given.limit, "limit", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
        reader, caller = self._service.reader, call.caller
        answer, call.summary = list_sessions(
            reader,
            call.requester,
            present(arguments | {"limit": limit.value}),
            parent=parent,
            within=None if caller.is_operator else lambda key: caller.reaches(reader.parse(key)),
        )
        rows: list[Result] = answer["sessions"]
        of_ids = self._service.sessions.of_session_ids([row["sessionId"] for row in rows])
        for row, named in zip(rows, of_ids, strict=True):
            if named is not None:
                row["key"], full = named
                if full is not None:
                    row.update(_original_fields(full, lineage="spawnedBy" in row))
            if given.include_last_message:
                last = "".join(map(_text, row.pop("messages", ())[-1:]))
                row["lastMessagePreview"] = _cut(last, _PREVIEW_CHARS)
            title = row.get("displayName") or row.get("label")
            if given.include_derived_titles and title:
                row["derivedTitle"] = title
        config, default = self._service.config, self._targets.default_agent(call)
        return {
            "ts": self._service.clock.now_ms(),
            "defaults": {
                **_model_parts(config.model_of(default)),
                "contextTokens": reckon(config, default, None, None).context_tokens,
            },
            **answer,
            **limit.told,
        }

    def preview(self, call: Call, params: JsonMapping) -> Result:
        """Return the last messages of several sessions; a missing session is `missing`."""
        given = read_arguments(PreviewParams, params)
        limit = bounded(given.limit, "limit", 1, MOST_PREVIEWED)
        most = bounded(given.max_chars, "maxChars", 1, 2000)
        keys = bounded(len(given.keys), "keys", 0, MOST_PREVIEWS)
        previews = [self._preview(call, key, limit.value, most.value) for key in given.keys[: keys.value]]
        told = limit.told | most.told | keys.told
        return {"ts": self._service.clock.now_ms(), "previews": previews} | told

    def _preview(self, call: Call, key: str, limit: int, most_chars: int) -> Result:
        try:
            found = self._targets.seen(call, key, "history", field="key")
        except ToolRefused as refused:
            if isinstance(refused, TargetRefused):
                call.was_denied(key, refused.code, refused.judged)
            return {
                "key": key,
                "status": "missing" if refused.code == "not_visible" else "error",
                "items": [],
            }
        try:
            page = self._service.reader.history.messages(
                str(found.key), found.session_id or "", limit=limit, include_tools=False
            )
        except UNREADABLE as error:  # of this session alone
            self._service.store_failed(error)
            return {"key": key, "status": "error", "items": []}
        texts = [(message["role"], _text(message)) for message in page.messages]
        items = [{"role": role, "text": _cut(text, most_chars)} for role, text in texts if text]
        return {"key": key, "status": "ok" if items else "empty", "items": items}

    def resolve(self, call: Call, params: JsonMapping) -> Result:
        """Return the canonical key of a session, by key, id or label.

        Raises:
            ToolRefused: not exactly one of them is given (`invalid_request`), several sessions have the label
                (`ambiguous_label`), or the caller may see no such session (`not_visible`).
        """
        given = read_arguments(ResolveParams, params)
        typed = [value for value in (given.key, given.session_id, given.label) if value is not None]
        if len(typed) != 1:
            raise invalid("key", "give exactly one of key, sessionId, label")
        if given.label is not None:
            found = self._by_label(call, given.label, given.agent_id)
        else:
            field = "key" if given.key is not None else "sessionId"
            found = self._targets.seen(call, typed[0], "status", field=field)
        if given.spawned_by is not None:
            parent = self._targets.seen(call, given.spawned_by, "status", field="spawnedBy")
            if found.row is None or found.row.spawned_by != str(parent.key):
                raise ToolRefused("not_visible", not_visible(typed[0]))
        return {"ok": True, "key": str(found.key)}

    def _by_label(self, call: Call, label: str, agent_id: str | None) -> Resolved:
        """Return the session with a label; a limited credential hears of no other sessions."""
        service = self._service
        if call.caller.is_operator:
            return resolve_label(service.reader, call.requester, label, agent_id, "status")
        rows: list[SessionRow] = []
        for row in service.sessions.by_label(label, agent_id):
            if row.archived is not None:
                continue
            if call.caller.reaches(service.reader.parse(row.key)):
                rows.append(row)
            else:
                call.left_out()
        if len(rows) == 1:
            return self._targets.seen(call, rows[0].session_id, "status")
        if rows:
            keys = ", ".join(row.key for row in rows)
            raise ToolRefused("ambiguous_label", f"label: several sessions have it, name one by key: {keys}")
        raise ToolRefused("not_visible", not_visible(label))

    # --- changes

    def patch(self, call: Call, params: JsonMapping) -> Result:
        """Change settings of a session, and open it if it belongs to a configured agent (GATE-2)."""
        given = read_arguments(PatchParams, params)
        key = self._targets.opened(call, given.key, field="key")
        fields = {
            name: value
            for name, value in msgspec.to_builtins(given).items()
            if name != "key" and name in params
        }
        if given.model is not None:
            fields["model"] = self._model(given.model)
        if given.thinking_level is not None and given.thinking_level not in THINKING_LEVELS:
            raise ToolRefused(
                "invalid_thinking",
                f"thinkingLevel: there is no such level, use one of {', '.join(THINKING_LEVELS)}",
            )
        if given.label is not None:
            fields["label"] = self._label(call, given.label, str(key))
        values = present(fields)
        cleared = tuple(name for name, value in fields.items() if value is None)
        ask_session(
            self._service,
            str(key),
            Patch(
                values=values, cleared=cleared, by=call.caller.name, opening=self._targets.opening(call, key)
            ),
        )
        row = self._service.sessions.get(str(key))
        model = (
            row.model
            if row is not None and row.model is not None
            else self._service.config.model_of(key.agent_id)
        )
        notices = [
            f"{_camel(name)}: {said}" for name, said in _WITHOUT_EFFECT.items() if values.get(_camel(name))
        ]
        return {"ok": True, "key": str(key), "entry": _entry(row), "resolved": _model_parts(model)} | (
            {"notices": notices} if notices else {}
        )

    def reset(self, call: Call, params: JsonMapping) -> Result:
        """Begin a new generation under the same key."""
        given = read_arguments(ResetParams, params)
        found = self._targets.seen(call, given.key, "status", field="key")
        session_id = self._service.new_id()
        ask_session(
            self._service,
            str(found.key),
            Reset(
                session_id=session_id,
                previous=found.session_id,
                reason=given.reason,
                by=call.caller.name,
            ),
        )
        row = self._service.sessions.get(str(found.key))
        return {"ok": True, "key": str(found.key), "sessionId": session_id, "entry": _entry(row)}

    def compact(self, call: Call, params: JsonMapping) -> Result:
        """Have a session's older turns summarised, ahead of what waits there; the answer names the run (CTX-6)."""
        given = read_arguments(CompactParams, params)
        found = self._targets.seen(call, given.key, "status", field="key")
        service, key = self._service, str(found.key)
        run_id = (
            service.new_id()
            if given.idempotency_key is None
            else ids.derive(service.log.log_id, "compact", call.caller.name, key, given.idempotency_key)
        )
        by, wish = call.caller.name, given.instructions
        ask_session(service, key, Compact(run_id=run_id, by=by, wish=wish, session_id=found.session_id))
        return {"ok": True, "key": key, "runId": run_id, "status": "accepted"}

    def delete(self, call: Call, params: JsonMapping) -> Result:
        """Archive a session; a main session can't be archived, even before it is opened."""
        given = read_arguments(DeleteParams, params)
        self._check_deletable(call, given.key)
        try:
            found = self._targets.seen(call, given.key, "status", field="key")
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
            return {"ok": True, "key": given.key, "deleted": False, "archived": []}
        session_id = found.session_id
        archive = Archive(reason="deleted", by=call.caller.name, session_id=session_id)
        ask_session(self._service, str(found.key), archive)
        return {
            "ok": True,
            "key": str(found.key),
            "deleted": True,
            "archived": [] if session_id is None else [session_id],
        }

    def _check_deletable(self, call: Call, text: str) -> None:
        try:
            key = self._targets.opened(Call(call.caller, call.requester), text, field="key")
        except ToolRefused:
            return  # what comes next says why
        if key.is_main:
            raise ToolRefused("main_session", f"key: {key} is a main session, reset it instead")

    def _model(self, text: str) -> str:
        model = find_model(self._service.config, text)
        if model is None:
            known = ", ".join(model_names(self._service.config)) or "provider/id"
            raise ToolRefused("invalid_model", f"model: it is not configured, use one of {known}")
        return model

    def _label(self, call: Call, text: str, key: str) -> str:
        """Return a label that no other session of the agent has, as far as the caller may hear of them."""
        label = text.strip()
        if not label:
            raise invalid("label", "blank, give 1 to 64 characters, or null to clear it")
        parse = self._service.reader.parse
        agent_id = parse(key).agent_id
        others = (row for row in self._service.sessions.by_label(label, agent_id) if row.key != key)
        if any(call.caller.reaches(parse(row.key)) for row in others):
            raise invalid("label", f"another session of {agent_id!r} has it, use another one")
        return label


def _original_fields(row: SessionRow, *, lineage: bool) -> Result:
    """Return the fields of the original's rows that `sessions_list` lacks, or has in another form."""
    fields: Result = {
        "reasoningLevel": row.reasoning_level,
        "elevatedLevel": row.elevated_level,
        "responseUsage": row.response_usage,
        "groupActivation": row.group_activation,
        "queueMode": row.queue_mode,
        "spawnedBy": row.spawned_by if lineage else None,
    }
    return present(fields)


def _entry(row: SessionRow | None) -> Result | None:
    """Return a row as the original has its entries."""
    if row is None:
        return None
    fields: Result = msgspec.to_builtins(row)
    return {_camel(name): value for name, value in fields.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _model_parts(model: str | None) -> Result:
    """Return a model as the original names it: its provider, and its own name."""
    provider, slash, name = (model or "").partition("/")
    return {"modelProvider": provider if slash else None, "model": name if slash else model}


def _text(message: JsonMapping) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or () if block.get("type") == "text")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
