"""Questions about events: the list, newest first, and one with its payload, its hashes, and whether they hold."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from intersession_actors.hindsight.debugger.lists import events as verb
from intersession_actors.hindsight.debugger.lists.events import event_brief
from intersession_actors.hindsight.debugger.lists.paging import limits_applied, most_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import PlaceText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.plain_json import JsonObject, map_strings
from intersession_events.facts import ready
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.places.located import sessions_of, sessions_of_each
from intersession_projections.views.run_outcomes.replies import told_in


@ready
class Events(verb.Events, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is asked of the verb, and of its page."""

    receipts: Annotated[
        bool | None,
        msgspec.Meta(description="With what says who looked at sessions, and when. Default: true."),
    ] = None


def events(view: View, given: Events) -> JsonObject:
    """Return what the verb does, in words alone, and how far the log is: `{count, events, cursor, head}`.

    Raises:
        ToolRefused: as the verb.
    """
    rows, cursor = verb.events_found(view, given, most_of(given.limit), receipts=given.receipts is not False)
    told = zip(told_in(view.log, rows), sessions_of_each(view.log, rows), strict=True)
    return {
        "count": len(rows),
        "events": [brief(view, one, sessions) for one, sessions in told],
        "cursor": cursor,
        "head": head_of(view),
        **limits_applied(given),
    }


def head_of(view: View) -> int | None:
    """Return the last position; only the operator may know that of the whole log."""
    return view.log.head() if view.is_operator else None


def brief(view: View, recorded: Recorded, sessions: Sequence[str]) -> JsonObject:
    """Return an event as lists have it, of some sessions: an event that carries a run's text comes with the text."""
    for key in sessions:
        view.is_seen(key)  # for the receipt: what an exchange, a spawn or a delivery says is of its sessions
    told = event_brief(recorded)
    return told | {"text": _readable(view, sessions, recorded.in_words().brief)}


@ready
class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The query for one event."""

    at: Annotated[int | float | PlaceText, msgspec.Meta(description="The place behind it.")]


def event(view: View, given: Event) -> JsonObject:
    """Return one event as it is stored: payload, hashes, and whether the chain holds there; `said` is the text that it stands for.

    Raises:
        ToolRefused: there is none at that place, or none within reach (`invalid_request`).
    """
    place = view.place(given.at)
    found = _recorded(view, place.position)
    if found is None or not view.may_know(found):
        raise invalid("at", f"there is no event at {str(given.at)[:64]!a}")
    payload: JsonObject = msgspec.to_builtins(found.event)
    if not view.is_operator:
        payload.pop("traceback", None)
    before = view.log.stream(found.stream, after=found.version - 2, to=found.version - 1)
    linked = found.version == 1 or (bool(before) and before[-1].hash == found.prev)
    sessions = sessions_of(view.log, found)
    (told,) = told_in(view.log, [found])
    said = told.in_words().text
    return brief(view, told, sessions) | {
        "said": said and _readable(view, sessions, said),
        "causation": found.causation,
        "correlation": found.correlation,
        "decision": msgspec.json.decode(found.decision) if found.decision and view.is_operator else None,
        "epoch": found.epoch,
        "hash": found.hash,
        "prev": found.prev,
        "digest": found.digest,
        "linkedTo": before[-1].position if before and found.version > 1 else None,
        # A row whose hash is not that of what stands in it is never returned by the log.
        "holds": linked,
        "redacted": found.position in view.hidden_at,
        "data": map_strings(payload, lambda _, text: _readable(view, sessions, text)),
    }


def _recorded(view: View, position: int) -> Recorded | None:
    try:
        return next(iter(view.log.all(after=position - 1, to=position)), None) if position else None
    except CorruptEvent as error:
        raise ToolRefused("unavailable", f"#{position} is not as it was written: {error}") from None


def _readable(view: View, sessions: Sequence[str], text: str) -> str:
    """Return words of an event without the secrets that the caller may not read in any of its sessions."""
    if view.is_operator:
        return text
    shown = [view.shown(text, key) or "" for key in sessions]
    return text if text in shown or not shown else shown[0]
