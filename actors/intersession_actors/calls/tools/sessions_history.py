"""`sessions_history`: the transcript of a session a caller can see (HIST)."""

from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.arguments import bounded, read_arguments
from intersession_actors.calls.service.callers import AccessSummary
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.resolve import Resolved, resolve_target
from intersession_actors.rules.disclosure.capping import shown_messages
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import KeyText, MessageId, PlaceText
from intersession_actors.rules.policy.access import Requester
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import ready
from intersession_projections.views.sessions.history import HistoryPage, UnknownMessage

DEFAULT_LIMIT: Final = 200
MAX_LIMIT: Final = 1000


@ready
class SessionsHistory(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments (HIST-1); null counts as missing."""

    session_key: Annotated[KeyText, msgspec.Meta(description="The session, by sessionKey or sessionId.")]
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many messages, 1 to 1000; 200 if not given.")
    ] = None
    include_tools: Annotated[bool | None, msgspec.Meta(description="Also the results of tools.")] = None
    as_of: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(
            description="The transcript as it stood at a position (number), an ISO time, or another place (text)."
        ),
    ] = None
    before: Annotated[
        MessageId | None, msgspec.Meta(description="Only messages before the one with this id.")
    ] = None


def read_history(
    reader: Reader, requester: Requester, arguments: JsonMapping
) -> tuple[JsonObject, AccessSummary]:
    """Return the last messages of a session, oldest first, and the access decisions.

    Raises:
        ToolRefused: `invalid_request` naming the field, or why the session is not to be read.
    """
    given = read_arguments(SessionsHistory, arguments)
    as_of = None if given.as_of is None else reader.place(given.as_of, requester=requester).position
    target = resolve_target(reader, requester, given.session_key, "history", as_of=as_of)
    limit = bounded(given.limit, "limit", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
    page = _page(reader, target, given, as_of, limit.value)
    key = str(target.key) if target.row is None else target.row.key
    shown = shown_messages(page.messages, redact=reader.is_stranger(requester, key))
    before = shown.first_id if shown.dropped else page.before
    answer: JsonObject = {
        "sessionKey": target.shown,
        "messages": shown.messages,
        "truncated": shown.truncated,
        "droppedMessages": shown.dropped,
        "contentTruncated": shown.content_truncated,
        "contentRedacted": shown.content_redacted,
        "bytes": shown.bytes,
        "position": page.position,
    }
    if before is not None:
        answer["before"] = before
    answer |= limit.told
    return answer, AccessSummary(keys=(key,), judged=target.judged)


def _page(
    reader: Reader, target: Resolved, given: SessionsHistory, as_of: int | None, limit: int
) -> HistoryPage:
    if target.row is None or target.session_id is None:
        raise ToolRefused("internal", "sessionKey: the session was allowed and is not there")
    try:
        # Bound to the generation that was authorised: a reset in between changes nothing (HIST-6).
        return reader.history.messages(
            target.row.key,
            target.session_id,
            as_of=as_of,
            before=given.before,
            limit=limit,
            include_tools=bool(given.include_tools),
        )
    except UnknownMessage as error:
        raise ToolRefused("invalid_request", str(error)) from None
