"""Questions about runs: the list, one with its outline, and the rows of its diagram and its events, part by part."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec

from intersession.web.questions.cache import LruCache, Same
from intersession_actors.calls.service.arguments import bounded
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.show import drawings
from intersession_actors.hindsight.debugger.smells import SmellAnswer, smells_of, smells_of_all
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.explaining.not_over import NotOver, waits_of
from intersession_actors.rules.gate.limits import AgentId, KeyText, Name, SearchText
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import TurnEnded, calls_of, message_in, ready, run_named
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Ask, Question
from intersession_events.stores.opened import has_writer
from intersession_projections.basics.wording.events import words_in
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.copies.forks.pauses import pauses_in, without_pauses
from intersession_projections.questions.diagram.diagram import Diagram
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, Mark, Row
from intersession_projections.questions.flow_summary import flow_value, in_words
from intersession_projections.questions.places.calling import calling_runs
from intersession_projections.questions.places.located import read_flow, read_flows, steps_of_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_sessions
from intersession_projections.questions.smells.smells import smell_name
from intersession_projections.questions.timeline.steps import Step
from intersession_projections.questions.work_list import (
    WorkEnd,
    WorkFilter,
    WorkKind,
    WorkList,
    ask_deliveries_of_each,
    has_failed,
)
from intersession_projections.views.flows.held import held_ms
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.replies import told_in

USUAL: Final = 30
MOST: Final = 200
_MOST_AT_ONCE: Final = 2_000
_TICKS: Final = 48
_PART: Final = 500
_TITLE: Final = 200
_TURNS: Final = re.compile(r"\d+ turns?")


@ready
class RunsQuery(InSpan, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which runs are asked for: all that is given holds."""

    kind: Annotated[
        tuple[WorkKind, ...] | None, msgspec.Meta(description="Only exchanges, spawns or runs of neither.")
    ] = None
    end: Annotated[tuple[WorkEnd, ...] | None, msgspec.Meta(description="Only what ended so.")] = None
    unfinished: Annotated[bool | None, msgspec.Meta(description="Only what is not over yet.")] = None
    failed: Annotated[bool | None, msgspec.Meta(description="Only what failed.")] = None
    smell: Annotated[bool | None, msgspec.Meta(description="Only what has a smell.")] = None
    session: Annotated[KeyText | None, msgspec.Meta(description="Only what this session took part in.")] = (
        None
    )
    other: Annotated[
        KeyText | None, msgspec.Meta(description="Only what this session took part in as well.")
    ] = None
    agent: Annotated[AgentId | None, msgspec.Meta(description="Only what this agent took part in.")] = None
    channel: Annotated[
        Name | None, msgspec.Meta(description="Only what came from, or went to, a channel.")
    ] = None
    person: Annotated[Name | None, msgspec.Meta(description="Only what this person asked for.")] = None
    words: Annotated[
        SearchText | None, msgspec.Meta(description="Only where all of these words were said.")
    ] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many, 1 to 200; 30 if not given.")
    ] = None


def runs(view: View, given: RunsQuery) -> JsonObject:
    """Return runs, the newest first: `{runs, cursor}`; of a log without any, whether it was `imported`.

    One that is not over has `waits` for the operator, as `why` has it: what it waits for, and since when.

    Raises:
        ToolRefused: a session, a place or the cursor is none.
    """
    wanted = WorkFilter(
        kinds=given.kind or (),
        ends=given.end or (),
        is_open=given.unfinished or False,
        failed=given.failed or False,
        session_key=None if given.session is None else view.session(given.session, field="session"),
        other_key=None if given.other is None else view.session(given.other, field="other"),
        agent_id=given.agent,
        channel=given.channel,
        person=given.person,
        words=given.words,
        span=span_of(view, given),
    )
    limit = bounded(given.limit, "limit", 1, MOST, default=USUAL).value
    # A run is told as far as the caller sees its sessions: those who took part alone tell whether it is.
    seen = view.seen_of(WorkList(view.log, sees=view.sees).newest(wanted), flow_sessions)
    found = _smelled(view, seen, limit + 1)
    page = list(islice((one for one in found if one[1] or not given.smell), limit + 1))
    cursor = str(page[limit - 1][0].accepted) if len(page) > limit else None
    answer: JsonObject = {"runs": _listed(view, page[:limit]), "cursor": cursor}
    if not page and view.log.query(_IMPORTED, ("import_reported.1",)):
        answer["imported"] = True
    return answer


