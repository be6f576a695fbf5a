"""Questions about sessions: the list as `sessions_list` gives it."""

from typing import Annotated

import msgspec

from intersession_actors.calls.tools.sessions_list import list_sessions
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import AgentId, CursorText, PlaceText, SearchText
from intersession_events.basics.keys.key import Kind
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import ready


@ready
class Sessions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The filter for sessions: all given fields must match."""

    kinds: Annotated[tuple[Kind, ...] | None, msgspec.Meta(description="Only these kinds.")] = None
    search: Annotated[
        SearchText | None, msgspec.Meta(description="A part of the key, label or name, in any case.")
    ] = None
    agent: Annotated[AgentId | None, msgspec.Meta(description="Only sessions of this agent.")] = None
    at: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(description="The list as it stood at a place. Default: head."),
    ] = None
    cursor: Annotated[CursorText | None, msgspec.Meta(description="The cursor of the page before.")] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many, 1 to 200; 50 if not given.")
    ] = None


def sessions(view: View, given: Sessions) -> JsonObject:
    """Return sessions, most recently active first: `{sessions, asOf, cursor}`.

    `filled` of a row is how many percent of what its model takes its last run was (CTX-4), null where that is not known.

    Raises:
        ToolRefused: a place or the cursor is invalid.
    """
    asked = present(
        {
            "kinds": None if given.kinds is None else list(given.kinds),
            "search": given.search,
            "agentId": given.agent,
            "asOf": None if given.at is None else view.place(given.at).position,
            "cursor": given.cursor,
            "limit": given.limit,
            "messageLimit": 1,
        }
    )
    found, decided = list_sessions(view.reader, view.requester, asked, within=view.sees, hides=view.hides)
    stored = view.reader.sessions
    filled = (
        {row.key: row.filled for row in stored.many(decided.keys)}
        if given.at is None
        else {key: row.filled for key in decided.keys if (row := stored.get(key, found["asOf"])) is not None}
    )
    rows = zip(found["sessions"], decided.keys, strict=True)
    shown = [{**row, "canonical": key, "filled": filled.get(key)} for row, key in rows if view.is_seen(key)]
    applied = {"limitApplied": found["limitApplied"]} if "limitApplied" in found else {}
    return {"sessions": shown, "asOf": found["asOf"], "cursor": found.get("nextCursor"), **applied}
