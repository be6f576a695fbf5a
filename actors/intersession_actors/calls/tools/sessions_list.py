"""`sessions_list`: the sessions a caller can see, now or at a position (LIST)."""

from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.arguments import bounded, read_arguments, whole
from intersession_actors.calls.service.callers import AccessSummary
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.tools.list_page import (
    Cursor,
    digest_of_filters,
    fit,
    read_cursor,
    write_cursor,
)
from intersession_actors.rules.disclosure.capping import shown_messages
from intersession_actors.rules.disclosure.redaction import redact_text, redact_value
from intersession_actors.rules.errors import UNREADABLE, Judgement, refused_by
from intersession_actors.rules.gate.limits import CHOICES, AgentId, CursorText, Label, PlaceText, SearchText
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.access import ListSessions, Requester
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import Kind, SessionKey
from intersession_events.basics.keys.references import parse_agent_id
from intersession_events.basics.plain_json import JsonMapping, JsonObject, present
from intersession_events.facts import ready
from intersession_projections.questions.places.located import Located
from intersession_projections.questions.places.runs_named import Sees
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.session_filter import SessionFilter, VisibleSessions

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
MAX_MESSAGES: Final = 20
_MINUTE_MS: Final = 60_000

_Row = tuple[SessionKey, SessionRow]


