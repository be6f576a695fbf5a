"""Questions about runs: the list, one with its outline, and the rows of its diagram and its events, part by part."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec

from intersession.web.questions.cache import LruCache, Same
from intersession_actors.calls.service.arguments import bounded
from intersession_actors.hindsight.debugger.lists import runs as verb
from intersession_actors.hindsight.debugger.lists.paging import limits_applied, most_of
from intersession_actors.hindsight.debugger.lists.runs import Stands
from intersession_actors.hindsight.debugger.show import drawings
from intersession_actors.hindsight.debugger.smells import SmellAnswer, smells_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import TurnEnded, calls_of, message_in, ready, run_named
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Ask, Question
from intersession_events.stores.opened import has_writer
from intersession_projections.copies.forks.pauses import pauses_in, without_pauses
from intersession_projections.questions.diagram.diagram import Diagram
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, Mark, Row
from intersession_projections.questions.flow_summary import in_words
from intersession_projections.questions.places.calling import calling_runs
from intersession_projections.questions.places.located import read_flow, read_flows, steps_of_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_sessions
from intersession_projections.questions.smells.smells import smell_name
from intersession_projections.questions.timeline.steps import Step
from intersession_projections.questions.work_list import (
    ask_deliveries_of_each,
    has_failed,
)
from intersession_projections.views.flows.held import held_ms
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.replies import told_in

_TICKS: Final = 48
_PART: Final = 500
_TITLE: Final = 200
_TURNS: Final = re.compile(r"\d+ turns?")


@ready
class RunsQuery(verb.Runs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of the verb, and of its page."""

    smelling: Annotated[bool, msgspec.Meta(description="Only what has a smell.")] = False


def runs(view: View, given: RunsQuery) -> JsonObject:
    """Return what the verb does, each run with what its page draws of it; of a log without any, whether it was `imported`.

    Raises:
        ToolRefused: as the verb.
    """
    marked = msgspec.structs.replace(given, smell=True)
    rows, cursor = verb.runs_found(view, marked, most_of(given.limit), only_smelling=given.smelling)
    answer: JsonObject = {
        "count": len(rows),
        "runs": _told_of(view, rows, None if given.at is None else view.place(given.at).position),
        "cursor": cursor,
        **limits_applied(given),
    }
    if not rows and view.log.query(_IMPORTED, ("import_reported.1",)):
        answer["imported"] = True
    return answer


def _told_of(view: View, rows: Sequence[Stands], at: int | None = None) -> list[JsonObject]:
    """Return runs like the verb, each with its drawing."""
    flows = [row.flow for row in rows]
    if at is None:
        sent = [[text for text, _ in row.deliveries] for row in rows]
        drawn = drawings_of(view, as_they_are(view, flows, sent))
    else:
        drawn = drawings(view, read_flows(view.log, flows), at)
    asks = view.is_operator and any(row.not_over for row in rows)
    at_work = not asks or has_writer(view.log)
    return [
        row.value(view) | _told(view, row, at_work=at_work) | _summary(view, row, one)
        for row, one in zip(rows, drawn, strict=True)
    ]


def _named(smell: SmellAnswer) -> JsonObject:
    return {**smell, "name": smell_name(smell["code"])}


def _told(view: View, row: Stands, *, at_work: bool) -> JsonObject:
    """Return a run's state in words; what it waits for only for the operator: that tells of other sessions.

    `ended` are the same words without the number of turns: how it ended, and the rest.
    """
    waits = None
    if row.not_over is not None and view.is_operator:
        waits = row.not_over.brief if at_work else row.not_over.cut_off
    words = in_words(row.flow, at_work=at_work, waits=waits)
    first, *rest = [part for part in words.split("; ") if not _TURNS.fullmatch(part)] or [""]
    return {"told": words, "ended": [first, "; ".join(rest)]}


