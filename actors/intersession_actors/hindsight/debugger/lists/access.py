"""The verb `access`: who asked to see or reach what, and what was denied, from the receipts alone (VIS-4, ANS-14)."""

from typing import Annotated, Final

import msgspec

from intersession_actors.hindsight.debugger.lists.paging import (
    LimitArgument,
    Listed,
    PageAnswer,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import Identity, KeyText
from intersession_events.basics.ids import access_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import AccessRecorded, SendRefused, ready
from intersession_projections.views.access_receipts import OPERATOR, Receipt, Wanted, receipts

_CREDENTIAL: Final = "credential:"


@ready
class AccessOf(InSpan, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `access`; null counts as missing."""

    who: Annotated[
        KeyText | None,
        msgspec.Meta(
            description="Only what this session asked for, by its key in any form or its session id; or `operator`, or `credential:NAME`."
        ),
    ] = None
    tool: Annotated[Identity | None, msgspec.Meta(description="Only this tool, or this method.")] = None
    denied: Annotated[bool, msgspec.Meta(description="Only calls that were denied something.")] = False
    target: Annotated[
        KeyText | None,
        msgspec.Meta(description="Only calls that were denied this target, as it was typed."),
    ] = None
    limit: LimitArgument = None


class AccessAnswer(PageAnswer):
    """Receipts, newest first: `{position, time, who, tool, allowed, denied, deniedTargets, correlation, …}`, `time` in milliseconds.

    A call has `{requester, credential, filters, keysDigest}` as well, a send that a limit refused `{requester, limit, limitValue,
    limitAllowed, chain}`.
    """

    receipts: list[JsonObject]


def list_access(view: View, given: AccessOf) -> AccessAnswer:
    """Return the receipts. They tell of all sessions, so only the operator may ask.

    Raises:
        ToolRefused: a name, a place or the cursor is invalid; there is no such session (`not_visible`).
    """
    rows, cursor = receipts_found(view, given, most_of(given.limit))
    return {"count": len(rows), "receipts": [*map(receipt_value, rows)], "cursor": cursor}


def receipts_found(view: View, given: AccessOf, most: int) -> Listed[Receipt]:
    """Return the same, as receipts up to a limit.

    Raises:
        ToolRefused: as `list_access`.
    """
    wanted = Wanted(
        who=None if given.who is None else asker(view, given.who),
        tool=given.tool,
        denied=given.denied,
        target=given.target,
        span=span_of(view, given),
    )
    return paged(receipts(view.log, wanted), lambda receipt: receipt.position, most)


def asker(view: View, typed: str) -> str:
    """Return the name that receipts are kept under; a session that is gone keeps its receipts under its key.

    Raises:
        ToolRefused: there is no such session (`not_visible`).
    """
    if typed == OPERATOR or typed.startswith(_CREDENTIAL):
        return typed
    try:
        return view.session(typed, field="who")
    except ToolRefused:
        if not view.log.stream(access_stream(typed), limit=1):
            raise
        return typed


def receipt_value(receipt: Receipt) -> JsonObject:
    """Return a receipt, as answers have it."""
    event = receipt.event
    base: JsonObject = {"position": receipt.position, "time": receipt.time_ms, "who": receipt.who}
    targets = [{"target": target, "code": code} for target, code in receipt.targets]
    match event:
        case AccessRecorded():
            value = base | {
                "requester": event.requester,
                "credential": event.credential,
                "tool": event.tool,
                "filters": msgspec.json.decode(event.filters),
                "allowed": event.allowed,
                "denied": event.denied_count,
                "keysDigest": event.keys_digest,
                "deniedTargets": targets,
            }
        case SendRefused():
            value = base | {
                "requester": event.requester,
                "tool": event.tool,
                "allowed": 0,
                "denied": 1,
                "deniedTargets": targets,
                "limit": event.limit,
                "limitValue": event.value,
                "limitAllowed": event.allowed,
                "chain": list(event.chain),
            }
    return value | {"correlation": receipt.correlation}