def _smelled(view: View, flows: Iterator[Flow], at_once: int) -> Iterator[tuple[Flow, list[JsonObject]]]:
    """Yield runs with their smells, read for some at once, and for more each time: most smell of nothing."""
    while some := list(islice(flows, at_once)):
        for flow, smells in zip(some, smells_of_all(view, read_flows(view.log, some)), strict=True):
            yield flow, list(map(_named, smells))
        at_once = min(4 * at_once, _MOST_AT_ONCE)


def _named(smell: SmellAnswer) -> JsonObject:
    return {**smell, "name": smell_name(smell["code"])}


def _listed(view: View, page: list[tuple[Flow, list[JsonObject]]]) -> list[JsonObject]:
    flows = [flow for flow, _ in page]
    runs = as_they_are(view, flows)
    told = zip(page, runs, drawings_of(view, runs), _standings(view, flows), strict=True)
    return [
        _summary(view, run, drawn) | standing | {"smells": smells}
        for (_, smells), run, drawn, standing in told
    ]


def _standings(view: View, flows: Sequence[Flow]) -> list[JsonObject]:
    """Return where each stands, in words, and what it waits for, which is the operator's to see: it tells of other sessions.

    `ended` are the same words without the number of turns: how it ended, and the rest.
    """
    waiting: Iterator[NotOver] = iter(())
    at_work = True
    if view.is_operator and any(flow.is_open for flow in flows):
        frozen = frozen_in(view.log)
        waiting = iter(waits_of(view.reader, flows, frozen))
        at_work = has_writer(view.log)
    return [_standing(flow, next(waiting, None) if flow.is_open else None, at_work=at_work) for flow in flows]


def _standing(flow: Flow, not_over: NotOver | None, *, at_work: bool) -> JsonObject:
    if not_over is None:
        return _told(in_words(flow))
    brief = not_over.brief if at_work else not_over.cut_off
    waits = not_over.awaited.value(whole=True)
    return _told(in_words(flow, at_work=at_work, waits=brief)) | {"waits": waits}


def _told(words: str) -> JsonObject:
    first, *rest = [part for part in words.split("; ") if not _TURNS.fullmatch(part)] or [""]
    return {"told": words, "ended": [first, "; ".join(rest)]}


