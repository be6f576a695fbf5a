"""Says what an exchange, a spawn or a run that is not over waits for: for whom, since when, until when (WHY-2)."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining.rules.failures import Waiting
from intersession_events.basics.ids import delivery_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import HELD_TEXTS
from intersession_projections.copies.forks.frozen_work import Frozen, frozen_in
from intersession_projections.questions.places.runs_named import Flow
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary
from intersession_projections.views.held_calls import CallHold, HeldCalls
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.sessions.names import SessionNames


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

    def value(self, *, whole: bool) -> JsonObject:
        """Return it as JSON; not `whole` of it: the author of a hold, and a session's present run, are the operator's to see."""
        answer: JsonObject = msgspec.to_builtins(self)
        return answer if whole else {"code": self.code}


class NotOver(NamedTuple):
    """What something waits for, and the same in a few words, for a list: `brief`, and `cut_off` where nobody is at work any more."""

    awaited: Awaited
    brief: str
    cut_off: str | None = None


def awaited(reader: Reader, flow: Flow) -> Awaited | None:
    """Return what something waits for; None for what is over."""
    found = waits_of(reader, [flow], frozen_in(reader.log))
    return found[0].awaited if found else None


def waits_of(reader: Reader, flows: Iterable[Flow], frozen: Frozen) -> list[NotOver]:
    """Return what each of some exchanges, spawns and runs waits for that are not over, in their order, in a few questions.

    `frozen` is what does not go on.
    """
    opened = [flow for flow in flows if flow.is_open]
    if not opened:
        return []
    return list(map(_Looking(reader, opened, frozen).at, opened))


class _Looking:
    """Looks at what is open: the runs and texts that are waited for, whose sessions they are, and what those are called."""

    def __init__(self, reader: Reader, opened: Sequence[Flow], frozen: Frozen) -> None:
        self._frozen = frozen
        self._log = reader.log
        own = [flow for flow in opened if isinstance(flow, RunOutcome)]
        flows = [flow for flow in opened if not isinstance(flow, RunOutcome)]
        awaits = [flow.awaits for flow in flows if flow.awaits is not None]
        self._runs = {run.run_id: run for run in own} | reader.runs.many_without_words(awaits)
        texts = [flow.delivery_id for flow in flows if flow.delivery_id is not None]
        self._sent = reader.flows.many({"delivery": texts}) if texts else {}
        keys = {run.session_key for run in self._runs.values()}
        self._rows = {row.key: row for row in reader.sessions.many(keys)} if keys else {}
        self._called = SessionNames(reader.log).of(keys) if keys else {}

    @cached_property
    def _calls(self) -> dict[str, CallHold]:
        return {call.held.run_id: call for call in HeldCalls(self._log).waiting()}

    def at(self, flow: Flow) -> NotOver:
        whole = f"The {flow.kind}"
        if self._frozen.holds(flow):
            text = f"{whole} is frozen: in a fork only the run goes on that was forked"
            return NotOver(Awaited(code="frozen", text=text), "not over yet")
        if isinstance(flow, RunOutcome):
            return _of_its_own(self._of_run(whole, flow, None), flow.status)
        if isinstance(flow, ExchangeSummary) and flow.held is not None:
            what = HELD_TEXTS[flow.held]
            text = f"{whole} waits for a release: {what} is held, as {flow.held_by} wants"
            held = Awaited(code="waits_for_release", text=text, since_ms=flow.held_since_ms)
            return NotOver(held, f"HELD before {what} goes on, as {flow.held_by} wants")
        sent = None if flow.delivery_id is None else self._sent.get(delivery_stream(flow.delivery_id))
        if isinstance(sent, DeliverySummary):
            return _of_delivery(whole, sent)
        run = None if flow.awaits is None else self._runs.get(flow.awaits)
        if run is None:
            text = f"{whole} is not over: its next step is not recorded yet"
            return NotOver(Awaited(code="under_way", text=text), "its next step is not recorded yet")
        return self._of_run(whole, run, flow.child if isinstance(flow, SpawnSummary) else None)

    def _of_run(self, whole: str, run: RunOutcome, child: str | None) -> NotOver:
        key, row = run.session_key, self._rows.get(run.session_key)
        who, what = self._called[key], _task_of(run, is_child=key == child)
        task = "its task" if what == _RESULT else what
        limit = run.timeout_ms or None
        if run.ended:
            text = f"{whole} is not over: {who} is done with {what}, and its next step is not recorded yet"
            done = Awaited(code="under_way", text=text, since_ms=run.ended_ms, who=key, run_id=run.run_id)
            return NotOver(done, f"{who} is done with {what}, the next step is not recorded yet")
        if run.status == "running" and (call := self._calls.get(run.run_id)) is not None:
            held = Awaited(
                code="waits_for_approval",
                text=f"{whole} waits for {what}: {who}'s call of {call.held.tool} waits for a release",
                since_ms=call.recorded.time,
                who=key,
                run_id=run.run_id,
            )
            return NotOver(held, f"a call of {call.held.tool} HELD, as {call.held.rule} says")
        if run.status == "running":
            until = None if run.started_ms is None or limit is None else run.started_ms + limit
            begun = Awaited(
                code="under_way",
                text=f"{whole} waits for {what}: {who} has begun it, and has not answered yet",
                since_ms=run.started_ms,
                until_ms=until,
                who=key,
                run_id=run.run_id,
            )
            return NotOver(begun, f"{who} is at {task}", f"{who} was cut off at {task}")
        before = None if row is None or row.running == run.run_id else row.running
        first = "its agent has not begun" if before is None else f"is at another run first ({before})"
        asked = Awaited(
            code="waits_for_agent" if before is None else "waits_in_queue",
            text=f"{whole} waits for {what}: {who} has been asked for it, and {first}",
            since_ms=run.queued_ms,
            who=key,
            run_id=run.run_id,
        )
        brief = "has not begun it" if before is None else "is at another run first"
        return NotOver(asked, f"{who} is asked for {task}, and {brief}")


def _of_its_own(found: NotOver, status: str) -> NotOver:
    """Return the same of a run that belongs to nothing: whose it is stands beside it."""
    if status == "running" and found.awaited.code == "under_way":
        return found._replace(brief="at work")
    if found.awaited.code == "waits_for_approval":
        return found
    queue = found.awaited.code == "waits_in_queue"
    return found._replace(brief="waits for another run of its session" if queue else "waits for its agent")


def _of_delivery(whole: str, sent: DeliverySummary) -> NotOver:
    code: Waiting = "under_way"
    until = None
    match sent.state:
        case "retrying":
            brief, until = f"{sent.channel} has not taken the announce and is asked again", sent.retry_at_ms
            text = f"{whole} waits for {sent.channel}, which has not taken the announce and is asked again"
        case "decided":
            code, brief = "waits_for_channel", f"the announce is to go to {sent.channel}"
            text = f"{whole} waits for {sent.channel}: the announce is to go there"
        case "started":
            brief = f"{sent.channel} is being given the announce"
            text = f"{whole} waits for {sent.channel}, which is being given the announce"
        case _:
            brief = f"{sent.channel} is done with the announce, and that is not recorded here yet"
            text = f"{whole} is not over: {brief}"
    return NotOver(Awaited(code=code, text=text, until_ms=until, who=sent.session_key), brief)


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
        case "compaction":
            return "the summary of its older turns"
        case "message":
            return _RESULT if is_child else "an answer to the result"


_RESULT: Final = "the result of the task"
