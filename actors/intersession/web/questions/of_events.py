"""Questions about events: the list, newest first, and one with its payload, its hashes, and whether they hold."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.arguments import bounded
from intersession_actors.hindsight.debugger.lists.events import EventsWanted, event_brief
from intersession_actors.hindsight.debugger.search import InSpan, check_kinds, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import CHOICES, KeyText, Name, PlaceText, SearchText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonObject, map_strings
from intersession_events.facts import ready
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.wording.events import words_in
from intersession_projections.questions.places.located import sessions_of, sessions_of_each
from intersession_projections.views.run_outcomes.replies import told_in

USUAL: Final = 100
MOST: Final = 500


@ready
class Events(InSpan, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which events are asked for: all that is given holds."""

    kind: Annotated[
        Annotated[tuple[Name, ...], msgspec.Meta(max_length=CHOICES.most)] | None,
        msgspec.Meta(description="Only events of these names (turn_ended, run_failed, …)."),
    ] = None
    stream: Annotated[
        SearchText | None, msgspec.Meta(description="Only of streams that begin so: exchange:46a2, delivery:")
    ] = None
    session: Annotated[KeyText | None, msgspec.Meta(description="Only of this session's own stream.")] = None
    receipts: Annotated[
        bool | None,
        msgspec.Meta(description="With what says who looked at sessions, and when. Default: true."),
    ] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many, 1 to 500; 100 if not given.")
    ] = None


def events(view: View, given: Events) -> JsonObject:
    """Return events, the newest first: `{events, cursor, head}`.

    Raises:
        ToolRefused: a kind, a session, a place or the cursor is none.
    """
    check_kinds(given.kind or ())
    wanted = EventsWanted(
        kinds=frozenset(given.kind or ()),
        stream=None
        if given.session is None
        else session_stream(view.session(given.session, field="session")),
        beginning=given.stream or "",
        receipts=given.receipts is not False,
    )
    found = view.known(wanted.newest(view.log, span_of(view, given)))
    limit = bounded(given.limit, "limit", 1, MOST, default=USUAL).value
    page, cursor = page_of(found, limit)
    told = zip(told_in(view.log, page), sessions_of_each(view.log, page), strict=True)
    return {
        "events": [brief(view, one, sessions) for one, sessions in told],
        "cursor": cursor,
        "head": head_of(view),
    }


def page_of(found: Iterator[Recorded], limit: int) -> tuple[list[Recorded], str | None]:
    """Return the first page of events, and the cursor of the next one."""
    page = list(islice(found, limit + 1))
    more = len(page) > limit
    return page[:limit], str(page[limit - 1].position) if more else None


def head_of(view: View) -> int | None:
    """Return the last position; how far the whole log is, is the operator's alone to know."""
    return view.log.head() if view.is_operator else None


def brief(view: View, recorded: Recorded, sessions: Sequence[str]) -> JsonObject:
    """Return an event as lists have it, of some sessions: one that has the text of a run is handed over with it."""
    for key in sessions:
        view.is_seen(key)  # for the receipt: what an exchange, a spawn or a delivery says is of its sessions
    told = event_brief(recorded)
    return told | {"text": _readable(view, sessions, words_in(recorded).brief)}


@ready
class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which event is asked for."""

    at: Annotated[int | float | PlaceText, msgspec.Meta(description="The place behind it.")]


def event(view: View, given: Event) -> JsonObject:
    """Return one event as it is stored: payload, hashes, and whether the chain holds there; `said` are the words that it stands for.

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
    said = words_in(told).text
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
