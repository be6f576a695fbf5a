"""`intersession audit`: requests to see or reach sessions, and their verdicts."""

from collections.abc import Sequence

from cyclopts import App

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen, one_line
from intersession.cli.shell.times import moment
from intersession.cli.story.unknown import unknown_names
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.access import (
    AccessAnswer,
    AccessOf,
    asker,
    receipt_value,
    receipts_found,
)
from intersession_actors.hindsight.debugger.verbs.verbs import ACCESS
from intersession_events.facts import AccessRecorded, SendRefused
from intersession_projections.views.access_receipts import Receipt

audit = App(name="audit", help="Look at who asked for what.")

_CREDENTIAL = "credential:"
_MOST_FILTERS = 80


@audit.command(name="access")
@asks(ACCESS)
def access(asked: VerbCall[AccessAnswer], *, page: Page = PAGE) -> Answer:
    """List who asked to see or reach what, and what was denied.

    Newest first: who asked, with which filters, how much was allowed and denied, and why. One receipt is one call of a tool,
    or of a method that shows sessions, and each send that a limit
    refused. What `audit.access` did not let be recorded is not there. Reading commands leave none.
    """
    with asked.view() as view:
        given = read_arguments(AccessOf, asked.given | page.given)
        found = receipts_found(view, given, page.most)
        who = None if given.who is None else asker(view, given.who)
        unknown = [] if found.rows else unknown_names(view.reader, {"--who": who, "--tool": given.tool})
    denials = sum(receipt.denied for receipt in found.rows)
    return page.answer(
        found,
        "receipts",
        receipt_value,
        _show,
        what="receipt",
        hint=f"{denials} with a denial",
        unknown=unknown,
    )


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
