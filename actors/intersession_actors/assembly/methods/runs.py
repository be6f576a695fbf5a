"""The methods that start, wait for and stop runs: `agent`, `agent.wait`, `chat.send`, `chat.abort` (GATE)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_actors.assembly.methods.params import (
    MAX_WAIT_MS,
    AgentParams,
    Busy,
    ChatAbortParams,
    ChatSendParams,
    WaitParams,
)
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.calls.service import asking
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.deliveries import route_of
from intersession_actors.calls.service.pending import Pending, Result, afinished
from intersession_actors.calls.service.run_waits import RunDoor, unknown_run
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.attachments.contents import storing
from intersession_actors.outside.attachments.message_files import MessageFile, check_method_files
from intersession_actors.owners.session.commands import Abort, Enqueue, message_for
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.spawning import THINKING_LEVELS
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_events.basics import ids
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.facts import FileBlock, Route, RunAborted, RunQueued, SessionPatched, same_request
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import KeyUse
from intersession_projections.views.sessions.row import SessionRow

STOP_WORDS: Final = frozenset({"stop", "abort", "/stop", "/abort"})
"""A `chat.send` that is nothing but one of these stops what runs, as in the original."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A requested run. `timeout_ms` None is the configured limit."""

    method: str
    key: SessionKey
    text: str
    idempotency_key: str
    busy: Busy = "queue"
    route: Route | None = None
    timeout_ms: int | None = None
    thinking: str | None = None
    system_context: str = ""
    label: str | None = None
    files: tuple[MessageFile, ...] = ()
    beside: Result = {}
    """What else was said that makes it another message under the same key: fields of the call, by name."""


_SAID_BESIDE: Final = (
    "thinking",
    "deliver",
    "channel",
    "to",
    "account_id",
    "thread_id",
    "reply_channel",
    "reply_to",
    "reply_account_id",
    "extra_system_prompt",
    "label",
)


def _beside(given: AgentParams | ChatSendParams, files: tuple[MessageFile, ...]) -> Result:
    """Return what a call says beside its message; how long and for whom its run waits is not part of that."""
    said = {name: getattr(given, name, None) for name in _SAID_BESIDE}
    beside = {name: value for name, value in said.items() if value not in {None, False}}
    return beside | ({"attachments": [file.block for file in files]} if files else {})


def _is_same(known: KeyUse, key: str, text: str, beside: Result) -> bool:
    """Whether a call makes the same request."""
    return same_request(known.digests, (asking.digest_of([key, text, beside]),))


