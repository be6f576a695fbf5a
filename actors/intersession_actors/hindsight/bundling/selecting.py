"""Finds the streams that a bundle has: all that answers its question, and all that those refer to (BUNDLE-1)."""

from collections.abc import Sequence
from typing import NamedTuple

from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_actors.hindsight.debugger.view import View
from intersession_events.basics.ids import notes_stream
from intersession_events.basics.plain_json import JsonObject, present
from intersession_projections.copies.forks.closure import closed_streams, roots_of
from intersession_projections.questions.places.runs_named import Flow, flow_id


class Selection(NamedTuple):
    """The streams of a bundle, None for the whole log; the run that it is of, if it is of one; and its question with full names."""

    streams: frozenset[str] | None
    flow: Flow | None
    question: JsonObject


def selection_of(view: View, wanted: BundleWanted, at: int) -> Selection:
    """Return the selection of a bundle up to a position.

    Raises:
        ToolRefused: what is named is not there, or nothing is in the bundle (`invalid_request`).
    """
    asked: JsonObject = {"redact": wanted.redact}
    if wanted.everything:
        return _selection(None, None, wanted, {"everything": True, **asked})
    flow = None if wanted.run is None else view.flow(wanted.run)
    roots: Sequence[str] = ()
    if flow is not None:
        roots = [*roots_of(view.log, flow), notes_stream(flow_id(flow))]
        asked = {"run": flow_id(flow), **asked}
    return _selection(closed_streams(view.log, roots, at), flow, wanted, asked)


def _selection(
    streams: frozenset[str] | None, flow: Flow | None, wanted: BundleWanted, asked: JsonObject
) -> Selection:
    return Selection(streams, flow, wanted.question or present(asked))
