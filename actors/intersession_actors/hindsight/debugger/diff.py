"""The verb `diff`: the differences between two runs (DIFF)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Final, NamedTuple, NotRequired, TypedDict

import msgspec

from intersession_actors.hindsight.debugger.answers import PlaceAnswer
from intersession_actors.hindsight.debugger.forks import ForkViews
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import PlaceText
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import FlowAccepted, ready, run_named
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_projections.copies.forks.pauses import pauses_in, without_pauses
from intersession_projections.questions.differences.comparing import Row, RowKind, compare
from intersession_projections.questions.differences.outlines import outline_of
from intersession_projections.questions.differences.parts import FlowKind, Outline, Part
from intersession_projections.questions.places.located import read_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.flows.rows import DeliverySummary, Position
from intersession_projections.views.run_outcomes.replies import Replies

_WHOLE: Final = 2**62
_MOST: Final = 1000
"""The most exchanges and spawns of one run that are compared."""


@ready
class Diff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `diff`."""

    a: Annotated[
        PlaceText,
        msgspec.Meta(
            description="An exchange, a spawn or a run, by any name of it; or a place of one, RUN@turn:1: then as far as there."
        ),
    ]
    b: Annotated[PlaceText, msgspec.Meta(description="What it is compared with, named likewise.")]
    exact: Annotated[
        bool, msgspec.Meta(description="Ids, times, positions and hashes count, too. Default: false.")
    ] = False


class ComparedAnswer(TypedDict):
    """One side: an exchange, a spawn or a run, as it stood at `place`, and its outcome by then.

    `totals` are `{turns, loopEnd, end, tokens, costMicros, durationMs, deliveries}`.
    """

    run: str
    kind: FlowKind
    place: PlaceAnswer
    totals: JsonObject


class TurnAnswer(TypedDict):
    """A part of either run or of both: `turn` names it by structure (`turn:2`, `reply/sessions_send:2/result`).

    `a` and `b` have its `place` and what it is made of: `who`, `text`, `status` and so on; None where it is not there. `differs`
    has `{field, a, b, words: [{of, text}]}` for each field, where it has changed.
    """

    turn: str
    kind: RowKind
    a: JsonObject | None
    b: JsonObject | None
    differs: NotRequired[list[JsonObject]]


class DivergenceAnswer(TypedDict):
    """The first difference of two runs. `place` is the one in A, else that in B; `a` and `b` are both sides, if present."""

    turn: str
    kind: RowKind
    place: PlaceAnswer
    a: PlaceAnswer | None
    b: PlaceAnswer | None


class DiffAnswer(TypedDict):
    """The differences of two runs. `totals` repeats those of `a` and `b`; they never count as a difference."""

    same: bool
    firstDivergence: DivergenceAnswer | None
    turns: list[TurnAnswer]
    totals: JsonObject
    a: ComparedAnswer
    b: ComparedAnswer


def diff(view: View, given: Diff) -> DiffAnswer:
    """Return the differences between two runs of a log, or of forks of it.

    Raises:
        ToolRefused: what is named is no run, and no place of one (`invalid_request`).
    """
    return diff_of(view, view, given)


def diff_of(of_a: View, of_b: View, given: Diff) -> DiffAnswer:
    """Return the differences between a run of one log and a run of another.

    Raises:
        ToolRefused: as `diff`.
    """
    with ForkViews(of_a) as forks_a, ForkViews(of_b) as forks_b:
        in_a, name_a = forks_a.meant(given.a, field="a")
        in_b, name_b = forks_b.meant(given.b, field="b")
        return _answer(_compared(in_a, name_a, "a"), _compared(in_b, name_b, "b"), exact=given.exact)


def _answer(a: "_Compared", b: "_Compared", *, exact: bool) -> DiffAnswer:
    found = compare(a.outline, b.outline, exact=exact)
    in_a, in_b = a.shown(row.a for row in found.rows), b.shown(row.b for row in found.rows)
    if a.view is b.view:
        places = a.view.at_each([*in_a, *in_b])
        a, b = a._replace(places=places), b._replace(places=places)
    else:
        a, b = a._replace(places=a.view.at_each(in_a)), b._replace(places=b.view.at_each(in_b))
    first = None if found.first is None else _divergence(a, b, found.first)
    answers = a.answer(), b.answer()
    return {
        "same": found.same,
        "firstDivergence": first,
        "turns": [_turn(a, b, row) for row in found.rows],
        "totals": {"a": answers[0]["totals"], "b": answers[1]["totals"]},
        "a": answers[0],
        "b": answers[1],
    }