class GatewayRuns:
    """Runs for the gateway's callers."""

    def __init__(self, service: Service, targets: Targets, runs: RunDoor) -> None:
        self._service = service
        self._targets = targets
        self._runs = runs

    def agent(self, call: Call, params: JsonMapping) -> Result:
        """Queue a run; return the accepted frame."""
        given = read_arguments(AgentParams, params)
        files = check_method_files(given.attachments, self._service.config.files)
        _check_text(given.message, has_files=bool(files))
        named = given.session_key if given.session_key is not None else given.session_id
        before = self._told_before(call, "agent", given, files, named=named, agent_id=given.agent_id)
        if before is not None:
            return _accepted_frame(before)
        key = self._targets.opened(call, named, given.agent_id)
        if given.session_key is not None and given.session_id is not None:
            self._check_same(key, given.session_id)
        order = Order(
            method="agent",
            key=key,
            text=given.message,
            idempotency_key=given.idempotency_key,
            busy=given.busy,
            route=self._route(call, given, key) if given.deliver else None,
            timeout_ms=None if given.timeout is None else given.timeout * 1000,
            thinking=_thinking(given.thinking),
            system_context=given.extra_system_prompt or "",
            label=given.label,
            files=files,
            beside=_beside(given, files),
        )
        run_id, known = self._queue(call, order)
        found = known or self._service.runs.get(run_id)
        accepted_ms = self._service.clock.now_ms() if found is None else found.queued_ms
        return {"runId": run_id, "status": "accepted", "acceptedAt": accepted_ms, "sessionKey": str(key)}

    def chat_send(self, call: Call, params: JsonMapping) -> Result:
        """Queue a run that answers a chat's message: `started`; repeated with the same key, its present state."""
        given = read_arguments(ChatSendParams, params)
        files = check_method_files(given.attachments, self._service.config.files)
        _check_text(given.message, has_files=bool(files))
        if given.message.strip().lower() in STOP_WORDS:
            return self.chat_abort(call, {"sessionKey": given.session_key})
        before = self._told_before(call, "chat.send", given, files, named=given.session_key)
        if before is not None:
            return _started_frame(before)
        key = self._targets.opened(call, given.session_key)
        row = self._service.sessions.get(str(key))
        order = Order(
            method="chat.send",
            key=key,
            text=given.message,
            idempotency_key=given.idempotency_key,
            busy=given.busy,
            route=route_of(row, key) if given.deliver else None,
            timeout_ms=given.timeout_ms,
            thinking=_thinking(given.thinking),
            files=files,
            beside=_beside(given, files),
        )
        run_id, known = self._queue(call, order)
        if known is not None:
            return _started_frame(known)
        return {"runId": run_id, "status": "started", "sessionKey": str(key)}

    def begin_wait(self, call: Call, params: JsonMapping) -> Result | Pending:
        """Begin to wait for a run (GATE-3)."""
        given = read_arguments(WaitParams, params)
        return self._runs.begin(self._targets.run(call, given.run_id).run_id, given.timeout_ms / 1000)

    async def await_end(self, run_id: str, threads: DoorThreads) -> RunOutcome:
        """Return a run once it has ended, without a time limit."""
        while True:
            begun = await threads.run(lambda: self._runs.begin(run_id, MAX_WAIT_MS / 1000))
            await afinished(begun, threads)
            outcome = await threads.run(lambda: self._service.runs.get(run_id))
            if outcome is None:
                raise unknown_run(run_id)
            if outcome.ended:
                return outcome

    def chat_abort(self, call: Call, params: JsonMapping) -> Result:
        """Stop a run, or all of a session (GATE-5)."""
        given = read_arguments(ChatAbortParams, params)
        key, by = str(self._targets.seen(call, given.session_key, "status").key), call.caller.name
        if given.run_id is None:
            # One decision: what waits must not begin because what ran was stopped.
            ended = asking.ask_session(self._service, key, Abort(run_id=None, by=by)).recorded
            stopped = [item.event.run_id for item in ended if isinstance(item.event, RunAborted)]
        else:
            run = self._targets.run(call, given.run_id)
            stopped = [run.run_id] if run.session_key == key and self._runs.abort(run.run_id, by=by) else []
        return {"ok": True, "aborted": bool(stopped), "runIds": stopped}

    def _check_same(self, key: SessionKey, session_id: str) -> None:
        """Refuse a session id that is not the key's: the original's command line gives both where it knows both."""
        row = self._service.sessions.get(str(key))
        if row is None or row.session_id != session_id:
            raise invalid("sessionId", "it is not the session that sessionKey names, give one of the two")

    def _route(self, call: Call, given: AgentParams, key: SessionKey) -> Route | None:
        channel, to = given.reply_channel or given.channel, given.reply_to or given.to
        if (channel is None) != (to is None):
            raise invalid("channel" if channel is None else "to", "give channel and to together")
        if channel is not None and to is not None:
            account = given.reply_account_id or given.account_id
            named = Route(channel=channel, to=to, account=account, thread=given.thread_id)
            return self._targets.route(call, key, named, field="to" if given.reply_to is None else "replyTo")
        route = route_of(self._service.sessions.get(str(key)), key)
        if route is None and not given.best_effort_deliver:
            raise invalid(
                "deliver", "the session has no route to deliver to, give channel and to, or leave it out"
            )
        return route

    def _queue(self, call: Call, order: Order) -> tuple[str, RunOutcome | None]:
        """Return the run's id, and how far it got where the same call was made before."""
        service, key = self._service, str(order.key)
        row = service.sessions.get(key)
        run_id = asking.run_id_of(service, call, method=order.method, idempotency_key=order.idempotency_key)
        known = self._known(call, order, run_id)
        if known is not None:
            return run_id, known
        queued = RunQueued(
            run_id=run_id,
            session_id="",
            step="message",
            answers=ids.derive(service.log.log_id, "message", run_id),
            system_context=order.system_context,
            timeout_ms=service.config.run_timeout_ms() if order.timeout_ms is None else order.timeout_ms,
            route=order.route,
            caller=call.caller.name,
            idempotency_key=order.idempotency_key,
            request_digests=(asking.digest_of([key, order.text, order.beside]),),
            thinking=order.thinking,
        )
        asked = asking.MessageRequest(run_id, key, tool=order.method, field="message")
        with (
            asking.reserving(service, call.caller, asked) as origin,
            storing(service.log, order.files) as files,
        ):
            enqueue = self._enqueue(call, order, queued, origin, row, files=files)
            accepted = asking.ask_session(service, key, enqueue)
        if accepted.recorded:
            return run_id, None
        return run_id, self._known(call, order, run_id)  # the same key raced with itself, and was second

    def _told_before(
        self,
        call: Call,
        method: str,
        given: AgentParams | ChatSendParams,
        files: tuple[MessageFile, ...],
        *,
        named: str | None,
        agent_id: str | None = None,
    ) -> RunOutcome | None:
        """Return the run of the same call, made before by the same caller, whatever has become of its session (SEND-11).

        None too where another session was meant: what follows says what is wrong with that.
        """
        service, key = self._service, given.idempotency_key
        known = service.runs.by_idempotency_key(call.caller.name, key)
        run = None if known is None else service.runs.get(known.run_id)
        if run is None or known is None:
            return None
        session = service.reader.parse(run.session_key)
        same = (
            known.run_id == asking.run_id_of(service, call, method=method, idempotency_key=key)
            and _is_same(known, run.session_key, given.message, _beside(given, files))
            and self._targets.is_named(session, named, agent_id)
        )
        return run if same and call.caller.reaches(session) else None

    def _known(self, call: Call, order: Order, run_id: str) -> RunOutcome | None:
        """Return the run that the caller's key stands for, as far as it got; None where it was not used yet (SEND-11).

        Raises:
            ToolRefused: the key was used for another message, session or method (`idempotency_conflict`).
        """
        known = self._service.runs.by_idempotency_key(call.caller.name, order.idempotency_key)
        if known is None:
            return None
        same = _is_same(known, str(order.key), order.text, order.beside)
        if not same or known.run_id != run_id:
            raise asking.key_conflict("message")
        return self._service.runs.get(run_id)

    def _enqueue(
        self,
        call: Call,
        order: Order,
        queued: RunQueued,
        origin: asking.Origin,
        row: SessionRow | None,
        *,
        files: Sequence[FileBlock],
    ) -> Enqueue:
        service = self._service
        said_by = origin.provenance("operator")
        label = order.label
        return Enqueue(
            budget=origin.budget,
            message=message_for(queued, order.text, said_by, service.clock.now_ms(), files),
            queue=queued,
            opening=self._targets.opening(call, order.key),
            session_id=None if row is None or row.archived is not None else row.session_id,
            patch=None if label is None else SessionPatched(values={"label": label}, by=call.caller.name),
            check_policy=True,
            at_most=1 if order.busy == "reject" else service.config.runs.inbox_max,
            interrupts=call.caller.name if order.busy == "interrupt" else None,
            causation=origin.causation,
        )


def _accepted_frame(run: RunOutcome) -> Result:
    return {
        "runId": run.run_id,
        "status": "accepted",
        "acceptedAt": run.queued_ms,
        "sessionKey": run.session_key,
    }


def _started_frame(run: RunOutcome) -> Result:
    status = run.status if run.ended else "in_flight"
    return {"runId": run.run_id, "status": status, "sessionKey": run.session_key}


def _check_text(text: str, *, has_files: bool) -> None:
    if not text.strip() and not has_files:
        raise invalid("message", "blank, write what the agent should read")
    if "\0" in text:
        raise invalid("message", "it has a NUL character, take it out")


def _thinking(level: str | None) -> str | None:
    if level is not None and level not in THINKING_LEVELS:
        raise ToolRefused(
            "invalid_thinking", f"thinking: there is no such level, use one of {', '.join(THINKING_LEVELS)}"
        )
    return level
