"""`sessions_send`: a message to another session, and, if requested, its reply (SEND)."""

from concurrent.futures import CancelledError
from functools import partial
from itertools import pairwise
from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.asking import (
    ask_flow,
    calling_row,
    digest_of,
    flow_begun_by,
    gone_on,
    keeping_refusals,
    key_conflict,
    opening,
    origin_of,
    run_id_of,
)
from intersession_actors.calls.service.callers import AccessSummary, Call
from intersession_actors.calls.service.deliveries import route_of
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.resolve import (
    Resolved,
    TargetRefused,
    resolve_label,
    resolve_main,
    resolve_target,
)
from intersession_actors.calls.service.run_waits import (
    GOES_ON,
    FirstReply,
    first_reply,
    goes_on,
    has_answer,
)
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.service.waits import Wait
from intersession_actors.owners.exchange.commands import OpenExchange
from intersession_actors.rules.errors import Judgement, ToolRefused
from intersession_actors.rules.gate import limits, values
from intersession_actors.rules.policy.access import Requester, effective_visibility
from intersession_actors.rules.policy.chain import WaitFor, Waits
from intersession_actors.rules.policy.judgements import denial_of
from intersession_actors.rules.policy.sending import Verdict, why_no_loop
from intersession_actors.rules.prompt.silence import spoken
from intersession_events.basics import ids
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import (
    ExchangeAccepted,
    RunEnd,
    SendRefused,
    SessionOpened,
    ready,
    same_request,
)
from intersession_projections.views.run_outcomes.outcome import EndOfRun, RunOutcome, end_of

DEFAULT_TIMEOUT_S: Final = 30


