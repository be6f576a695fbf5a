"""The verb `runs`: exchanges, spawns, and runs outside of both, newest first, with the state of each (FIND-2)."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, NotRequired, Self

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.lists.deliveries import delivery_value
from intersession_actors.hindsight.debugger.lists.paging import (
    LimitArgument,
    Listed,
    PageAnswer,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.smells import SmellAnswer, smells_of_each
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.explaining.not_over import NotOver, waits_of
from intersession_actors.rules.gate.limits import CHOICES, KeyText, Name, PlaceText, SearchText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.references import parse_agent_id
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import ExchangeHeld, ready
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.questions.flow_summary import flow_value
from intersession_projections.questions.places.runs_named import Flow, flow_sessions
from intersession_projections.questions.places.then import Then
from intersession_projections.questions.work_list import (
    WorkEnd,
    WorkFilter,
    WorkKind,
    WorkList,
    ask_deliveries_of_each,
)
from intersession_projections.views.flows.rows import DeliveryNote, DeliverySummary, ExchangeSummary
from intersession_projections.views.held_calls import CallHold, HeldCalls, held_call_value
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.replies import held_in


@ready
class Runs(InSpan, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `runs`; null counts as missing. All given filters must match."""

    open_: Annotated[bool, msgspec.Meta(description="Only what is not over yet.")] = msgspec.field(
        default=False, name="open"
    )
    failed: Annotated[
        bool,
        msgspec.Meta(
            description="Only what failed: a run, a turn, the way of its text, or what the flow ended with."
        ),
    ] = False
    held: Annotated[
        bool,
        msgspec.Meta(
            description="Only exchanges that are held, with the text that waits, and the tool calls that wait for a release."
        ),
    ] = False
    kind: Annotated[
        Annotated[Sequence[WorkKind], msgspec.Meta(max_length=CHOICES.most)] | None,
        msgspec.Meta(description="Only exchanges, spawns or runs."),
    ] = None
    end: Annotated[
        Annotated[Sequence[WorkEnd], msgspec.Meta(max_length=CHOICES.most)] | None,
        msgspec.Meta(
            description="Only what ended so: its run (ok, timeout, …), its ping-pong (turn_limit, …) or all of it (announced, …)."
        ),
    ] = None
    session: Annotated[KeyText | None, msgspec.Meta(description="Only what this session took part in.")] = (
        None
    )
    with_: Annotated[
        KeyText | None, msgspec.Meta(description="Only what this session took part in as well.")
    ] = msgspec.field(default=None, name="with")
    agent: Annotated[
        Name | None, msgspec.Meta(description="Only what a session of this agent took part in.")
    ] = None
    channel: Annotated[
        Name | None,
        msgspec.Meta(description="Only what was asked for on this channel, or what a text of went there."),
    ] = None
    person: Annotated[
        Name | None,
        msgspec.Meta(
            description="Only what this person asked for: their id or name on the channel, or as they are shown (telegram:ada)."
        ),
    ] = None
    words: Annotated[
        SearchText | None,
        msgspec.Meta(description="Only where somebody said all of these words at once."),
    ] = None
    smell: Annotated[
        bool,
        msgspec.Meta(
            description="Mark what is seldom meant: turns that repeat each other, announces nobody got, …"
        ),
    ] = False
    at: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(description="As all of it stood at this place. Default: head."),
    ] = None
    limit: LimitArgument = None


class RunsAnswer(PageAnswer):
    """Exchanges, spawns and runs, newest first: `{id, kind, runId, requester, target, state, …}`; `cursor` is for the next page.

    What is not over has `waits`, as `why` has it; not at a place of the past. `calls` are held tool calls, with `held`, not at a place.
    """

    runs: list[JsonObject]
    calls: NotRequired[list[JsonObject]]


