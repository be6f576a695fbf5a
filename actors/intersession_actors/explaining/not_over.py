"""Says what an exchange, a spawn or a run that is not over waits for: for whom, since when, until when (WHY-2)."""

import msgspec

from intersession_actors.explaining.rules import Waiting
from intersession_actors.service import Reader
from intersession_projections.flow_summary import kind_of
from intersession_projections.flows import DeliverySummary, ExchangeSummary, SpawnSummary
from intersession_projections.frozen import frozen_in
from intersession_projections.places import Flow
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.sessions import SessionNames
from intersession_projections.wording import HELD_TEXTS


class Awaited(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is waited for, in a sentence (`text`) without times. `who` is the session whose run it is, `run_id` that run.

    Times in ms: since when, and until when at most; without `until_ms` nothing ends the waiting by itself.
    """

    code: Waiting
    text: str
    since_ms: int | None = None
    until_ms: int | None = None
    who: str | None = None
    run_id: str | None = None


def awaited(reader: Reader, flow: Flow) -> Awaited | None:
    """Return what something waits for; None for what is over."""
    if flow.ended if isinstance(flow, RunOutcome) else not flow.is_open:
        return None
    whole = f"The {kind_of(flow)}"
    if frozen_in(reader.log).holds(flow):
        text = f"{whole} is frozen: in a fork only the run goes on that was forked"
        return Awaited(code="frozen", text=text)
    if isinstance(flow, RunOutcome):
        return _of_run(reader, whole, flow, None)
    if isinstance(flow, ExchangeSummary) and flow.held is not None:
        text = f"{whole} waits for a release: {HELD_TEXTS[flow.held]} is held, as {flow.held_by} wants"
        return Awaited(code="waits_for_release", text=text, since_ms=flow.held_since_ms)
    sent = None if flow.delivery_id is None else reader.flows.delivery(flow.delivery_id)
    if sent is not None:
        return _of_delivery(whole, sent)
    run = None if flow.awaits is None else reader.runs.get(flow.awaits)
    if run is None:
        return Awaited(code="under_way", text=f"{whole} is not over: its next step is not recorded yet")
    child = flow.child if isinstance(flow, SpawnSummary) else None
    return _of_run(reader, whole, run, child)


def _of_run(reader: Reader, whole: str, run: RunOutcome, child: str | None) -> Awaited:
    key, row = run.session_key, reader.sessions.get(run.session_key)
    who = SessionNames(reader.log).one(key)
    what = _task_of(run, is_child=key == child)
    limit = run.timeout_ms or None
    if run.ended:
        text = f"{whole} is not over: {who} is done with {what}, and its next step is not recorded yet"
        return Awaited(code="under_way", text=text, since_ms=run.ended_ms, who=key, run_id=run.run_id)
    if run.status == "running":
        until = None if run.started_ms is None or limit is None else run.started_ms + limit
        return Awaited(
            code="under_way",
            text=f"{whole} waits for {what}: {who} has begun it, and has not answered yet",
            since_ms=run.started_ms,
            until_ms=until,
            who=key,
            run_id=run.run_id,
        )
    before = None if row is None or row.running == run.run_id else row.running
    first = "its agent has not begun" if before is None else f"is at another run first ({before})"
    return Awaited(
        code="waits_for_agent" if before is None else "waits_in_queue",
        text=f"{whole} waits for {what}: {who} has been asked for it, and {first}",
        since_ms=run.queued_ms,
        who=key,
        run_id=run.run_id,
    )


def _of_delivery(whole: str, sent: DeliverySummary) -> Awaited:
    match sent.state:
        case "retrying":
            text = f"{whole} waits for {sent.channel}, which has not taken the announce and is asked again"
            return Awaited(code="under_way", text=text, until_ms=sent.retry_at_ms, who=sent.session_key)
        case "decided":
            text = f"{whole} waits for {sent.channel}: the announce is to go there"
            return Awaited(code="waits_for_channel", text=text, who=sent.session_key)
        case "started":
            text = f"{whole} waits for {sent.channel}, which is being given the announce"
            return Awaited(code="under_way", text=text, who=sent.session_key)
        case _:
            text = f"{whole} is not over: {sent.channel} is done with the announce, and that is not recorded here yet"
            return Awaited(code="under_way", text=text, who=sent.session_key)


def _task_of(run: RunOutcome, *, is_child: bool) -> str:
    """Return what a run is asked for, as a place says it."""
    match run.step:
        case "announce":
            return "the announce"
        case "reply":
            return f"turn {run.turn}"
        case "message" if run.is_alone:
            return "an answer"
        case "message" if run.exchange_id is not None:
            return "the primary reply"
        case "message":
            return "the result of the task" if is_child else "an answer to the result"