class _Compared(NamedTuple):
    """One of the two, as far as it is looked at."""

    view: View
    flow: Flow
    at: int
    outline: Outline
    places: Mapping[int, PlaceAnswer] = {}
    """The places of its parts that are shown, and of its end."""

    def shown(self, parts: Iterable[Part | None]) -> list[int]:
        """Return the positions whose places are shown: of some parts, and of its end."""
        return [*(part.position for part in parts if part is not None), self.at]

    def answer(self) -> ComparedAnswer:
        totals: JsonObject = msgspec.to_builtins(self.outline.totals)
        return {
            "run": flow_id(self.flow),
            "kind": self.outline.kind,
            "place": self.places[self.at],
            "totals": totals,
        }

    def side(self, part: Part | None) -> JsonObject | None:
        if part is None:
            return None
        return {"place": self.places[part.position], **part.sessions, **part.fields}


def _turn(a: _Compared, b: _Compared, row: Row) -> TurnAnswer:
    answer: TurnAnswer = {"turn": row.path, "kind": row.kind, "a": a.side(row.a), "b": b.side(row.b)}
    if row.differs:
        answer["differs"] = msgspec.json.decode(msgspec.json.encode(row.differs))
    return answer


def _divergence(a: _Compared, b: _Compared, row: Row) -> DivergenceAnswer | None:
    of_a = None if row.a is None else a.places[row.a.position]
    of_b = None if row.b is None else b.places[row.b.position]
    place = of_a or of_b
    return (
        None if place is None else {"turn": row.path, "kind": row.kind, "place": place, "a": of_a, "b": of_b}
    )


def _compared(view: View, name: str, field: str) -> _Compared:
    flow, at = _named(view, name, field)
    events = _events(view, flow, at)
    last = events[-1].position if events else flow.accepted
    return _Compared(view, flow, last, _outline(view, flow, events, at, frozenset()))


def _named(view: View, name: str, field: str) -> tuple[Flow, int]:
    """Return the flow that a text names, and up to where: the whole of it for a run, else up to the place."""
    name, place = view.parted(name, field=field)
    flow = view.flow(name, field=field)
    return flow, _WHOLE if place is None else view.place(place, field=field).position


def _events(view: View, flow: Flow, at: int) -> list[Recorded]:
    found = read_flow(view.log, flow).events
    replies = Replies(found)  # what has a text may stand right behind what names it
    return list(view.known(replies.with_texts(own) for own in found if own.position <= at))


def _outline(view: View, flow: Flow, events: list[Recorded], at: int, around: frozenset[str]) -> Outline:
    """Return a flow by its parts; `around` are the flows that it is inside of."""
    inside = around | {flow_id(flow)}
    known = _begun_by_each(view, events)

    def begun(run_id: str) -> Iterator[tuple[str, Outline]]:
        for inner in known.get(run_id, ()):
            name = flow_id(inner)
            if name not in inside and inner.accepted <= at and (of_inner := _events(view, inner, at)):
                yield name, _outline(view, inner, of_inner, at, inside)

    return outline_of(
        flow.kind,
        events,
        begun=begun,
        shown=lambda text, key: view.shown(text, key) or "",
        since=without_pauses(pauses_in(view.log)),
    )


def _begun_by_each(view: View, events: Iterable[Recorded]) -> dict[str, list[Flow]]:
    """Return the exchanges and spawns that the agent of each run began and that some events belong to, in the order they were accepted."""
    runs = view.reader.runs.many_without_words(
        filter(None, (run_named(recorded.event) for recorded in events))
    )
    head = 0 if all(run.ended for run in runs.values()) else view.log.head()
    where = [
        Position(run.accepted, run.position if run.ended else head, run.session_key) for run in runs.values()
    ]
    flows = view.reader.flows
    exchanges, spawns = view.log.answers(
        flows.ask_at("exchange", where, _MOST), flows.ask_at("spawn", where, _MOST)
    )
    may_be = {
        flow.stream: flow
        for flow in chain.from_iterable([*exchanges, *spawns])
        if not isinstance(flow, DeliverySummary)
    }
    firsts = view.log.parts([StreamPart(stream, 0, 1) for stream in may_be]) if may_be else ()
    begun: dict[str, list[Flow]] = {}
    for flow, (first,) in zip(may_be.values(), firsts, strict=True):
        event = first.event
        if isinstance(event, FlowAccepted) and event.requester_run_id in runs:
            begun.setdefault(event.requester_run_id, []).append(flow)
    return {run_id: sorted(found, key=lambda flow: flow.accepted) for run_id, found in begun.items()}