class Stands(NamedTuple):
    """A flow, the deliveries of its texts, and whether a process works on the log; None if that is unknown.

    `retry` is the run that tries a failed one again, `held` where an exchange has stopped. `smells` is what
    is seldom meant in it, None where that was not asked for. `frozen` says that it was open when this fork
    was made, and stays so.
    """

    flow: Flow
    deliveries: tuple[tuple[DeliverySummary, DeliveryNote | None], ...]
    at_work: bool | None = None
    retry: RunOutcome | None = None
    smells: tuple[SmellAnswer, ...] | None = None
    held: ExchangeHeld | None = None
    frozen: bool = False
    not_over: NotOver | None = None
    """What it waits for; None for what is over, and at a place of the past."""

    @classmethod
    def of_all(
        cls,
        reader: Reader,
        flows: Sequence[Flow],
        *,
        at_work: bool | None = None,
        at: int | None = None,
    ) -> list[Self]:
        """Read the state of flows, or of their deliveries as of a position, for flows that are given as of it."""
        stays = frozen_in(reader.log, at)
        (texts,) = reader.log.answers(ask_deliveries_of_each(reader.flows, flows))
        if at is not None:
            texts = Then(reader.log, at).deliveries_of_each(texts)
        notes = iter(reader.flows.notes_of([row for rows in texts for row in rows]))
        failed = (
            [] if at is not None else [flow for flow in flows if isinstance(flow, RunOutcome) and flow.failed]
        )
        retries = reader.runs.retries_of(run.run_id for run in failed)
        waiting = iter(waits_of(reader, flows, stays) if at is None else ())
        return [
            cls(
                flow,
                tuple((row, next(notes)) for row in rows),
                at_work,
                retries.get(flow.run_id) if isinstance(flow, RunOutcome) else None,
                held=held_in(reader.log, flow)
                if at is None and isinstance(flow, ExchangeSummary) and flow.held is not None
                else None,
                frozen=stays.holds(flow),
                not_over=next(waiting) if at is None and flow.is_open else None,
            )
            for flow, rows in zip(flows, texts, strict=True)
        ]

    @property
    def is_open(self) -> bool:
        """Whether it is not over."""
        return self.flow.is_open

    def value(self, view: View) -> JsonObject:
        """Return it as JSON, in the form of a view; unknown fields are left out."""
        value = flow_value(self.flow, at_work=self.at_work)
        if isinstance(self.flow, RunOutcome) and self.flow.error is not None:
            value["error"] = view.shown(self.flow.error, self.flow.session_key)
        texts = [pair for pair in self.deliveries if view.is_seen(pair[0].session_key)]
        if texts:
            value["deliveries"] = [delivery_value(row, note, view) for row, note in texts]
        if self.retry is not None:
            value["retriedBy"] = self.retry.run_id
        if self.held is not None:
            value["held"] = _held_value(self.held, view)
        if self.frozen:
            value["frozen"] = True
        if self.not_over is not None:
            value["waits"] = self.not_over.awaited.value(whole=view.is_operator)
        if self.smells is not None:
            value["smells"] = list(self.smells)
        return value


def list_runs(view: View, given: Runs) -> RunsAnswer:
    """Return the exchanges, spawns and runs of a log. A run that belongs to an exchange or a spawn is part of it.

    Raises:
        ToolRefused: a name, a place or the cursor is invalid.
    """
    rows, cursor = runs_found(view, given, most_of(given.limit))
    answer: RunsAnswer = {"count": len(rows), "runs": [row.value(view) for row in rows], "cursor": cursor}
    if given.held and given.at is None:
        answer["calls"] = [held_call_value(one) for one in calls_held(view)]
    return answer


def calls_held(view: View) -> list[CallHold]:
    """Return the tool calls that wait for a release, in sessions that the caller sees (ASK-2)."""
    return [one for one in HeldCalls(view.log).waiting() if view.is_seen(one.session_key)]


def calls_among(view: View, positions: Sequence[int]) -> list[JsonObject]:
    """Return those whose hold is one of some events, with what the caller may read of their arguments."""
    return [
        held_call_value(one) | {"arguments": view.shown(one.held.arguments, one.session_key)}
        for one in calls_held(view)
        if one.recorded.position in positions
    ]


def runs_found(view: View, given: Runs, most: int, *, only_smelling: bool = False) -> Listed[Stands]:
    """Return the same, as rows up to a limit; the one who shows them puts them into words. `only_smelling` leaves out what has no smell.

    Raises:
        ToolRefused: as `list_runs`.
    """
    at = None if given.at is None else view.place(given.at).position
    wanted = WorkFilter(
        kinds=tuple(given.kind or ()),
        ends=tuple(given.end or ()),
        is_open=given.open_,
        failed=given.failed,
        held=given.held,
        session_key=None if given.session is None else view.session(given.session, field="session"),
        other_key=None if given.with_ is None else view.session(given.with_, field="with"),
        agent_id=_agent(given.agent),
        channel=given.channel,
        person=given.person,
        words=given.words,
        span=span_of(view, given),
    )
    work = WorkList(view.log, None if at is None else Then(view.log, at), sees=view.sees)
    seen = view.seen_of(work.newest(wanted), flow_sessions)
    smelled = (
        smells_of_each(view, seen, at, at_once=most + 1) if given.smell else ((flow, ()) for flow in seen)
    )
    kept = (one for one in smelled if one[1] or not only_smelling)
    page, cursor = paged(kept, lambda one: one[0].accepted, most)
    rows = Stands.of_all(view.reader, [flow for flow, _ in page], at=at)
    if given.smell:
        rows = [row._replace(smells=tuple(found)) for row, (_, found) in zip(rows, page, strict=True)]
    return Listed(rows, cursor)


def _agent(typed: str | None) -> str | None:
    try:
        return None if typed is None else parse_agent_id(typed)
    except InvalidKey as error:
        raise invalid("agent", str(error)) from None


def _held_value(held: ExchangeHeld, view: View) -> JsonObject:
    return present(
        {
            "holdId": held.hold_id,
            "step": held.step,
            "text": view.shown(held.text, held.speaker),
            "speaker": held.speaker,
            "to": held.to,
            "turn": held.turn,
            "before": held.before,
            "source": held.source,
            "by": held.by,
            "note": held.note,
            "since": held.since_ms,
        }
    )
