"""`sessions_send`: a message to another session, and, if asked to, its reply (SEND)."""

import hashlib
import math
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

import msgspec

from intersession_actors.errors import LimitReached, ToolRefused
from intersession_actors.exchange import OpenExchange
from intersession_actors.policy import (
    ChainSoFar,
    Speaker,
    Verdict,
    check_chain,
    effective_visibility,
    judge_send,
)
from intersession_actors.prompt import spoken
from intersession_actors.service import (
    AccessSummary,
    Caller,
    CallingRun,
    Resolved,
    Service,
    Wait,
    invalid,
    read_arguments,
    resolve_label,
    resolve_main,
    resolve_target,
)
from intersession_actors.streams import Accepted
from intersession_actors.tools.call import Answer, Pending
from intersession_events import ids
from intersession_events.crash_points import crash_point
from intersession_events.errors import StoreUnavailable
from intersession_events.facts import ExchangeAccepted, LoopEnd, SendRefused, SessionOpened, ready
from intersession_events.keys import SessionKey
from intersession_projections.run_outcomes import ChainTotals, RunOutcome

DEFAULT_TIMEOUT_S: Final = 30
MAX_TIMEOUT_S: Final = 86_400


@ready
class SessionsSend(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a caller gives (SEND-1)."""

    message: str
    session_key: str | None = None
    label: str | None = None
    agent_id: str | None = None
    timeout_seconds: float | None = None
    idempotency_key: str | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the message is for, as authorised; `opening` where the session does not exist yet (SEND-2)."""

    key: SessionKey
    shown: str
    session_id: str
    opening: SessionOpened | None = None
    found: Resolved | None = None


def send_message(service: Service, caller: Caller, arguments: dict[str, Any]) -> Answer | Pending:
    """Send a message to another session and, unless `timeoutSeconds` is 0, wait for its reply.

    A result of `timeout` means that the caller stopped waiting: the run goes on, and its loop and announce still happen.

    Raises:
        ToolRefused: nothing was accepted.
    """
    given = read_arguments(SessionsSend, arguments)
    crash_point("S0")
    timeout = _timeout(given)
    if not given.message.strip():
        raise invalid("message", "blank, write what the other session should read")
    target = _target(service, caller, given)
    digest = hashlib.sha256(msgspec.json.encode([str(target.key), given.message])).hexdigest()
    run_id = service.run_id(
        caller=caller.name,
        method="sessions_send",
        key=given.idempotency_key,
        calling=caller.run,
        ordinal=caller.ordinal,
    )
    known = (
        service.runs.by_idempotency_key(caller.name, given.idempotency_key) if given.idempotency_key else None
    )
    if known is not None and known.digest != digest:
        raise ToolRefused(
            "idempotency_conflict",
            "idempotencyKey: it was used for another message, use a new key for a new message",
        )
    # Without a key and outside of a run the id is random, so nobody can have had it before.
    may_be_known = given.idempotency_key is not None or caller.run is not None
    wait = _begin_wait(service, caller, target, timeout)
    try:
        if known is None and not (may_be_known and service.outcome(run_id) is not None):
            try:
                _accept(service, caller, given, target, run_id=run_id, digest=digest, timeout=timeout)
            except ToolRefused as refused:
                if target.opening is None or refused.code != "not_visible":
                    raise
                # Somebody else opened the session a moment ago: it is that one that is meant.
                target = _target(service, caller, given)
                _accept(service, caller, given, target, run_id=run_id, digest=digest, timeout=timeout)
        delivery = _delivery(service, target)
        if timeout > 0:
            return _pending(service, target, run_id=run_id, timeout=timeout, delivery=delivery, wait=wait)
    except BaseException:
        if wait is not None:
            service.wait_graph.end(wait)
        raise
    return Answer({"runId": run_id, "status": "accepted", "sessionKey": target.shown, "delivery": delivery})


def _timeout(given: SessionsSend) -> float:
    seconds = DEFAULT_TIMEOUT_S if given.timeout_seconds is None else given.timeout_seconds
    if not math.isfinite(seconds) or seconds < 0 or seconds > MAX_TIMEOUT_S:
        raise invalid("timeoutSeconds", f"{seconds:g} is out of range, give 0 to {MAX_TIMEOUT_S}")
    return seconds


def _target(service: Service, caller: Caller, given: SessionsSend) -> Target:
    """Return the one target that was named, seen and allowed (SEND-1, SEND-2)."""
    named = [
        name
        for name, value in (("sessionKey", given.session_key), ("label", given.label))
        if value is not None
    ]
    if len(named) > 1 or (given.session_key is not None and given.agent_id is not None):
        raise invalid(
            "sessionKey", "give exactly one of sessionKey, label (with or without agentId), agentId"
        )
    if given.session_key is not None:
        found = resolve_target(service.reader, caller.requester, given.session_key, "send")
    elif given.label is not None:
        found = resolve_label(service.reader, caller.requester, given.label, given.agent_id, "send")
    elif given.agent_id is not None:
        found = resolve_main(service.reader, caller.requester, given.agent_id, "send")
    else:
        raise invalid("sessionKey", "give one of sessionKey, label, agentId")
    caller.summary = AccessSummary(keys=(str(found.key),))
    key = found.key
    if caller.key is not None and str(key) == caller.key:
        raise ToolRefused("self_send", "sessionKey: a session can't send to itself, answer in your own reply")
    if found.generation_only:
        raise ToolRefused("old_generation", "sessionKey: that generation is over, send to its sessionKey")
    if found.row is not None:
        return Target(key=key, shown=found.shown, session_id=found.row.session_id, found=found)
    opening = service.opening(key, by="send")
    return Target(key=key, shown=found.shown, session_id=opening.session_id, opening=opening, found=found)


def _begin_wait(service: Service, caller: Caller, target: Target, timeout: float) -> Wait | None:
    """Begin to wait for the target, as a session that waits; None for the operator, and for who does not wait.

    Raises:
        ToolRefused: the target waits for the caller already (`cycle`, SEND-10).
    """
    requester = caller.key
    if requester is None or timeout == 0:
        return None
    calling = caller.run.run_id if caller.run is not None else None
    begun = service.wait_graph.begin(requester, str(target.key), seconds=timeout, run_id=calling)
    if isinstance(begun, Wait):
        return begun
    service.receipts.record(
        requester,
        SendRefused(
            requester=requester,
            target=str(target.key),
            code="cycle",
            limit="cycle",
            value=len(begun) - 1,
            chain=begun,
        ),
    )
    raise ToolRefused(
        "cycle",
        f"sessionKey: waiting would close a cycle ({' -> '.join(begun)}), send with timeoutSeconds 0",
    )


def _accept(
    service: Service,
    caller: Caller,
    given: SessionsSend,
    target: Target,
    *,
    run_id: str,
    digest: str,
    timeout: float,
) -> Accepted:
    config, now = service.config, service.clock.now_ms()
    verdict = _policy(service, target)
    settings = config.session.exchange
    calling = caller.run or CallingRun(run_id=run_id, attempt=0)
    root = calling.root or run_id
    # A chain that begins with this send has cost nothing, and there is nothing to ask for.
    spent = service.runs.chain_totals(root) if root != run_id else ChainTotals(0, 0, 0)
    first = service.outcome(root) if root != run_id else None
    chain = ChainSoFar(
        chain=calling.chain,
        hops=calling.hops,
        runs=spent.runs,
        tokens=spent.tokens,
        cost_micros=spent.cost_micros,
        started_ms=first.queued_ms if first is not None else now,
    )
    tripped = check_chain(settings.limits, chain, str(target.key), now)
    if tripped is not None:
        raise _limited(
            service, caller, target, chain, tripped.error, limit=tripped.setting, value=tripped.value
        )
    loop, loop_reason = _loop(service, caller, target)
    requester_row = service.calling_row(caller.requester)
    row = target.found.row if target.found is not None else None
    accepted = ExchangeAccepted(
        exchange_id=ids.derive(service.log.log_id, "exchange", run_id),
        run_id=run_id,
        target=str(target.key),
        target_session_id=target.session_id,
        message_id=ids.derive(service.log.log_id, "message", run_id),
        message=given.message,
        settings=settings,
        caller=caller.name,
        requester=caller.key,
        requester_session_id=requester_row.session_id if requester_row is not None else None,
        requester_channel=service.reader.channel_of(requester_row) if requester_row is not None else None,
        requester_run_id=caller.run.run_id if caller.run is not None else None,
        target_channel=service.reader.channel_of(row) if row is not None else None,
        route=service.delivery(row, target.key),
        loop=loop,
        loop_reason=loop_reason,
        idempotency_key=given.idempotency_key,
        request_digest=digest,
        timeout_ms=round(timeout * 1000),
        chain=(*(calling.chain or ((caller.key,) if caller.key else ())), str(target.key)),
        hops=chain.hops + 1,
        root=root,
        chain_started_ms=chain.started_ms or now,
        chain_runs=spent.runs,
        chain_tokens=spent.tokens,
        chain_cost_micros=spent.cost_micros,
        send_rule=verdict.rule,
        visibility=None
        if caller.key is None
        else effective_visibility(caller.requester, service.reader.access(caller.requester)),
    )
    command = OpenExchange(
        accepted=accepted,
        opening=target.opening,
        run_timeout_ms=config.run_timeout_ms(),
        at_most=config.runs.inbox_max,
        causation=calling.cause,
        correlation=root,
    )
    try:
        return service.ask(
            lambda told: service.supervisor.tell_flow(ids.exchange_stream(accepted.exchange_id), told),
            command,
        )
    except LimitReached as reached:
        raise _limited(
            service, caller, target, chain, reached.error, limit=reached.limit, value=reached.value
        ) from None


def _limited(
    service: Service, caller: Caller, target: Target, chain: ChainSoFar, error: str, *, limit: str, value: int
) -> ToolRefused:
    """Return the refusal of a send that a guard stopped, put on record (LOOP-5)."""
    service.receipts.record(
        caller.key,
        SendRefused(
            requester=caller.key,
            target=str(target.key),
            code="limit",
            limit=limit,
            value=value,
            chain=chain.chain,
        ),
    )
    return ToolRefused("limit", error)


def _policy(service: Service, target: Target) -> Verdict:
    """Return the send policy's word, and refuse what it forbids, naming the rule (SEND-12)."""
    row = target.found.row if target.found is not None else None
    verdict = judge_send(
        service.config.session.send_policy,
        Speaker(
            key=target.key,
            channel=(row.channel or row.last_channel) if row is not None else None,
            chat_type=row.chat_type if row is not None else None,
            override=row.send_policy if row is not None else None,
        ),
    )
    if not verdict.allowed:
        raise ToolRefused("policy_denied", f"sessionKey: send policy forbids it ({verdict.rule})")
    return verdict


def _loop(service: Service, caller: Caller, target: Target) -> tuple[bool, LoopEnd | None]:
    """Say whether a reply-back loop follows, else why not (LOOP-4)."""
    if caller.key is None:
        return False, "no_requester"
    one_way = service.config.session.agent_to_agent.one_way
    for key in (SessionKey.parse(caller.key, main_key=service.config.session.main_key), target.key):
        if key.kind in one_way or (key.is_subagent and "subagent" in one_way):
            return False, "one_way"
    return True, None


def _delivery(service: Service, target: Target) -> dict[str, str]:
    """Say whether there is anywhere for an announce to go; never that it will get there (SEND-8)."""
    row = target.found.row if target.found is not None else None
    if service.delivery(row, target.key) is None:
        return {"status": "none"}
    return {"status": "pending", "mode": "announce"}


def _pending(
    service: Service,
    target: Target,
    *,
    run_id: str,
    timeout: float,
    delivery: dict[str, str],
    wait: Wait | None,
) -> Pending:
    future: Future[None] = service.waits.expect(run_id)
    if wait is not None:
        wait.give_up = lambda: service.waits.finish(run_id, future)
    if service.runs.has_ended(run_id):
        service.waits.finish(run_id, future)

    def finish() -> dict[str, Any]:
        service.waits.forget(run_id, future)
        outcome: RunOutcome | None = None
        with suppress(
            StoreUnavailable
        ):  # it was accepted, so this is no refusal: it goes on after the restart
            outcome = service.outcome(run_id)
        return send_result(outcome, run_id, target.shown, timeout, delivery)

    return Pending(
        future=future,
        timeout=timeout,
        finish=finish,
        wait=wait,
    )


def send_result(
    outcome: RunOutcome | None, run_id: str, shown: str, timeout: float, delivery: dict[str, str]
) -> dict[str, Any]:
    """Return the answer to a send whose wait is over: a pure function of the run's outcome (SEND-5 to SEND-7)."""
    answer: dict[str, Any] = {"runId": run_id, "sessionKey": shown}
    if outcome is None or not outcome.ended:
        return answer | {
            "status": "timeout",
            "error": f"no reply within {timeout:g} s; the run goes on, agent.wait knows it",
            "delivered": True,
            "delivery": delivery,
        }
    if outcome.status != "ok":
        return answer | {"status": "error", "error": outcome.error or outcome.status}
    text = spoken(outcome.reply)
    if text is None:
        return answer | {"status": "ok", "reply": "", "noReply": True, "delivery": {"status": "none"}}
    return answer | {"status": "ok", "reply": text, "delivery": delivery}
