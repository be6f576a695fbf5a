"""`sessions_search`: where a text was said, in the transcripts that a caller can read (FIND-1)."""

from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.arguments import bounded, read_arguments
from intersession_actors.calls.service.callers import AccessSummary
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.resolve import resolve_target
from intersession_actors.calls.tools.searching import Hit, before_of, page_of, words_asked
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.gate.limits import CursorText, KeyText, PlaceText, SearchText
from intersession_actors.rules.policy.access import ListSessions, Requester
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import generation_of, message_in, ready
from intersession_projections.basics.spans import Span
from intersession_projections.views.full_text.found import Found, Wanted
from intersession_projections.views.full_text.view import private_of, shown_of

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100


@ready
class SessionsSearch(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments (FIND-1); null counts as missing."""

    query: Annotated[
        SearchText,
        msgspec.Meta(description="All of these words, in any case and order; `word*` is any that begins so."),
    ]
    session_key: Annotated[
        KeyText | None,
        msgspec.Meta(
            description="Only in this session, by sessionKey or sessionId. Default: all you can see."
        ),
    ] = None
    since: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(description="Only behind a position (number), an ISO time, or another place (text)."),
    ] = None
    until: Annotated[
        int | float | PlaceText | None, msgspec.Meta(description="Only up to a place. Default: now.")
    ] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many hits, 1 to 100; 20 if not given.")
    ] = None
    cursor: Annotated[
        CursorText | None, msgspec.Meta(description="The cursor of the page before this one.")
    ] = None


def search_sessions(
    reader: Reader, requester: Requester, arguments: JsonMapping
) -> tuple[JsonObject, AccessSummary]:
    """Return where a text was said, newest first: `{hits, cursor}`, and the access decisions.

    What may not be read is not searched, and neither is what is a secret to the caller: both are as if they were not there.

    Raises:
        ToolRefused: `invalid_request` naming the field, or why the session is not to be searched.
    """
    given = read_arguments(SessionsSearch, arguments)
    asked = words_asked(given.query, "query")

    def position(at: float | str | None, field: str, *, is_end: bool = False) -> int | None:
        if at is None:
            return None
        return reader.place(at, field=field, requester=requester, is_end=is_end).position

    span = Span(
        after=position(given.since, "since") or 0,
        to=position(given.until, "until", is_end=True),
        before=before_of(given.cursor),
    )
    key: str | None = None
    if given.session_key is not None:
        key = str(resolve_target(reader, requester, given.session_key, "search").key)
    limit = bounded(given.limit, "limit", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
    with reader.full_text.up_to_date(for_all=reader.reach(requester).everything) as found:
        wanted = Wanted(asked, groups_of(reader, requester, found, key), span)
        page = page_of(
            reader,
            found,
            wanted,
            redacts=lambda of: reader.is_stranger(requester, of),
            limit=limit.value,
        )
    answer: JsonObject = {
        "hits": [_entry(reader, requester, hit) for hit in page.hits],
        "cursor": page.cursor,
        **limit.told,
    }
    keys = dict.fromkeys(hit.session_key for hit in page.hits if hit.session_key is not None)
    judged = Judgement(ListSessions(operation="search"), reader.sight(requester))
    return answer, AccessSummary(keys=tuple(keys), judged=judged)


def groups_of(reader: Reader, requester: Requester, found: Found, key: str | None) -> list[str]:
    """Return the groups of messages that a requester may read: all of an agent's, or those of a session."""
    agents, sessions = found.names("agent"), found.names("session")
    reach = reader.reach(requester)
    own = sessions.get(reach.key)
    whole = [] if own is None else [own]
    if key is not None:
        only = [sessions[key]] if key in sessions else []
        stranger = reader.is_stranger(requester, key)
        return [*shown_of((), only), *private_of((), () if stranger else only)]
    if reach.everything:
        return [*shown_of(agents.values(), ()), *private_of(agents.values(), ())]
    open_agents = [
        number for name, number in agents.items() if name and reach.sees_agent(_agent(reader, name))
    ]
    tree = reader.sessions.descendants(reach.key) if reach.tree else set[str]()
    if reach.within is not None:  # then all of an agent is more than may be seen
        seen = [
            number
            for name, number in sessions.items()
            if name and reach.sees(key=name, agent_id=reader.parse(name).agent_id, in_tree=name in tree)
        ]
        return [*shown_of((), seen), *private_of((), whole)]
    single = [sessions[name] for name in (reach.key, *sorted(tree)) if name in sessions]
    return [*shown_of(open_agents, single), *private_of((), whole)]


def _agent(reader: Reader, name: str) -> str:
    kind, _, agent = name.partition(":")
    return agent if kind == "agent" else reader.parse(name).agent_id


def _entry(reader: Reader, requester: Requester, hit: Hit) -> JsonObject:
    message = message_in(hit.recorded.event)
    if message is None or hit.session_key is None:
        raise AssertionError(f"position {hit.recorded.position} is no message of a transcript")
    return {
        "sessionKey": reader.show(reader.parse(hit.session_key), requester),
        "position": hit.recorded.position,
        "runId": hit.run_id,
        "snippet": hit.snippet,
        "sessionId": generation_of(hit.recorded.event),
        "messageId": message.id,
        "role": message.role,
        "timestamp": message.timestamp,
    }
