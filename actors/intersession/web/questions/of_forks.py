"""Questions about forks: the forks of this log and their outcomes; any question about one of them; and a comparison."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import msgspec

from intersession.web.happened import forks_state
from intersession.web.questions.of_runs import titles_of
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import KeyText, Name, PlaceText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.forks.files import forks_beside, forks_called, is_itself
from intersession_events.facts import ForkedFrom, ready
from intersession_events.log.log import Log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log
from intersession_projections.copies.forks.summary import ForkSummary, fork_summary
from intersession_projections.questions.places.located import Located, read_flow
from intersession_projections.questions.places.runs_named import flow_id
from intersession_projections.views.inline_views import inline_views


@ready
class Forks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filter for forks."""

    run: Annotated[KeyText | None, msgspec.Meta(description="Only forks of this run. Default: all.")] = None


def forks(view: View, given: Forks) -> JsonObject:
    """Return the forks that lie beside the log, the newest first: `{forks, from, state}`; `from` is set if this log is a fork itself.

    `state` stands for all of them: the live stream says when it is another one.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    wanted = None if given.run is None else flow_id(view.flow(given.run))
    state = forks_state(view.log)  # before they are read: what changes meanwhile is asked for again
    found: list[JsonObject] = []
    for file in forks_beside(view.log.place) if view.log.place != MEMORY else ():
        try:
            with open_log(str(file), read_only=True) as log:
                told = fork_summary(log) if is_itself(log, file) else None
        except LogError as error:
            found.append({"id": file.stem, "file": str(file), "timeMs": 0, "problem": str(error)})
            continue
        if told is not None and wanted in {None, told.run, told.outcome.run}:
            found.append({**msgspec.to_builtins(told), **_in_words(view, told), "file": str(file)})
    here = view.log.forked
    return {
        "forks": sorted(found, key=lambda fork: -fork["timeMs"]),
        "from": None
        if here is None
        else {"logId": here.log_id, "position": here.position, "flow": here.flow},
        "state": state,
    }


def _in_words(view: View, told: ForkSummary) -> JsonObject:
    """Return the first words of the run that was forked, and where it was cut as it stood there, where that run is in this log."""
    place: JsonObject = msgspec.to_builtins(told.place)
    if told.parent != view.log.log_id:
        return {"place": place}
    try:
        flow = view.flow(told.run)
    except ToolRefused:  # taken out of the log since
        return {"place": place}
    cut = Located(position=told.place.position, time_ms=told.place.time_ms or 0, is_named=True)
    (title,) = titles_of(view, [flow])
    return {"title": title, "place": {**place, "text": view.say(cut, read_flow(view.log, flow))["text"]}}


@contextmanager
def in_fork(view: View, name: str | None) -> Generator[View]:
    """Yield the log of a fork as the operator sees it, by the beginning of its id; without an id, the log itself.

    Raises:
        ToolRefused: there is no such fork (`invalid_request`).
    """
    if name is None or name == view.log.log_id:
        yield view
        return
    found = forks_called(view.log.place, name) if view.log.place != MEMORY else []
    if len(found) != 1:
        many = (
            "several forks have ids that begin so, give more of the id"
            if found
            else "no fork of this log has that id"
        )
        raise invalid("fork", f"{name[:64]!a}: {many}")
    reader = view.reader
    with open_log(str(found[0]), read_only=True, inline=inline_views()) as log:
        inside = View(Reader(log, config=lambda: reader.config, clock=reader.clock, smells=reader.smells))
        inside = inside.hiding() if view.hides else inside
        try:
            yield inside
        finally:
            view.touched |= inside.touched
            view.hidden_at |= inside.hidden_at


def asked_in(
    name: str | None, question: Callable[[View], Mapping[str, object]]
) -> Callable[[View], Mapping[str, object]]:
    """Return a question that asks a fork, or the log itself if no fork is named."""

    def asked(view: View) -> Mapping[str, object]:
        with in_fork(view, name) as inside:
            return question(inside)

    return asked


@ready
class Compare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query for a comparison."""

    a: Annotated[PlaceText, msgspec.Meta(description="A run, or a place of one.")]
    b: Annotated[PlaceText, msgspec.Meta(description="What it is compared with, named likewise.")]
    other: Annotated[Name | None, msgspec.Meta(description="The fork that B is in. Default: this log.")] = (
        None
    )
    exact: Annotated[bool, msgspec.Meta(description="Ids, times, positions and hashes count, too.")] = False


def compare(view: View, given: Compare) -> JsonObject:
    """Return the differences between two runs, or between a run and its fork; of a fork also its `cut` and its `edits`.

    `cuts` are all that lie between the two, in the order of the log, each with its `side`: a fork of a fork has one for each
    fork on the way. `titles` are the first words of both.

    Raises:
        ToolRefused: a run, a place or the fork is unknown.
    """
    with in_fork(view, given.other) as inside:
        found = Debugger(view).diff(given.a, given.b, exact=given.exact, other=Debugger(inside))
        born = inside.log.forked if given.other is not None else None
        cut = None if born is None else {"position": born.position, "edits": msgspec.to_builtins(born.edits)}
        sides = (("a", view, found["a"]), ("b", inside, found["b"]))
        a, b = (of.flow(one["run"]) for _, of, one in sides)
        titles = (
            titles_of(view, [a, b]) if inside is view else [*titles_of(view, [a]), *titles_of(inside, [b])]
        )
        cuts = [*_cuts("a", view.log, inside.log), *_cuts("b", inside.log, view.log)]
        cuts.sort(key=lambda one: one["position"])
        return {**found, "cut": cut, "cuts": cuts, "titles": dict(zip(("a", "b"), titles, strict=True))}


def _cuts(side: str, of: Log, other: Log) -> Iterator[JsonObject]:
    """Yield where forks were cut on the way to a log, from where it parts from another one."""
    if of.forked is None:
        return
    forks = [one.event for one in of.stream("log") if isinstance(one.event, ForkedFrom)]
    made = [*(fork.log_id for fork in forks[1:]), of.log_id]
    for fork, log_id in zip(forks, made, strict=True):
        if log_id not in other.log_ids:
            yield {"side": side, "position": fork.position, "edits": msgspec.to_builtins(fork.edits)}
