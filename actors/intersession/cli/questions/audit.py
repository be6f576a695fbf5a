"""`intersession audit`: requests to see or reach sessions, and their verdicts."""

import json as plain_json
from collections.abc import Sequence

from cyclopts import App

from intersession.cli.host.reading import key_of, reader_of
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import READING, Answer, Reading
from intersession.cli.shell.terminal import Screen, one_line
from intersession.cli.shell.times import moment
from intersession.cli.story.unknown import unknown_names
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.lists.paging import paged
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import AccessRecorded, SendRefused
from intersession_projections.views.access_receipts import OPERATOR, Receipt, Wanted, receipts

audit = App(name="audit", help="Look at who asked for what.")

_CREDENTIAL = "credential:"
_MOST_FILTERS = 80


@audit.command(name="access")
def access(
    *,
    who: str | None = None,
    tool: str | None = None,
    denied: bool = False,
    target: str | None = None,
    page: Page = PAGE,
    reading: Reading = READING,
) -> Answer:
    """List who asked to see or reach what, and what was denied.

    Newest first: who asked, with which filters, how much was allowed and denied, and why. One receipt is one call of a tool,
    or of a method that shows sessions, and each send that a limit
    refused. What `audit.access` did not let be recorded is not there. Reading commands leave none.

    Args:
        who: Only what this session asked for, by its key in any form or its session id; or `operator`, or `credential:NAME`.
        tool: Only this tool, or this method.
        denied: Only calls that were denied something.
        target: Only calls that were denied this target, as it was typed.
    """
    with reader_of(reading) as reader:
        wanted = Wanted(
            who=None if who is None else _who(reader, who),
            tool=tool,
            denied=denied,
            target=target,
            span=page.span(reader),
        )
        found = paged(receipts(reader.log, wanted), lambda receipt: receipt.position, page.most)
        unknown = [] if found.rows else unknown_names(reader, {"--who": wanted.who, "--tool": tool})
    denials = sum(receipt.denied for receipt in found.rows)
    return page.answer(
        found, "receipts", _value, _show, what="receipt", hint=f"{denials} with a denial", unknown=unknown
    )


def _who(reader: Reader, typed: str) -> str:
    """Return the name that receipts are kept under; a session that is gone keeps its receipts under its key."""
    if typed == OPERATOR or typed.startswith(_CREDENTIAL):
        return typed
    try:
        return key_of(reader, typed, "history", field="--who")
    except ToolRefused:
        if not reader.log.stream(f"access:{typed}", limit=1):
            raise
        return typed


def _value(receipt: Receipt) -> JsonObject:
    event = receipt.event
    base: JsonObject = {"position": receipt.position, "time": receipt.time_ms, "who": receipt.who}
    match event:
        case AccessRecorded():
            value = base | {
                "requester": event.requester,
                "credential": event.credential,
                "tool": event.tool,
                "filters": plain_json.loads(event.filters),
                "allowed": event.allowed,
                "denied": event.denied_count,
                "keysDigest": event.keys_digest,
                "deniedTargets": [{"target": target, "code": code} for target, code in event.denied],
            }
        case SendRefused():
            value = base | {
                "requester": event.requester,
                "tool": event.tool,
                "allowed": 0,
                "denied": 1,
                "deniedTargets": [{"target": event.target, "code": event.code}],
                "limit": event.limit,
                "limitValue": event.value,
                "limitAllowed": event.allowed,
                "chain": list(event.chain),
            }
    return value | {"correlation": receipt.correlation}


def _show(screen: Screen, found: Sequence[Receipt]) -> None:
    screen.table(
        ["#", "when (UTC)", "who", "asked", "allowed", "denied", "what was denied, and why"],
        [_row(receipt) for receipt in found],
    )


def _row(receipt: Receipt) -> tuple[str, ...]:
    event = receipt.event
    why = ", ".join(f"{target} ({code})" for target, code in receipt.targets)
    match event:
        case AccessRecorded():
            filters = "" if event.filters == "{}" else f" {one_line(event.filters, _MOST_FILTERS)}"
            asked, allowed, denied = f"{event.tool}{filters}", event.allowed, event.denied_count
            if event.credential is not None and event.requester is not None:
                asked = f"{asked} (by {_CREDENTIAL}{event.credential})"
        case SendRefused():
            asked, allowed, denied = event.tool, 0, 1
            why = f"{why}: {event.limit} is {event.value}"
    return (
        str(receipt.position),
        moment(receipt.time_ms),
        receipt.who,
        asked,
        str(allowed),
        str(denied),
        why,
    )
