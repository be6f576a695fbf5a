"""The gateway's methods from Python: the same surface as over a wire (GATE)."""

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final

import msgspec

from intersession_actors.commands import AddMessage, Archive, Enqueue, Patch, Reset
from intersession_actors.core import Core
from intersession_actors.doors import ChatDoor, RunDoor
from intersession_actors.errors import ToolRefused
from intersession_actors.gateway_params import (
    AgentParams,
    AgentsListParams,
    ChatAbortParams,
    ChatHistoryParams,
    ChatInjectParams,
    ChatSendParams,
    KeyParams,
    NoParams,
    PatchParams,
    ResetParams,
    ResolveParams,
    SendParams,
    SessionsListParams,
    WaitParams,
)
from intersession_actors.tools.agents_list import agents_list
from intersession_actors.tools.arguments import invalid, read_arguments
from intersession_actors.tools.resolve import Resolved, resolve_label, resolve_target
from intersession_actors.tools.sessions_list import sessions_list
from intersession_actors.tools.tool_call import Caller
from intersession_events import ids
from intersession_events.keys import KeyReference, SessionKey, refer
from intersession_events.message import Message, Provenance, TextBlock
from intersession_events.run import RunQueued
from intersession_events.session import Route

Result = dict[str, Any]


class Gateway:
    """The operator's methods: `gateway.call("agent.wait", {"runId": …})`."""

    def __init__(self, core: Core, runs: RunDoor, chat: ChatDoor, doors: Executor) -> None:
        self._core = core
        self._runs = runs
        self._chat = chat
        self._doors = doors
        self._methods: Final[Mapping[str, Callable[[Mapping[str, Any]], Result]]] = {
            "agent": self._agent,
            "agent.wait": self._wait,
            "agents.list": self._agents_list,
            "chat.abort": self._chat_abort,
            "chat.history": self._chat_history,
            "chat.inject": self._chat_inject,
            "chat.send": self._chat_send,
            "health": self._health,
            "send": self._send,
            "sessions.delete": self._delete,
            "sessions.list": self._list,
            "sessions.patch": self._patch,
            "sessions.reset": self._reset,
            "sessions.resolve": self._resolve,
            "status": self._health,
        }

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of all methods."""
        return tuple(self._methods)

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Result:
        """Call a method and return its result. A refusal is a result: `{status, code, error}`."""
        try:
            found = self._methods.get(method)
            if found is None:
                raise invalid(
                    "method", f"there is no {method[:128]!r}, use one of {', '.join(self._methods)}"
                )
            return found(params or {})
        except ToolRefused as refused:
            return dict(refused.as_result())

    async def acall(self, method: str, params: Mapping[str, Any] | None = None) -> Result:
        """Call a method without blocking the event loop."""
        import asyncio  # noqa: PLC0415 - only async hosts need it

        loop = asyncio.get_running_loop()
        if method == "agent.wait":
            try:
                given = read_arguments(WaitParams, params or {})
                return await self._runs.await_run(given.run_id, given.timeout_ms / 1000, self._doors)
            except ToolRefused as refused:
                return dict(refused.as_result())
        return await loop.run_in_executor(self._doors, self.call, method, params)

    # --- runs

    def _agent(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(AgentParams, params)
        key = self._target(given.session_key, given.agent_id)
        route = None
        if given.deliver:
            route = self._core.delivery(self._core.sessions.get(str(key)), key)
            if route is None:
                raise invalid("deliver", "the session has no route to deliver to, leave it out")
        timeout_ms = self._core.config.run_timeout_ms() if given.timeout is None else given.timeout * 1000
        return self._enqueue(
            "agent", key, given.message, given.idempotency_key, route=route, timeout_ms=timeout_ms
        )

    def _chat_send(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(ChatSendParams, params)
        key = self._target(given.session_key, None)
        route = self._core.delivery(self._core.sessions.get(str(key)), key) if given.deliver else None
        timeout_ms = self._core.config.run_timeout_ms() if given.timeout_ms is None else given.timeout_ms
        return self._enqueue(
            "chat.send", key, given.message, given.idempotency_key, route=route, timeout_ms=timeout_ms
        )

    def _enqueue(
        self,
        method: str,
        key: SessionKey,
        text: str,
        idempotency_key: str,
        *,
        route: Route | None,
        timeout_ms: int,
    ) -> Result:
        core = self._core
        if not text.strip():
            raise invalid("message", "blank, write what the agent should read")
        log_id, now = core.log.log_id, core.clock.now_ms()
        run_id = core.run_id(caller="operator", method=method, key=idempotency_key, calling=None, ordinal=0)
        digest = hashlib.sha256(msgspec.json.encode([str(key), text])).hexdigest()
        known = core.runs.by_idempotency_key("operator", idempotency_key)
        if known is not None and (known.digest != digest or known.run_id != run_id):
            raise ToolRefused(
                "idempotency_conflict", "idempotencyKey: it was used for another message, use a new key"
            )
        accepted = {"runId": run_id, "status": "accepted", "acceptedAt": now, "sessionKey": str(key)}
        if known is not None:
            outcome = core.outcome(run_id)
            return accepted | {"acceptedAt": outcome.queued_ms if outcome is not None else now}
        message = Message(
            id=ids.derive(log_id, "message", run_id),
            role="user",
            content=text,
            timestamp=now,
            provenance=Provenance(kind="external_user", source_channel="operator"),
        )
        queued = RunQueued(
            run_id=run_id,
            session_id="",
            step="message",
            message_id=message.id,
            timeout_ms=timeout_ms,
            route=route,
            caller="operator",
            idempotency_key=idempotency_key,
            request_digest=digest,
            chain=(str(key),),
        )
        core.ask_session(
            str(key),
            Enqueue(
                message=message,
                queue=queued,
                opening=self._opening(key),
                check_policy=True,
                at_most=core.config.runs.inbox_max,
                correlation=run_id,
            ),
        )
        return accepted

    def _wait(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(WaitParams, params)
        return self._runs.wait(given.run_id, given.timeout_ms / 1000)

    def _chat_abort(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(ChatAbortParams, params)
        target = self._seen(given.session_key, "status")
        runs = [run for run in self._core.runs.open_runs() if run.session_key == str(target.key)]
        if given.run_id is not None:
            runs = [run for run in runs if run.run_id == given.run_id]
        stopped = [run.run_id for run in runs if self._runs.abort(run.run_id, by="operator")]
        return {"ok": True, "aborted": bool(stopped), "runIds": stopped}

    # --- transcripts

    def _chat_history(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(ChatHistoryParams, params)
        found = self._seen(given.session_key, "history")
        row = found.row
        session_id = found.session_id or ""
        limit = min(max(given.limit or 200, 1), 1000)
        page = self._core.reader.history.messages(str(found.key), session_id, limit=limit, include_tools=True)
        return {
            "sessionKey": found.shown,
            "sessionId": session_id,
            "messages": list(page.messages),
            "thinkingLevel": row.thinking_level if row is not None else None,
            "verboseLevel": row.verbose_level if row is not None else None,
        }

    def _chat_inject(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(ChatInjectParams, params)
        found = self._seen(given.session_key, "send")
        if found.row is None:
            raise ToolRefused("not_visible", f"sessionKey: session not visible: {given.session_key}")
        core = self._core
        text = f"[{given.label}] {given.message}" if given.label else given.message
        message = Message(
            id=core.new_id(),
            role="assistant",
            content=(TextBlock(text=text),),
            timestamp=core.clock.now_ms(),
            model="gateway-injected",
            provenance=Provenance(kind="internal_system", source_channel="operator"),
        )
        core.ask_session(str(found.key), AddMessage(message=message, check_policy=True))
        return {"ok": True, "messageId": message.id}

    # --- sessions

    def _list(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(SessionsListParams, params)
        arguments = {name: value for name, value in msgspec.to_builtins(given).items() if value is not None}
        answer, _summary = sessions_list(self._core.reader, self._core.requester(None), arguments)
        return answer

    def _resolve(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(ResolveParams, params)
        typed = [value for value in (given.key, given.session_id, given.label) if value is not None]
        if len(typed) != 1:
            raise invalid("key", "give exactly one of key, sessionId, label")
        if given.label is not None:
            found = resolve_label(
                self._core.reader, self._core.requester(None), given.label, given.agent_id, "status"
            )
        else:
            found = self._seen(typed[0], "status")
        return {"ok": True, "key": str(found.key)}

    def _patch(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(PatchParams, params)
        key = self._target(given.key, None)
        fields = {
            name: value
            for name, value in msgspec.to_builtins(given).items()
            if name != "key" and name in params
        }
        values = {name: str(value) for name, value in fields.items() if value is not None}
        cleared = tuple(name for name, value in fields.items() if value is None)
        if values.get("sendPolicy", "allow") not in {"allow", "deny"}:
            raise invalid("sendPolicy", "give allow, deny, or null to inherit")
        self._core.ask_session(
            str(key), Patch(values=values, cleared=cleared, by="operator", opening=self._opening(key))
        )
        row = self._core.sessions.get(str(key))
        return {"ok": True, "key": str(key), "entry": msgspec.to_builtins(row)}

    def _reset(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(ResetParams, params)
        found = self._seen(given.key, "status")
        session_id = self._core.new_id()
        self._core.ask_session(str(found.key), Reset(session_id=session_id, reason=given.reason))
        return {"ok": True, "key": str(found.key), "sessionId": session_id}

    def _delete(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(KeyParams, params)
        found = self._seen(given.key, "status")
        if found.key.is_main:
            raise ToolRefused("main_session", f"key: {found.shown} is a main session, reset it instead")
        self._core.ask_session(str(found.key), Archive(reason="deleted"))
        return {"ok": True, "key": str(found.key), "deleted": True}

    # --- the rest

    def _send(self, params: Mapping[str, Any]) -> Result:
        given = read_arguments(SendParams, params)
        core = self._core
        if not given.message.strip():
            raise invalid("message", "blank, write what should be sent")
        key = self._target(given.session_key, None)
        run_id = core.run_id(
            caller="operator", method="send", key=given.idempotency_key, calling=None, ordinal=0
        )
        append = core.delivery_of(
            key=key,
            route=Route(channel=given.channel, to=given.to, account=given.account_id, thread=given.thread_id),
            text=given.message,
            run_id=run_id,
            purpose="send",
        )
        core.deliver(append)
        delivery_id = append.stream.partition(":")[2]
        return {"runId": run_id, "status": "accepted", "messageId": delivery_id, "channel": given.channel}

    def _agents_list(self, params: Mapping[str, Any]) -> Result:
        read_arguments(AgentsListParams, params)
        caller = Caller(key=None, name="operator", requester=self._core.requester(None), run=None, ordinal=0)
        return agents_list(self._core, caller, {}).result

    def _health(self, params: Mapping[str, Any]) -> Result:
        read_arguments(NoParams, params)
        core = self._core
        degraded = core.supervisor.degraded
        return {
            "ok": not degraded,
            "ts": core.clock.now_ms(),
            "logId": core.log.log_id,
            "position": core.log.head(),
            "openRuns": len(core.runs.open_runs()),
            "degraded": degraded,
        }

    # --- whom it is about

    def _seen(self, text: str, operation: Any) -> Resolved:
        return resolve_target(self._core.reader, self._core.requester(None), text, operation)

    def _target(self, text: str | None, agent_id: str | None) -> SessionKey:
        """Return the session that the operator means, which is opened if it is one of a configured agent (KEY-9)."""
        core = self._core
        if text is None:
            agent = agent_id or core.config.default_agent
            if agent not in core.config.agent_ids:
                raise ToolRefused(
                    "unknown_agent",
                    f"agentId: {agent[:128]!r} is not configured, use one of {', '.join(core.config.agent_ids)}",
                )
            return core.main_key(agent)
        try:
            return self._seen(text, "send").key
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
            reference = refer(
                text,
                requester_agent=None,
                default_agent=core.config.default_agent,
                main_key=core.config.session.main_key,
                scope=core.config.session.scope,
            )
            if not isinstance(reference, KeyReference) or reference.key.agent_id not in core.config.agent_ids:
                raise
            return reference.key

    def _opening(self, key: SessionKey) -> Any:
        return self._core.opening(key, by="operator")