@ready
class SessionsSend(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments (SEND-1)."""

    message: limits.MessageText
    session_key: limits.KeyText | None = None
    label: limits.Label | None = None
    agent_id: limits.AgentId | None = None
    timeout_seconds: Annotated[
        float | None, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": limits.WAIT.most})
    ] = None
    idempotency_key: limits.IdempotencyKey | None = None


class Target(Resolved, frozen=True, kw_only=True):
    """Whom the message is for; `opening` where the session does not exist yet (SEND-2)."""

    session_id: str
    opening: SessionOpened | None = None


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """A send in progress: the call, its text, its timeout (seconds), its run, and its exchange."""

    service: Service
    call: Call
    message: str
    idempotency_key: str | None
    timeout: float
    run_id: str
    exchange_id: str
    digest: str
    asked: str | None = None
    """The digest of the call as it was typed, where it has an idempotency key."""


def send_message(service: Service, call: Call, arguments: Result) -> Result | Pending:
    """Send a message to another session and, unless `timeoutSeconds` is 0, wait for its reply.

    A result of `timeout` means that the caller stopped waiting: the run goes on, and its loop and announce still happen.

    Raises:
        ToolRefused: nothing was accepted.
    """
    given = read_arguments(SessionsSend, arguments)
    crash_point("S0")
    timeout = _timeout(given)
    if not given.message.strip():
        raise values.invalid("message", "blank, write what the other session should read")
    run_id = run_id_of(service, call, method="sessions_send", idempotency_key=given.idempotency_key)
    asked = (
        None
        if given.idempotency_key is None
        else digest_of([given.message, given.session_key, given.label, given.agent_id])
    )
    exchange_id = flow_begun_by(service, "exchange", run_id)
    again = _accepted_before(service, call, exchange_id, asked)
    target = _target(service, call, given) if again is None else _target_again(service, call, again)
    send = Send(
        service=service,
        call=call,
        message=given.message,
        idempotency_key=given.idempotency_key,
        timeout=timeout,
        run_id=run_id,
        exchange_id=exchange_id,
        digest=digest_of([str(target.key), given.message]),
        asked=asked,
    )
    known = _was_accepted(send)
    begun = None if known and has_answer(service, call.caller, run_id) else _begin_wait(send, target)
    wait = begun if isinstance(begun, Wait) else None
    if isinstance(begun, tuple) and not known:
        raise _closes_cycle(send, target, begun)
    # One that was accepted before is refused by nothing; it goes on, and nobody waits for it in a cycle.
    awaited = _Awaited(send, wait) if timeout > 0 and not isinstance(begun, tuple) else None
    try:
        if not known:
            target, known = _accept_now(send, given, target)
        if known and awaited is not None:
            awaited.look()
    except BaseException:
        if awaited is not None:
            awaited.over()
        raise
    # Whether there is anywhere for an announce to go; never that it will get there (SEND-8).
    route = route_of(target.row, target.key) if again is None else again.route
    delivery = {"status": "none"} if route is None else {"status": "pending", "mode": "announce"}
    if awaited is not None:
        return awaited.pending(target.shown, delivery)
    return {"runId": send.run_id, "status": "accepted", "sessionKey": target.shown, "delivery": delivery}


def _accepted_before(
    service: Service, call: Call, exchange_id: str, asked: str | None
) -> ExchangeAccepted | None:
    """Return the send that this requester made before: under the same key (SEND-11), in an attempt that was cut off (SEND-13), or before a fork's cut (FORK-4).

    It has its answer, for ever: nothing is judged again, neither what has become of the target nor what can be seen now.
    """
    if asked is None and not call.again:
        return None
    for item in service.log.stream(ids.exchange_stream(exchange_id), to=1):
        event = item.event
        if isinstance(event, ExchangeAccepted) and event.requester == call.caller.key:
            is_same = asked is not None and same_request(event.digests, (asked,))
            return event if call.again or is_same else None
    return None


def _target_again(service: Service, call: Call, accepted: ExchangeAccepted) -> Target:
    key = service.reader.parse(accepted.target)
    call.summary = AccessSummary(keys=(accepted.target,))
    shown = service.reader.show(key, call.requester)
    return Target(key=key, shown=shown, session_id=accepted.target_session_id, row=None)


def _was_accepted(send: Send) -> bool:
    """Say whether the same call was accepted before (SEND-11).

    Raises:
        ToolRefused: its key was used for another message (`idempotency_conflict`).
    """
    runs, caller, key = send.service.runs, send.call.caller, send.idempotency_key
    if key is None:
        # Where nothing led to it the id is random, so nobody can have had it before.
        return send.call.asks_for is not None and runs.get(send.run_id) is not None
    # One look: between two, another message can be accepted under the key.
    known = runs.by_idempotency_key(caller.name, key)
    if known is not None and not same_request(known.digests, (send.digest,)):
        raise key_conflict("message")
    return known is not None


def _timeout(given: SessionsSend) -> float:
    seconds = DEFAULT_TIMEOUT_S if given.timeout_seconds is None else given.timeout_seconds
    return values.seconds_of("timeoutSeconds", seconds)


def _target(service: Service, call: Call, given: SessionsSend) -> Target:
    """Return the one target that was named, seen and allowed (SEND-1, SEND-2)."""
    named = [
        name
        for name, value in (("sessionKey", given.session_key), ("label", given.label))
        if value is not None
    ]
    if len(named) > 1 or (given.session_key is not None and given.agent_id is not None):
        raise values.invalid(
            "sessionKey", "give exactly one of sessionKey, label (with or without agentId), agentId"
        )
    if given.session_key is not None:
        found = resolve_target(service.reader, call.requester, given.session_key, "send")
    elif given.label is not None:
        found = resolve_label(service.reader, call.requester, given.label, given.agent_id, "send")
    elif given.agent_id is not None:
        found = resolve_main(service.reader, call.requester, given.agent_id, "send")
    else:
        raise values.invalid("sessionKey", "give one of sessionKey, label, agentId")
    key = found.key
    _check_other(found, call.requester, given)
    call.summary = AccessSummary(keys=(str(key),), judged=found.judged)
    opened = opening(service, key, by="send") if found.row is None else None
    return Target(
        key=key,
        shown=found.shown,
        session_id=found.session_id or (opened.session_id if opened is not None else ""),
        opening=opened,
        row=found.row,
        caller=found.caller,
        judged=found.judged,
    )


def _check_other(found: Resolved, requester: Requester, given: SessionsSend) -> None:
    """Refuse the caller's own session."""
    if found.judged is None or found.key != requester.key:
        return
    judged = found.judged._replace(asked=msgspec.structs.replace(found.judged.asked, other=True))
    if denial_of(judged) is not None:
        named = given.session_key or given.label or given.agent_id or ""
        error = "sessionKey: a session can't send to itself, answer in your own reply"
        raise TargetRefused("self_send", error, named, judged=judged)


def _begin_wait(send: Send, target: Target) -> Wait | tuple[str, ...] | None:
    """Begin to wait for the target, as a waiting session; None for the operator, and for callers that do not wait.

    Where the target waits for the caller already, return the cycle that this would close (SEND-10).
    """
    service, caller = send.service, send.call.caller
    if caller.key is None or send.timeout == 0:
        return None
    calling = caller.run.run_id if caller.run is not None else None
    return service.wait_graph.begin(caller.key, str(target.key), seconds=send.timeout, run_id=calling)


def _closes_cycle(send: Send, target: Target, path: tuple[str, ...]) -> ToolRefused:
    """Put on record that a send is refused, as its caller would wait in a cycle, and return the refusal."""
    requester, judged = send.call.caller.key, None
    if requester is not None:
        refused = SendRefused(
            requester=requester,
            target=str(target.key),
            code="cycle",
            limit="cycle",
            value=len(path) - 1,
            chain=path,
            credential=send.call.caller.credential,
        )
        asked = WaitFor(requester=requester, target=str(target.key))
        judged = Judgement(asked, Waits(waits=tuple(pairwise(path[:-1]))))
        send.service.receipts.record(requester, refused, judged=judged)
    error = f"waiting would close a cycle ({' -> '.join(path)}), send with timeoutSeconds 0"
    return ToolRefused("cycle", f"sessionKey: {error}", judged=judged)


def _accept_now(send: Send, given: SessionsSend, target: Target) -> tuple[Target, bool]:
    """Have the message accepted; return the accepting target, and whether the same call was accepted a moment ago."""
    try:
        return target, _accept(send, target)
    except ToolRefused as refused:
        if target.opening is None or refused.code != "not_visible":
            raise
        # Somebody else opened the session a moment ago: it is that one that is meant.
        target = _target(send.service, send.call, given)
        return target, _accept(send, target)


def _accept(send: Send, target: Target) -> bool:
    """Judge a send, and open its exchange; return whether that had been done already.

    Raises:
        ToolRefused: policy or a limit of the chain forbids it, or it is not durable.
    """
    service, call = send.service, send.call
    verdict = _policy(service, target)
    origin, key = origin_of(service, call.caller, send.run_id), str(target.key)
    config = service.config
    with keeping_refusals(service, call.caller, origin, "sessions_send", key):
        command = OpenExchange(
            budget=gone_on(service, origin, key, "sessionKey"),
            accepted=_accepted(send, target, verdict),
            opening=target.opening,
            run_timeout_ms=config.run_timeout_ms(),
            at_most=config.runs.inbox_max,
            causation=origin.causation,
            judged=tuple(one for one in (target.judged, verdict.judged) if one is not None),
        )
        return ask_flow(service, command).again


def _accepted(send: Send, target: Target, verdict: Verdict) -> ExchangeAccepted:
    """Return the event that accepts a send. The main session that calls is opened where it is not there yet.

    What its causal chain has used, the coordinator adds: it alone knows of what other branches do meanwhile.
    """
    service, caller, requester = send.service, send.call.caller, send.call.requester
    config = service.config
    reader, log_id = service.reader, service.log.log_id
    no_loop = why_no_loop(config.session.agent_to_agent.one_way, requester.key, target.key)
    requester_row = calling_row(service, requester, target.caller)
    return ExchangeAccepted(
        exchange_id=send.exchange_id,
        run_id=send.run_id,
        target=str(target.key),
        target_session_id=target.session_id,
        message_id=ids.derive(log_id, "message", send.run_id),
        message=send.message,
        settings=config.session.exchange,
        caller=caller.name,
        requester=caller.key,
        requester_session_id=requester_row.session_id if requester_row is not None else None,
        requester_channel=reader.channel_of(requester_row, requester.key)
        if requester_row is not None
        else None,
        requester_run_id=caller.run.run_id if caller.run is not None else None,
        target_channel=reader.channel_of(target.row, target.key) if target.row is not None else None,
        route=route_of(target.row, target.key),
        loop=no_loop is None,
        loop_reason=no_loop,
        idempotency_key=send.idempotency_key,
        request_digests=(send.digest, *(() if send.asked is None else (send.asked,)), *send.call.digests),
        timeout_ms=round(send.timeout * 1000),
        send_rule=verdict.rule,
        target_version=0 if target.row is None else target.row.version,
        visibility=None if caller.key is None else effective_visibility(reader.sight(requester)),
    )


def _policy(service: Service, target: Target) -> Verdict:
    """Return the send policy's verdict, and refuse what it forbids, naming the rule (SEND-12)."""
    row = target.row
    verdict = service.world.rules.judge_send(
        key=str(target.key),
        channel=(row.channel or row.last_channel) if row is not None else None,
        chat_type=row.chat_type if row is not None else None,
        override=row.send_policy if row is not None else None,
    )
    if not verdict.allowed:
        error = f"sessionKey: send policy forbids it ({verdict.rule})"
        raise ToolRefused("policy_denied", error, judged=verdict.judged)
    return verdict


class _Awaited:
    """The reply to a send that its caller waits for. It is expected before the send is accepted, so that it can't be missed."""

    def __init__(self, send: Send, wait: Wait | None) -> None:
        self._send = send
        self._wait = wait
        self._waits = send.service.waits
        # The operator waits for the end of the run, a session until its exchange lets the reply go on.
        self._name = send.run_id if send.call.caller.key is None else ids.exchange_stream(send.exchange_id)
        self._future = self._waits.expect(self._name, send.run_id)
        if wait is not None:
            wait.give_up = partial(self._waits.finish, self._name, self._future)

    def look(self) -> None:
        """Look whether the reply is there already, to a send that was accepted before."""
        send = self._send
        try:
            if has_answer(send.service, send.call.caller, send.run_id):
                self._waits.finish(self._name, self._future)
        except StoreUnavailable as error:
            # It was accepted: the wait ends with what the log tells, or with its time.
            send.service.store_failed(error)

    def over(self) -> None:
        """Wait no longer."""
        self._waits.forget(self._name, self._future, self._send.run_id)
        if self._wait is not None:
            self._send.service.wait_graph.end(self._wait)

    def pending(self, shown: str, delivery: dict[str, str]) -> Pending:
        """Return the answer to a target that is `shown` so."""
        send = self._send
        service, caller, run_id = send.service, send.call.caller, send.run_id
        result = partial(send_result, run_id=run_id, shown=shown, timeout=send.timeout, delivery=delivery)

        def finish(*, in_vain: bool = False) -> Result:
            end = self._end()
            if end is not None and not in_vain:
                return result(end_of(end), further="")
            outcome: RunOutcome | None = None
            first = GOES_ON
            # It was accepted, so a store that is away is no refusal: the run goes on after the restart.
            try:
                outcome = service.runs.get(run_id)
                first = first_reply(service, caller, run_id)
            except StoreUnavailable as error:
                service.store_failed(error)
            ended = outcome if outcome is not None and outcome.ended and not in_vain else None
            return result(ended, further=goes_on(service, outcome), first=first)

        return Pending(
            future=self._future,
            timeout=send.timeout,
            finish=finish,
            over=self.over,
            in_vain=partial(finish, in_vain=True),
        )

    def _end(self) -> RunEnd | None:
        """Return the event that ended the run, where it is the whole answer, and came in time."""
        try:
            return self._future.result(0)
        except (TimeoutError, CancelledError):
            return None


def send_result(
    ended: RunOutcome | EndOfRun | None,
    *,
    run_id: str,
    shown: str,
    timeout: float,
    delivery: dict[str, str],
    further: str,
    first: FirstReply = GOES_ON,
) -> Result:
    """Return the answer of a send after its wait: a pure function of how the run ended (SEND-5 to SEND-7).

    `ended` is None for a run that is not over, of which `further` says what becomes.
    `first` is the state of the reply on its way to the waiting session (LIVE-1).
    """
    answer: Result = {"runId": run_id, "sessionKey": shown}
    if ended is None:
        return answer | {
            "status": "timeout",
            "error": f"no reply within {timeout:g} s; {further}, agent.wait knows it",
            "delivered": True,
            "delivery": delivery,
        }
    if ended.status != "ok":
        return answer | {"status": "error", "error": ended.error or ended.status}
    if first.waits:
        said = "held" if first.is_held else "not released"
        return (
            answer
            | {
                "status": "timeout",
                "error": f"there is a reply, which is {said} and has not gone on within {timeout:g} s; agent.wait knows the run",
                "delivered": True,
                "delivery": delivery,
            }
            | ({"held": True} if first.is_held else {})
        )
    if first.ended_by is not None:
        return answer | {"status": "error", "error": f"aborted: {first.ended_by} ended the exchange"}
    text = spoken(ended.reply) if first.text is None else first.text
    if first.is_dropped:
        text = None
    if text is None:
        return answer | {"status": "ok", "reply": "", "noReply": True, "delivery": {"status": "none"}}
    edited: Result = {} if first.text is None else {"edited": True}
    return answer | {"status": "ok", "reply": text, "delivery": delivery} | edited
