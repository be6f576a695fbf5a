"""Finds the streams that a bundle has: all that answers its question, and all that those refer to (BUNDLE-1)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_actors.hindsight.debugger.lists.person_texts import (
    PersonTexts,
    person_of,
    person_texts_found,
)
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.ids import delivery_stream, notes_stream, session_stream
from intersession_events.basics.plain_json import JsonObject, present
from intersession_projections.basics.spans import Span
from intersession_projections.copies.forks.closure import closed_streams, roots_of
from intersession_projections.questions.messages import MessageFilter, Messages
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_sessions
from intersession_projections.questions.work_list import WorkFilter, WorkList

_LOG = "log"
_ALL = 2**53
_BETWEEN = "SELECT DISTINCT originator_id FROM stored_events WHERE rowid>? AND rowid<=?"
_NOTES = notes_stream("")


class Selection(NamedTuple):
    """The streams of a bundle, None for the whole log, and single events of stream `log`; the run that it is of, if it is of one.

    `question` has names and places in full, so that one question has one form.
    """

    streams: frozenset[str] | None
    of_log: Sequence[int]
    flow: Flow | None
    question: JsonObject


def selection_of(view: View, wanted: BundleWanted, at: int) -> Selection:
    """Return the selection of a bundle up to a position.

    Raises:
        ToolRefused: what is named is not there, or nothing is in the bundle (`invalid_request`).
    """
    if wanted.everything:
        return Selection(None, (), None, _question(wanted, {"everything": True}))
    flow: Flow | None = None
    of_log: Sequence[int] = ()
    roots: Iterable[str]
    asked: JsonObject
    if wanted.run is not None:
        flow = view.flow(wanted.run)
        if flow.accepted > at:
            raise invalid("at", f"position {at} is before the run, whose first event is {flow.accepted}")
        roots, asked = roots_of(view.log, flow), {"run": flow_id(flow)}
    elif wanted.session is not None:
        key = view.session(wanted.session, field="session")
        roots, asked = [session_stream(key)], {"session": key}
    elif wanted.person is not None:
        roots, asked = [*_of_person(view, wanted.person, at)], {"person": wanted.person}
        if not roots:
            raise invalid(
                "person",
                f"nobody of that name asked for anything up to position {at}: {wanted.person[:64]!a}; "
                "`intersession messages` shows the people of a log",
            )
    elif wanted.positions is None:
        after = 0 if wanted.since is None else view.place(wanted.since, field="since").position
        roots = [name for (name,) in view.log.query(_BETWEEN, (after, at)) if name != _LOG]
        asked = {"since": after, "until": at}
        if not roots:
            raise invalid(
                "since", f"no event of a session or a flow stands between positions {after} and {at}"
            )
    else:
        found = [*view.log.at(one for one in wanted.positions if 0 < one <= at)]
        roots = dict.fromkeys(one.stream for one in found if one.stream != _LOG)
        of_log = [one.position for one in found if one.stream == _LOG]
        asked = {"positions": [one.position for one in found]}
        if not found:
            raise invalid("positions", "there are no events there, so that nothing is in the bundle")
    streams = closed_streams(view.log, roots, at)
    streams |= {*_notes_beside(view, streams)}
    return Selection(streams, of_log, flow, _question(wanted, asked))


def _question(wanted: BundleWanted, asked: JsonObject) -> JsonObject:
    return wanted.question or present({**asked, "redact": wanted.redact})


def _of_person(view: View, person: str, at: int) -> Iterator[str]:
    """Yield the streams of all that was done for a person, of the sessions that they spoke to, and of what went to them."""
    log, span = view.log, Span(to=at)
    for said in Messages(log).said(MessageFilter(person=person, span=span)):
        yield session_stream(said.target)
    for flow in WorkList(log).newest(WorkFilter(person=person, span=span)):
        yield from roots_of(log, flow)
    try:
        known = person_of(view, person)
    except ToolRefused:
        return  # a name that nobody has; what was found by it, if anything, is all
    for text in person_texts_found(view, PersonTexts(person=person, until=at), known, _ALL).rows:
        yield session_stream(text.session_key)
        if text.delivery is not None:
            yield delivery_stream(text.delivery.delivery_id)


def _notes_beside(view: View, streams: frozenset[str]) -> Iterator[str]:
    """Yield the streams of notes that lie beside the runs of some sessions: no event refers to them."""
    for stream in view.log.streams(_NOTES):
        name = stream.removeprefix(_NOTES)
        if view.is_run(name) and {*map(session_stream, flow_sessions(view.flow(name)))} <= streams:
            yield stream