@ready
class SessionsList(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments (LIST-1); null counts as missing."""

    kinds: Annotated[
        Annotated[tuple[Kind, ...], msgspec.Meta(max_length=CHOICES.most)] | None,
        msgspec.Meta(description="Only these kinds; empty is all."),
    ] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many, 1 to 200; 50 if not given.")
    ] = None
    active_minutes: Annotated[
        float | None, msgspec.Meta(description="Only sessions updated within this many minutes.")
    ] = None
    message_limit: Annotated[
        float | None, msgspec.Meta(description="Add the last messages of each session, 0 to 20.")
    ] = None
    search: Annotated[
        SearchText | None, msgspec.Meta(description="A part of the key, label or name, in any case.")
    ] = None
    label: Annotated[Label | None, msgspec.Meta(description="Only sessions with exactly this label.")] = None
    agent_id: Annotated[AgentId | None, msgspec.Meta(description="Only sessions of this agent.")] = None
    as_of: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(
            description="The list as it stood at a position (number), an ISO time, or another place (text)."
        ),
    ] = None
    cursor: Annotated[
        CursorText | None, msgspec.Meta(description="The nextCursor of the page before this one.")
    ] = None


class _Query(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments, worked out. `since_ms` is what `activeMinutes` comes to, `after` the end of the page before.

    `told` is what the answer says of limits that were beyond what there is.
    """

    kinds: frozenset[Kind]
    limit: int
    message_limit: int
    told: JsonObject
    search: str | None
    label: str | None
    parent: str | None
    agent_id: str | None
    position: int
    reference_ms: int
    since_ms: int
    filters: str
    after: Cursor | None
    seen: VisibleSessions | None
    is_stranger: Callable[[str], bool]


def list_sessions(
    reader: Reader,
    requester: Requester,
    arguments: JsonMapping,
    *,
    parent: str | None = None,
    within: Sees | None = None,
    hides: bool = False,
) -> tuple[JsonObject, AccessSummary]:
    """Return the sessions a caller can see: `{count, sessions, asOf, nextCursor?}`, and the access decisions.

    Filters and visibility apply before the limit (LIST-2); all rows belong to one position. With `parent`, a canonical
    key, only what that session spawned itself is listed. `within` says which sessions a limited caller reaches: no other
    one is counted, or stands in a cursor. Names and messages have their secrets for the session itself and the operator,
    and for nobody where it `hides` them (HIST-5).

    Raises:
        ToolRefused: `invalid_request`, naming the field.
    """
    given = read_arguments(SessionsList, arguments)
    query = _query(reader, requester, given, parent, within, hides=hides)
    rows, more, denied = _rows(reader, query)
    answer: JsonObject = {}
    entries = [_entry(reader, requester, key, row, query) for key, row in rows]
    if query.message_limit:
        answer |= _add_messages(reader, rows, entries, query)
    kept = fit(entries)
    answer = {"count": kept.rows, "sessions": entries[: kept.rows], "asOf": query.position} | answer
    answer |= query.told
    if not kept.rows and query.after is None and (note := _note(reader, query)):
        answer["note"] = note
    if kept.cut:
        answer["truncated"] = True
    if (more or kept.rows < len(rows)) and kept.rows:
        answer["nextCursor"] = _cursor(query, rows[kept.rows - 1][1])
    keys = tuple(row.key for _, row in rows[: kept.rows])
    judged = Judgement(ListSessions(), reader.sight(requester))
    return answer, AccessSummary(keys=keys, denied=denied, judged=judged)


def _query(
    reader: Reader,
    requester: Requester,
    given: SessionsList,
    parent: str | None,
    within: Sees | None,
    *,
    hides: bool,
) -> _Query:
    kinds = frozenset(given.kinds or ())
    minutes = None if given.active_minutes is None else max(1, whole(given.active_minutes, "activeMinutes"))
    agent_id = None if given.agent_id is None else _agent(given.agent_id)
    search = None if given.search is None else given.search.casefold()
    parents = () if parent is None else (parent,)
    filters = digest_of_filters(sorted(kinds), minutes, agent_id, search, given.label, *parents)
    after = None if given.cursor is None else read_cursor(given.cursor, filters, reader.log.head())
    place = _place(reader, requester, given, after)
    limit = bounded(given.limit, "limit", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
    messages = bounded(max(0, given.message_limit or 0), "messageLimit", 0, MAX_MESSAGES)
    return _Query(
        kinds=kinds,
        limit=limit.value,
        message_limit=messages.value,
        told=limit.told | messages.told,
        search=search,
        label=given.label,
        parent=parent,
        agent_id=agent_id,
        position=place.position,
        reference_ms=place.time_ms,
        since_ms=0 if minutes is None else max(0, place.time_ms - minutes * _MINUTE_MS),
        filters=filters,
        after=after,
        seen=_seen(reader.seen(requester), within),
        is_stranger=lambda key: hides or reader.is_stranger(requester, key),
    )


def _seen(seen: VisibleSessions | None, within: Sees | None) -> VisibleSessions | None:
    """Return which sessions a caller sees of those within its reach."""
    if within is None:
        return seen
    return VisibleSessions(_every_agent, "", within=within) if seen is None else seen._replace(within=within)


def _every_agent(_agent_id: str) -> bool:
    return True


def _place(reader: Reader, requester: Requester, given: SessionsList, after: Cursor | None) -> Located:
    """Return which list is meant: the cursor's, the one asked for, or the list now."""
    asked = None if given.as_of is None else reader.place(given.as_of, requester=requester)
    if after is None:
        return asked or Located(position=reader.log.head(), time_ms=reader.clock.now_ms())
    if asked is not None and asked.position != after.position:
        raise invalid("cursor", f"it was made for asOf {after.position}, give that or leave asOf out")
    return Located(position=after.position, time_ms=after.reference_ms)


def _rows(reader: Reader, query: _Query) -> tuple[list[_Row], bool, int]:
    """Return a page of rows, whether there are more, and how many sessions are there and not seen."""
    wanted = SessionFilter(
        agent_id=query.agent_id,
        kinds=_kinds(reader, query.kinds),
        label=query.label,
        parent=query.parent,
        seen=query.seen,
    )
    order = reader.sessions.order(query.position, wanted)
    behind = None if query.after is None else (-query.after.updated_at, query.after.key)
    places = (
        order.places(updated_since=query.since_ms, behind=behind)
        if query.search is None
        else order.named(query.search, updated_since=query.since_ms, behind=behind)
    )
    rows: list[_Row] = []
    # One more than the page is read, to know whether there is another.
    for row in order.rows(places, at_once=query.limit + 1):
        key = reader.parse(row.key)
        if query.kinds and key.kind not in query.kinds:
            continue
        if query.search is not None and not _is_named(row, query.search, query):
            continue
        if len(rows) == query.limit:
            return rows, True, order.hidden()
        rows.append((key, row))
    return rows, False, order.hidden()


def _is_named(row: SessionRow, text: str, query: _Query) -> bool:
    """Whether a casefolded text is a part of a name as the caller is shown it: else a secret would be found letter by letter."""
    if not query.is_stranger(row.key):
        return True
    names = (row.label, row.display_name)
    shown = [redact_text(name)[0] for name in names if name is not None]
    return any(text in name.casefold() for name in (row.key, *shown))


def _note(reader: Reader, query: _Query) -> str:
    """Say which filter alone leaves no visible session; whether its name exists stays secret (LIST-7)."""
    seen = query.seen
    asked = (
        (
            query.agent_id,
            SessionFilter(agent_id=query.agent_id, seen=seen),
            "agentId: you see no session of that agent",
        ),
        (
            query.label,
            SessionFilter(label=query.label, seen=seen),
            "label: you see no session with that label",
        ),
    )
    return "; ".join(
        words
        for given, wanted, words in asked
        if given is not None and next(reader.sessions.order(query.position, wanted).places(), None) is None
    )


def _kinds(reader: Reader, kinds: frozenset[Kind]) -> frozenset[Kind]:
    """Return the kinds as the list keeps them, which takes `main` for the name of main sessions."""
    ours: frozenset[Kind] = frozenset({"main", "other"})
    return kinds | ours if kinds & ours and reader.config.session.main_key != "main" else kinds


_CHANNELS: Final = {
    "channel": ("channel", "lastChannel"),
    "surface": ("provider", "lastChannel"),
    "provider": ("provider", "lastProvider"),
}
"""What each dialect calls the channel of a session, and the last one."""


def _entry(
    reader: Reader, requester: Requester, key: SessionKey, row: SessionRow, query: _Query
) -> JsonObject:
    """Return a row as it is shown: always the same fields, and those there is something for (LIST-5)."""
    channel, last_channel = _CHANNELS[reader.config.session.dialect]
    entry: JsonObject = {
        "key": reader.show(key, requester),
        "kind": key.kind,
        channel: reader.channel_of(row, key),
        "sessionId": row.session_id,
        "updatedAt": row.updated_at,
        "model": row.model,
        "contextTokens": row.context_tokens,
        "totalTokens": row.total_tokens,
        "thinkingLevel": row.thinking_level,
        "verboseLevel": row.verbose_level,
        "systemSent": row.system_sent,
        "abortedLastRun": row.aborted_last_run,
        "runState": row.run_state,
        "position": row.position,
    }
    route = row.route
    named: JsonObject = present(
        {
            "displayName": row.display_name,
            "label": row.label,
            "sendPolicy": row.send_policy,
            last_channel: row.last_channel,
            "lastTo": row.last_to,
        }
    )
    if route is not None:
        named["deliveryContext"] = present(
            {"channel": route.channel, "to": route.to, "accountId": route.account, "threadId": route.thread}
        )
    entry |= redact_value(named)[0] if named and query.is_stranger(row.key) else named
    if row.spawned_by is not None:
        entry["spawnedBy"] = reader.show(reader.parse(row.spawned_by), requester)
    if (path := reader.transcript_path(row.session_id)) is not None:
        entry["transcriptPath"] = path
    return entry


def _add_messages(reader: Reader, rows: list[_Row], entries: list[JsonObject], query: _Query) -> JsonObject:
    """Add the last messages to each row; return the flags that belong to the whole answer (LIST-4)."""
    truncated = redacted = False
    ends = reader.history.ends([row for _, row in rows], query.message_limit)
    for (_, row), entry in zip(rows, entries, strict=True):
        try:
            page = reader.history.messages(
                row.key,
                row.session_id,
                as_of=query.position,
                limit=query.message_limit,
                include_tools=False,
                row=row,
                end=ends.get(row.key),
            )
        except UNREADABLE as error:  # of this session alone
            entry["messages"], entry["messagesError"] = [], refused_by(error, f"{error}").as_result()
            continue
        shown = shown_messages(page.messages, redact=query.is_stranger(row.key))
        entry["messages"] = shown.messages
        if shown.dropped:
            entry["messagesDropped"] = shown.dropped
        truncated = truncated or shown.content_truncated
        redacted = redacted or shown.content_redacted
    return {"contentTruncated": truncated, "contentRedacted": redacted}


def _cursor(query: _Query, last: SessionRow) -> str:
    return write_cursor(
        Cursor(
            position=query.position,
            reference_ms=query.reference_ms,
            updated_at=last.updated_at,
            key=last.key,
            filters=query.filters,
        )
    )


def _agent(agent_id: str) -> str:
    try:
        return parse_agent_id(agent_id)
    except InvalidKey as error:
        raise invalid("agentId", str(error)) from None
