"""The verb `show`: a run as a sequence diagram, within the caller's rights (SHOW-1)."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, TypedDict

import msgspec

from intersession_actors.hindsight.debugger.answers import PlaceAnswer
from intersession_actors.hindsight.debugger.smells import SmellAnswer, smells_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText, PlaceText
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ready
from intersession_events.log.recorded import Recorded
from intersession_projections.copies.forks.pauses import pauses_in
from intersession_projections.questions.diagram.diagram import Diagram, diagram_of
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, Mark, Row
from intersession_projections.questions.places.calling import calling_runs
from intersession_projections.questions.places.located import Located, ReadFlow, read_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_sessions
from intersession_projections.views.sessions.names import SessionNames


@ready
class Show(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `show`; null counts as missing."""

    run: Annotated[
        KeyText,
        msgspec.Meta(
            description="An exchange, a spawn or a run, by any name that is shown; or a place of one."
        ),
    ]
    at: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(description="The place that it is looked at from. Default: as far as it has come."),
    ] = None


class ShowAnswer(TypedDict):
    """A sequence diagram. `lanes` are `{id, name, kind}` in order of appearance, `rows` come in log order.

    A row is an `arrow` (`source`, `target`, `text`, `how`), a `mark` (`lane`, `text`, `kind`) or a `gap` (`ms`); lanes are
    meant by number. What stands behind the place is there too: a row's `position` tells. `smells` is what is seldom meant in
    it, up to the place.
    """

    run: str
    place: PlaceAnswer
    next: PlaceAnswer | None
    lanes: list[JsonObject]
    rows: list[JsonObject]
    smells: list[SmellAnswer]


def show(view: View, given: Show) -> ShowAnswer:
    """Return the diagram of a run.

    Raises:
        ToolRefused: there is no such run, or the place is invalid (`invalid_request`).
    """
    run, at = _meant(view, given)
    place = view.end_of(run) if at is None else at
    last = None if at is None else at.position
    drawn = drawings(view, [run], last)[0]
    return {
        "run": flow_id(run.flow),
        "place": view.say(place, run),
        "next": view.say_next(place, run),
        "lanes": msgspec.to_builtins(drawn.lanes),
        "rows": msgspec.to_builtins(drawn.rows),
        "smells": smells_of(view, run, last),
    }


def drawing(view: View, given: Show) -> Diagram:
    """Return the diagram of a run, for drawing.

    Raises:
        ToolRefused: as `show`.
    """
    run, at = _meant(view, given)
    return drawings(view, [run], None if at is None else at.position)[0]


def _meant(view: View, given: Show) -> tuple[ReadFlow, Located | None]:
    """Return the run that is asked for, and the place, if one is given."""
    name, at = view.parted(given.run, given.at, field="run")
    flow = view.flow(name)
    place = None if at is None else view.place(at)
    return read_flow(view.log, flow), place


def drawings(view: View, runs: Sequence[ReadFlow], at: int | None = None) -> list[Diagram]:
    """Return the diagrams of exchanges, spawns and runs; their other inputs are read for all at once."""
    own = [{one.position: one for one in run.events} for run in runs]
    calling = calling_runs(view.log, runs)
    of_callers = [
        frozenset[int]() if caller is None else caller.shown - of.keys()
        for caller, of in zip(calling, own, strict=True)
    ]
    there = {one.position: one for of in own for one in of.values()}
    there |= {one.position: one for one in view.log.at(frozenset[int]().union(*of_callers) - there.keys())}
    seen = {one.position: one for one in view.known(there[position] for position in sorted(there))}
    forked = [pause.born_ms for pause in pauses_in(view.log)]
    called = _Called(view, [run.flow for run in runs], seen.values())
    drawn = [
        diagram_of(
            [seen[position] for position in sorted(of.keys() | of_caller) if position in seen],
            title=f"run {flow_id(run.flow)}",
            names=called.in_one(),
            at=at,
            forked=forked,
        )
        for run, of, of_caller in zip(runs, own, of_callers, strict=True)
    ]
    return [
        msgspec.structs.replace(
            one, rows=tuple(_of_caller(_readable(view, one.lanes, row), of_caller) for row in one.rows)
        )
        for one, of_caller in zip(drawn, of_callers, strict=True)
    ]


def _of_caller(row: Row, positions: frozenset[int]) -> Row:
    is_callers = not isinstance(row, Gap) and row.position in positions
    return msgspec.structs.replace(row, caller=True) if is_callers else row


def _readable(view: View, lanes: Sequence[Lane], row: Row) -> Row:
    """Return a row without the secrets that the caller may read in none of its sessions."""
    match row:
        case Gap():
            return row
        case Arrow():
            of = [lanes[row.source], lanes[row.target]]
        case Mark():
            of = list(lanes) if row.lane is None else [lanes[row.lane]]
    shown = [view.shown(row.text, lane.id) for lane in of if lane.kind == "session"]
    if not shown or row.text in shown:  # one of the sessions is its own: it has the words anyway
        return row
    return msgspec.structs.replace(row, text=shown[0] or "")


class _Called:
    """Names of sessions in diagrams of some flows: the sessions of their events are looked up at once."""

    def __init__(self, view: View, flows: Sequence[Flow], events: Iterable[Recorded]) -> None:
        streams = (one.stream.partition(":") for one in events)
        keys = [key for flow in flows for key in flow_sessions(flow)]
        keys += [key for kind, _, key in streams if kind == "session"]
        self._names = SessionNames(view.log, view.sees)
        self._called = self._names.of(dict.fromkeys(keys))

    def in_one(self) -> Callable[[str], str]:
        """Return how they are called in one diagram: two of one short name keep their whole keys."""
        keys: dict[str, str] = {}

        @cache
        def name(key: str) -> str:
            short = self._called.get(key) or self._names.one(key)
            return short if keys.setdefault(short, key) == key else key

        return name
