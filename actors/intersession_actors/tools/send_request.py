"""Turns a send that is allowed into the event that accepts it: its route, its loop (SEND-3, LOOP-4)."""

import msgspec

from intersession_actors.errors import Judgement
from intersession_actors.policy import Verdict, effective_visibility, why_no_loop
from intersession_actors.service import Call, Service, calling_row, flow_begun_by, route_of
from intersession_events import ids
from intersession_events.facts import ExchangeAccepted, SessionOpened
from intersession_events.keys import SessionKey
from intersession_projections.sessions import SessionRow


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the message is for, as `judged`; `opening` where the session does not exist yet (SEND-2).

    `caller` is the session that sends, where it was looked at together with the other.
    """

    key: SessionKey
    shown: str
    session_id: str
    opening: SessionOpened | None = None
    row: SessionRow | None = None
    caller: SessionRow | None = None
    judged: Judgement | None = None


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """A send on its way: the call, what it says, how long it waits (seconds), and the run that it asks for."""

    service: Service
    call: Call
    message: str
    idempotency_key: str | None
    timeout: float
    run_id: str
    digest: str
    asked: str | None = None
    """The digest of the call as it was typed, where it has an idempotency key."""


def accepted_send(send: Send, target: Target, verdict: Verdict) -> ExchangeAccepted:
    """Return the event that accepts a send. The main session that calls is opened where it is not there yet.

    What its causal chain has used, the coordinator adds: it alone knows of what other branches do meanwhile.
    """
    service, caller, requester = send.service, send.call.caller, send.call.requester
    reader, log_id = service.reader, service.log.log_id
    no_loop = why_no_loop(service.config.session.agent_to_agent.one_way, requester.key, target.key)
    requester_row = calling_row(service, requester, target.caller)
    return ExchangeAccepted(
        exchange_id=flow_begun_by(service, "exchange", send.run_id),
        run_id=send.run_id,
        target=str(target.key),
        target_session_id=target.session_id,
        message_id=ids.derive(log_id, "message", send.run_id),
        message=send.message,
        settings=service.config.session.exchange,
        caller=caller.name,
        requester=caller.key,
        requester_session_id=requester_row.session_id if requester_row is not None else None,
        requester_channel=reader.channel_of(requester_row) if requester_row is not None else None,
        requester_run_id=caller.run.run_id if caller.run is not None else None,
        target_channel=reader.channel_of(target.row) if target.row is not None else None,
        route=route_of(target.row, target.key),
        loop=no_loop is None,
        loop_reason=no_loop,
        idempotency_key=send.idempotency_key,
        request_digest=send.digest,
        asked_digest=send.asked,
        timeout_ms=round(send.timeout * 1000),
        send_rule=verdict.rule,
        target_version=0 if target.row is None else target.row.version,
        visibility=None if caller.key is None else effective_visibility(reader.sight(requester)),
    )
