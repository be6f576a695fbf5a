"""The verb `smells`: what is seldom meant in an exchange, a spawn or a run (SMELL-1)."""

from typing import Annotated, TypedDict

import msgspec

from intersession_actors.debugger.answers import PlaceAnswer
from intersession_actors.debugger.view import View
from intersession_actors.gate import KeyText
from intersession_events.facts import ready
from intersession_projections.places import Flow, flow_sessions
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.smells import Smells


@ready
class SmellsOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller of `smells` gives."""

    run: Annotated[KeyText, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it.")]


class SmellAnswer(TypedDict):
    """One smell: its code, where it shows, and what it is in a sentence."""

    code: str
    place: PlaceAnswer
    text: str


class SmellsAnswer(TypedDict):
    """What is seldom meant in a run, or in the exchange or the spawn that it belongs to."""

    run: str
    smells: list[SmellAnswer]


def smells(view: View, given: SmellsOf) -> SmellsAnswer:
    """Return the smells of an exchange, a spawn or a run, in log order.

    Raises:
        ToolRefused: nothing is called that, or several are (`invalid_request`).
    """
    flow = view.flow(given.run)
    return {"run": flow.run_id, "smells": smells_of(view, flow)}


def smells_of(view: View, flow: Flow) -> list[SmellAnswer]:
    """Return the smells of an exchange, a spawn or a run, as far as who asks sees the events that show them."""
    for session in flow_sessions(flow):
        view.is_seen(session)
    found = ((smell, view.at(smell.position)) for smell in Smells(view.log, view.reader.smells).of(flow))
    key = flow.session_key if isinstance(flow, RunOutcome) else ""
    return [
        {"code": smell.code, "place": place, "text": view.shown(smell.text, key) or ""}
        for smell, place in found
        if place["eventId"] is not None
    ]
