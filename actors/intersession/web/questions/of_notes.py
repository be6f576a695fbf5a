"""The question about notes: what viewers of a run wrote beside it, and at which places."""

from typing import Annotated

import msgspec

from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText
from intersession_events.basics.ids import notes_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import NotePinned, ready
from intersession_projections.questions.places.runs_named import flow_id, flow_sessions


@ready
class Notes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filter for notes."""

    run: Annotated[KeyText, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it.")]


def notes(view: View, given: Notes) -> JsonObject:
    """Return the notes beside a run, the oldest first: `{notes: [{position, timeMs, by, text, place}]}`.

    Raises:
        ToolRefused: there is no such run (`invalid_request`).
    """
    flow = view.flow(given.run)
    keys = [key for key in flow_sessions(flow) if view.is_seen(key)]
    return {"notes": notes_of(view, flow_id(flow), keys[0] if keys else "")}


def notes_of(view: View, run: str, key: str) -> list[JsonObject]:
    """Return the notes beside a run; secrets in them are hidden as those of its session `key` are."""
    pinned = view.log.stream(notes_stream(run))
    places = view.at_each(one.event.position for one in pinned if isinstance(one.event, NotePinned))
    return [
        {
            "position": recorded.position,
            "timeMs": recorded.time,
            "by": recorded.event.by,
            "text": view.shown(recorded.event.text, key),
            "place": places[recorded.event.position],
        }
        for recorded in pinned
        if isinstance(recorded.event, NotePinned)
    ]