@ready
class Run(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The query for one run."""

    run: Annotated[KeyText, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it.")]


def run(view: View, given: Run) -> JsonObject:
    """Return a run: its participants, its end, its outline, and how many rows and events it has.

    `caller` is the run that it came of, where an agent called: `{runId, sessionKey, from, to, waits}`, positions between which it was at
    work, and pairs of them between which it waited for a tool.

    `kinds` has a letter for each row of the diagram: `a` arrow, `m` mark, `g` gap. `steps` is how many events it has.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    flow = view.flow(given.run)
    own = read_flow(view.log, flow)
    (row,) = Stands.of_all(view.reader, [flow])
    (told,) = _told_of(view, [row._replace(smells=tuple(smells_of(view, own)))])
    (as_it_is,) = as_they_are(view, [flow], [[text for text, _ in row.deliveries]])
    (drawn,) = drawings_of(view, [as_it_is])
    positions = positions_of(view, as_it_is)
    # The runs before and behind are those of a session that the caller sees: of another one, that there are any is told to nobody.
    sessions = [key for key in flow_sessions(flow) if view.is_seen(key)]
    runs_beside = view.reader.runs
    first, last = (positions[0], positions[-1]) if positions else (flow.accepted, flow.position)
    before = runs_beside.last_of_session(sessions[-1], first) if sessions else None
    after = runs_beside.next_of_session(sessions[-1], last) if sessions else None
    (calling,) = calling_runs(view.log, [own])
    return told | present(
        {
            "kinds": "".join(_LETTERS[type(row)] for row in drawn.rows),
            "steps": len(positions),
            "first": first,
            "last": last,
            "sessions": sessions,
            "before": None if before is None else before.run_id,
            "after": None if after is None else after.run_id,
            "calls": verb.calls_among(view, positions) or None,
            "imported": getattr(flow, "inferred", None) or None,
            "caller": None if calling is None or not view.is_seen(calling.session_key) else calling.value(),
        }
    )


@ready
class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The query for a part of a run."""

    run: Annotated[KeyText, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it.")]
    from_: Annotated[
        float | None, msgspec.Meta(description="From which one on, counted from 0. Default: 0.")
    ] = msgspec.field(default=None, name="from")
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many, 1 to 500; 500 if not given.")
    ] = None


def rows(view: View, given: Part) -> JsonObject:
    """Return rows of a run's diagram: `{from, rows}`; lanes are given by number.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    (drawn,) = drawings_of(view, as_they_are(view, [view.flow(given.run)]))
    first, last, told = _part(given)
    return {"from": first, "rows": msgspec.to_builtins(drawn.rows[first:last]), **told}


def steps(view: View, given: Part) -> JsonObject:
    """Return events of a run, in log order: `{from, steps}`; `cause` is the position of the causing step.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    (run,) = as_they_are(view, [view.flow(given.run)])
    first, last, told = _part(given)
    wanted = positions_of(view, run)
    known = frozenset(wanted)
    causes = {step.position: step.cause for step in _steps_of(view, run) if step.cause in known}
    return {
        "from": first,
        "steps": [
            _step(view, one, causes.get(one.position))
            for one in told_in(view.log, view.log.at(wanted[first:last]))
        ],
        **told,
    }


def _part(given: Part) -> tuple[int, int, JsonObject]:
    """Return the bounds of a part, and the answer's note on a limit that did not hold."""
    first = bounded(given.from_, "from", 0, 2**53).value
    limit = bounded(given.limit, "limit", 1, _PART, default=_PART)
    return first, first + limit.value, limit.told


def _step(view: View, recorded: Recorded, cause: int | None) -> JsonObject:
    words = recorded.in_words()
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
    """A run as far as it has come, and what stands for it as long as nothing is added to it."""

    flow: Flow
    same: Same


def as_they_are(
    view: View, flows: Sequence[Flow], sent: list[list[DeliverySummary]] | None = None
) -> list[AsItIs]:
    """Return runs as far as they have come, with their deliveries, where those were read; one that is not over may go on with any event."""
    log, hidden = view.log, "hidden" if view.hides else "whole"
    head = None
    erasures = Ask([_ERASURES], lambda rows: int(str(rows[0][0][0])))
    if sent is None:
        texts, erased = log.answers(ask_deliveries_of_each(view.reader.flows, flows), erasures)
    else:
        texts, (erased,) = sent, log.answers(erasures)
    found: list[AsItIs] = []
    for flow, rows in zip(flows, texts, strict=True):
        name = f"{flow_id(flow)} {hidden}"
        if flow.is_open or any(row.is_open for row in rows):
            head = log.head() if head is None else head
            found.append(AsItIs(flow, (log.log_id, name, head)))
            continue
        # Neither of both ever shrinks: where something was added, or words were erased (ERASE-1), so is the sum another one.
        come = max([flow.position, *(row.position for row in rows)])
        found.append(AsItIs(flow, (log.log_id, name, come + erased)))
    return found


def drawings_of(view: View, runs: Sequence[AsItIs]) -> list[Diagram]:
    """Return the diagrams of runs, each drawn once as long as the run gets no event."""
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
    """Return the positions of a run's events that the caller may see."""
    positions = [step.position for step in _steps_of(view, run)]
    if view.is_operator:
        return positions
    return [one.position for one in view.known(view.log.at(positions))]


def _steps_of(view: View, run: AsItIs) -> tuple[Step, ...]:
    """Return the events of a run, which are looked for once as long as none is added."""
    return _stepped.of(run.same, lambda: tuple(steps_of_flow(view.log, run.flow)))


def _summary(view: View, row: Stands, drawn: Diagram) -> JsonObject:
    """Return a run's drawing, and its summary."""
    flow = row.flow
    ended = flow.ended_ms if isinstance(flow, RunOutcome) else flow.closed_ms
    timed = [row.time for row in _own(drawn) if not isinstance(row, Gap)]
    pauses = pauses_in(view.log)
    began = without_pauses(pauses)
    held = held_ms(drawn.holds, began)
    sent = [text for text, _ in row.deliveries if view.is_seen(text.session_key)]
    return present(
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
            "failed": has_failed(flow, sent) or None,
            "began": flow.accepted_ms,
            "smells": list(map(_named, row.smells or ())),
        }
    )


def titles_of(view: View, flows: Sequence[Flow]) -> list[str]:
    """Return the first words of runs, which are their titles on pages."""
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
