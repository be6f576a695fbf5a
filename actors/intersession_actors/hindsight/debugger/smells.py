"""The verb `smells`: unusual patterns in a run, or in all runs of a log (SMELL-1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Final, TypedDict

import msgspec

from intersession_actors.hindsight.debugger.answers import PlaceAnswer
from intersession_actors.hindsight.debugger.lists.paging import AtArgument, most_of
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import CHOICES, KeyText, Name
from intersession_actors.rules.gate.values import invalid
from intersession_events.facts import ready
from intersession_projections.questions.places.located import ReadFlow, read_flow, read_flows
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_sessions
from intersession_projections.questions.places.then import Then
from intersession_projections.questions.smells.smell import Smell
from intersession_projections.questions.smells.smells import Smells
from intersession_projections.questions.work_list import WorkFilter, WorkList
from intersession_projections.views.run_outcomes.outcome import RunOutcome

_FIRST: Final = 64
_MOST_AT_ONCE: Final = 2_000
LOOKED_AT: Final = 500
"""The number of exchanges, spawns and runs that are checked for a page, newest first: most have no smell."""


@ready
class SmellsOf(InSpan, frozen=True, forbid_unknown_fields=True):
    """The arguments of `smells`; null counts as missing."""

    run: Annotated[
        KeyText | None,
        msgspec.Meta(
            description="An exchange, a spawn or a run, by any name that is shown. Default: all that smell."
        ),
    ] = None
    session: Annotated[
        KeyText | None, msgspec.Meta(description="Only runs that this session took part in.")
    ] = None
    code: Annotated[
        Annotated[Sequence[Name], msgspec.Meta(max_length=CHOICES.most)] | None,
        msgspec.Meta(description="Only smells of these codes (polite_loop, loop_cut, …)."),
    ] = None
    at: AtArgument = None
    limit: Annotated[
        float | None,
        msgspec.Meta(description="At most this many runs that smell, 1 to 1000; 50 if not given."),
    ] = None


class SmellAnswer(TypedDict):
    """One smell: its code, where it shows, and a sentence."""

    code: str
    place: PlaceAnswer
    text: str


class SmellsAnswer(TypedDict):
    """The smells of a run, or of its exchange or spawn."""

    run: str
    smells: list[SmellAnswer]


class SmellingAnswer(TypedDict):
    """The runs of a log with smells, newest first, each by the id of its exchange or spawn, if it belongs to one.

    `looked` is at how many of them was looked; `cursor` goes on behind those.
    """

    runs: list[SmellsAnswer]
    looked: int
    cursor: str | None


def smells(view: View, given: SmellsOf) -> SmellsAnswer | SmellingAnswer:
    """Return the smells of an exchange, a spawn or a run in log order, or all runs that have some.

    Raises:
        ToolRefused: nothing has that name, or several are (`invalid_request`); a place, a code or the cursor is invalid.
    """
    if given.run is None:
        return _of_all(view, given)
    for name in ("session", "since", "until", "cursor", "limit"):
        if getattr(given, name) is not None:
            raise invalid(name, "it is for all runs, leave it or run out")
    name, at = view.parted(given.run, given.at, field="run")
    flow, last = view.flow(name), None if at is None else view.place(at).position
    found = smells_of(view, read_flow(view.log, flow), last)
    return {"run": flow_id(flow), "smells": [smell for smell in found if _is_of(smell, given)]}


def smells_of(view: View, run: ReadFlow, at: int | None = None) -> list[SmellAnswer]:
    """Return the smells of an exchange, a spawn or a run, as far as the caller sees the events that show them."""
    return smells_of_all(view, [run], at)[0]


def smells_of_all(view: View, runs: Sequence[ReadFlow], at: int | None = None) -> list[list[SmellAnswer]]:
    """Return the same for several."""
    smelled = Smells(view.log, view.reader.smells).of_each(runs, to=at)
    places = view.at_each(smell.position for smells in smelled for smell in smells)
    return [_seen(view, run.flow, smells, places) for run, smells in zip(runs, smelled, strict=True)]


def _of_all(view: View, given: SmellsOf) -> SmellingAnswer:
    limit = most_of(given.limit)
    at = None if given.at is None else view.place(given.at).position
    wanted = WorkFilter(
        session_key=None if given.session is None else view.session(given.session, field="session"),
        span=span_of(view, given),
    )
    work = WorkList(view.log, None if at is None else Then(view.log, at), sees=view.sees)
    seen = view.seen_of(work.newest(wanted), flow_sessions)
    answer: SmellingAnswer = {"runs": [], "looked": 0, "cursor": None}
    last: Flow | None = None
    for flow, smelled in smells_of_each(view, islice(seen, LOOKED_AT + 1), at):
        if last is not None and (len(answer["runs"]) == limit or answer["looked"] == LOOKED_AT):
            answer["cursor"] = str(last.accepted)
            break
        answer["looked"], last = answer["looked"] + 1, flow
        found = [smell for smell in smelled if _is_of(smell, given)]
        if found:
            answer["runs"].append({"run": flow_id(flow), "smells": found})
    return answer


def smells_of_each(
    view: View, flows: Iterator[Flow], at: int | None = None, *, at_once: int = _FIRST
) -> Iterator[tuple[Flow, list[SmellAnswer]]]:
    """Yield flows with their smells, read for some at once, and for more each time: most smell of nothing."""
    size = min(at_once, _MOST_AT_ONCE)
    while some := list(islice(flows, size)):
        yield from zip(some, smells_of_all(view, read_flows(view.log, some), at), strict=True)
        size = min(4 * size, _MOST_AT_ONCE)


def _seen(
    view: View, flow: Flow, smells: Iterable[Smell], places: Mapping[int, PlaceAnswer]
) -> list[SmellAnswer]:
    for session in flow_sessions(flow):
        view.is_seen(session)
    key = flow.session_key if isinstance(flow, RunOutcome) else ""
    return [
        {"code": smell.code, "place": place, "text": view.shown(smell.text, key) or ""}
        for smell in smells
        if (place := places[smell.position])["eventId"] is not None
    ]


def _is_of(smell: SmellAnswer, given: SmellsOf) -> bool:
    return not given.code or smell["code"] in given.code