@ready
class Run(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which run is asked for."""

    run: Annotated[KeyText, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it.")]


def run(view: View, given: Run) -> JsonObject:
    """Return a run: who took part, how it ended, its outline, and how much there is to ask for of it.

    `caller` is the run that it came of, where an agent called: `{runId, sessionKey, from, to, waits}`, positions between which it was at
    work, and pairs of them between which it waited for a tool.

    `kinds` has a letter for each row of the diagram: `a` arrow, `m` mark, `g` gap. `steps` is how many events it has.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    flow = view.flow(given.run)
    (as_it_is,) = as_they_are(view, [flow])
    (drawn,) = drawings_of(view, [as_it_is])
    positions = positions_of(view, as_it_is)
    # The runs before and behind are those of a session that the caller sees: of another one, that there are any is told to nobody.
    sessions = [key for key in flow_sessions(flow) if view.is_seen(key)]
    runs_beside = view.reader.runs
    first, last = (positions[0], positions[-1]) if positions else (flow.accepted, flow.position)
    before = runs_beside.last_of_session(sessions[-1], first) if sessions else None
    after = runs_beside.next_of_session(sessions[-1], last) if sessions else None
    (standing,) = _standings(view, [flow])
    own = read_flow(view.log, flow)
    (calling,) = calling_runs(view.log, [own])
    return (
        _summary(view, as_it_is, drawn)
        | standing
        | present(
            {
                "smells": list(map(_named, smells_of(view, own))),
                "kinds": "".join(_LETTERS[type(row)] for row in drawn.rows),
                "steps": len(positions),
                "first": first,
                "last": last,
                "sessions": sessions,
                "before": None if before is None else before.run_id,
                "after": None if after is None else after.run_id,
                "imported": getattr(flow, "inferred", None) or None,
                "caller": None
                if calling is None or not view.is_seen(calling.session_key)
                else calling.value(),
            }
        )
    )


@ready
class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which part is asked for."""

    run: Annotated[KeyText, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it.")]
    from_: Annotated[
        float | None, msgspec.Meta(description="From which one on, counted from 0. Default: 0.")
    ] = msgspec.field(default=None, name="from")
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many, 1 to 500; 500 if not given.")
    ] = None


def rows(view: View, given: Part) -> JsonObject:
    """Return rows of a run's diagram: `{from, rows}`; lanes are meant by number.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    (drawn,) = drawings_of(view, as_they_are(view, [view.flow(given.run)]))
    first, last = _part(given)
    return {"from": first, "rows": msgspec.to_builtins(drawn.rows[first:last])}


def steps(view: View, given: Part) -> JsonObject:
    """Return events of a run, in log order: `{from, steps}`; `cause` is the position of the step that led to one.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    (run,) = as_they_are(view, [view.flow(given.run)])
    first, last = _part(given)
    wanted = positions_of(view, run)
    known = frozenset(wanted)
    causes = {step.position: step.cause for step in _steps_of(view, run) if step.cause in known}
    return {
        "from": first,
        "steps": [
            _step(view, one, causes.get(one.position))
            for one in told_in(view.log, view.log.at(wanted[first:last]))
        ],
    }


def _part(given: Part) -> tuple[int, int]:
    first = bounded(given.from_, "from", 0, 2**53).value
    return first, first + bounded(given.limit, "limit", 1, _PART, default=_PART).value


def _step(view: View, recorded: Recorded, cause: int | None) -> JsonObject:
    words = words_in(recorded)
    kind, _, key = recorded.stream.partition(":")
    text = view.shown(words.brief, key) if kind == "session" else words.brief
    turn = recorded.event.turn or None if isinstance(recorded.event, TurnEnded) else None
    said = message_in(recorded.event)
    return present(
        {
            "position": recorded.position,
            "timeMs": recorded.time,
            "kind": recorded.kind,
            "stream": recorded.stream,
            "who": words.who,
            "to": words.to,
            "text": (text or "")[:_TITLE],
            "cause": cause,
            "turn": turn,
            "runId": run_named(recorded.event),
            "messageId": None if said is None else said.id,
            "calls": None if said is None else len(calls_of(said)) or None,
            "gives": True if said is not None and said.role == "toolResult" else None,
        }
    )


_IMPORTED: Final = "SELECT 1 FROM stored_events WHERE topic=? LIMIT 1"
_ERASURES: Final[Question] = (
    "SELECT COUNT(*) FROM stored_events WHERE originator_id>=? AND originator_id<?",
    ("erased:", "erased;"),
)
_LETTERS: Final = {Arrow: "a", Mark: "m", Gap: "g"}


_drawn: Final = LruCache[Diagram](256)
_stepped: Final = LruCache[tuple[Step, ...]](32)


class AsItIs(NamedTuple):
    """A run as far as it has come: with its deliveries, and what stands for it as long as nothing is added to it."""

    flow: Flow
    sent: Sequence[DeliverySummary]
    same: Same


def as_they_are(view: View, flows: Sequence[Flow]) -> list[AsItIs]:
    """Return runs as far as they have come; one that is not over may go on with any event."""
    log, hidden = view.log, "hidden" if view.hides else "whole"
    head = None
    erasures = Ask([_ERASURES], lambda rows: int(str(rows[0][0][0])))
    sent, erased = log.answers(ask_deliveries_of_each(view.reader.flows, flows), erasures)
    found: list[AsItIs] = []
    for flow, rows in zip(flows, sent, strict=True):
        name = f"{flow_id(flow)} {hidden}"
        if flow.is_open or any(row.is_open for row in rows):
            head = log.head() if head is None else head
            found.append(AsItIs(flow, rows, (log.log_id, name, head)))
            continue
        # Neither of both ever shrinks: where something was added, or words were erased (ERASE-1), so is the sum another one.
        come = max([flow.position, *(row.position for row in rows)])
        found.append(AsItIs(flow, rows, (log.log_id, name, come + erased)))
    return found


def drawings_of(view: View, runs: Sequence[AsItIs]) -> list[Diagram]:
    """Return the diagrams of runs, which are drawn once as long as nothing is added to them."""
    for run in runs:
        for key in flow_sessions(run.flow):
            view.is_seen(key)  # for the receipt

    def draw(some: Sequence[AsItIs]) -> list[Diagram]:
        return drawings(view, read_flows(view.log, [run.flow for run in some])) if some else []

    if not view.is_operator:
        return draw(runs)
    new = [run for run in runs if not _drawn.has(run.same)]
    made = {run.same: one for run, one in zip(new, draw(new), strict=True)}

    def make(run: AsItIs) -> Diagram:
        return made.get(run.same) or draw([run])[0]

    return [_drawn.of(run.same, partial(make, run)) for run in runs]


def positions_of(view: View, run: AsItIs) -> list[int]:
    """Return where the events of a run stand, as far as the caller sees them."""
    positions = [step.position for step in _steps_of(view, run)]
    if view.is_operator:
        return positions
    return [one.position for one in view.known(view.log.at(positions))]


def _steps_of(view: View, run: AsItIs) -> tuple[Step, ...]:
    """Return the events of a run, which are looked for once as long as none is added."""
    return _stepped.of(run.same, lambda: tuple(steps_of_flow(view.log, run.flow)))


def _summary(view: View, run: AsItIs, drawn: Diagram) -> JsonObject:
    flow = run.flow
    value = flow_value(flow)
    ended = flow.ended_ms if isinstance(flow, RunOutcome) else flow.closed_ms
    timed = [row.time for row in _own(drawn) if not isinstance(row, Gap)]
    pauses = pauses_in(view.log)
    began = without_pauses(pauses)
    held = held_ms(drawn.holds, began)
    seen = [row for row in run.sent if view.is_seen(row.session_key)]
    sent = [present({"id": row.delivery_id, "channel": row.channel, "state": row.state}) for row in seen]
    return value | present(
        {
            "title": _title(drawn),
            "lanes": [_lane(lane) for lane in drawn.lanes],
            "outline": _outline(flow, drawn),
            "endedMs": ended,
            "tookMs": max([*timed, *((ended,) if ended is not None else ())]) - began(flow.accepted_ms) - held
            if timed
            else None,
            "heldMs": held or None,
            "heldSince": flow.held_since_ms if isinstance(flow, ExchangeSummary) else None,
            "pauses": [[pause.cut_ms, pause.born_ms] for pause in pauses] or None,
            "deliveries": sent or None,
            "failed": has_failed(flow, seen) or None,
            "began": flow.accepted_ms,
            "held": flow.held if isinstance(flow, ExchangeSummary) else None,
        }
    )


def titles_of(view: View, flows: Sequence[Flow]) -> list[str]:
    """Return the first words of runs: how pages call them."""
    return list(map(_title, drawings_of(view, as_they_are(view, flows))))


def _title(drawn: Diagram) -> str:
    said = next((row.text for row in _own(drawn) if isinstance(row, Arrow)), "")
    return (said or next((row.text for row in _own(drawn) if isinstance(row, Mark)), ""))[:_TITLE]


def _own(drawn: Diagram) -> Iterator[Row]:
    """Yield the rows of a run without those of the run that called."""
    return (row for row in drawn.rows if isinstance(row, Gap) or row.caller is not True)


def _lane(lane: Lane) -> JsonObject:
    return {"id": lane.id, "name": lane.name, "kind": "sub" if _is_sub(lane) else lane.kind}


def _is_sub(lane: Lane) -> bool:
    """Whether a lane is a sub-agent's. What a message says of who wrote it need be no key: imported ones say `main`."""
    try:
        return lane.kind == "session" and SessionKey.recorded(lane.id).is_subagent
    except InvalidKey:
        return False


def _outline(flow: Flow, drawn: Diagram) -> list[list[int | str]]:
    """Return the ticks of a run: `[letter, lane, position]`.

    `u` is said by the requester, `d` by the target, `p` by a person, `c` to a channel; `/` is a gap, `x` a failure, `e` an end.
    """
    asked = next((key for key in reversed(flow_sessions(flow))), None)
    found: list[list[int | str]] = []
    for row in drawn.rows:
        tick = _tick(row, drawn.lanes, asked)
        if tick is not None:
            found.append(tick)
    if len(found) > _TICKS:
        step = len(found) / _TICKS
        found = [found[int(number * step)] for number in range(_TICKS - 1)] + found[-1:]
    return found


def _tick(row: Row, lanes: Sequence[Lane], asked: str | None) -> list[int | str] | None:
    match row:
        case Gap():
            return ["/", -1, 0]
        case Arrow():
            source, target = lanes[row.source], lanes[row.target]
            if target.kind != "session":
                return ["c", row.target, row.position]
            if source.kind in {"person", "operator"}:
                return ["p", row.source, row.position]
            return ["d" if source.id == asked else "u", row.source, row.position]
        case Mark(kind="failed"):
            return ["x", -1 if row.lane is None else row.lane, row.position]
        case Mark(kind="end", lane=None):
            return ["e", -1, row.position]
        case Mark(lane=int(lane), text=text) if text.startswith(("says ", "replies", "turn ")):
            return ["d" if lanes[lane].id == asked else "u", lane, row.position]
        case Mark():
            return None
