"""`intersession deliveries`: texts that went outside or should have, and retries."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import OK, READING, REFUSED, Answer, AsOf, Reading, UsageError
from intersession.cli.shell.terminal import Screen, one_line
from intersession.cli.shell.times import moment
from intersession.cli.story.names import Names, names_of
from intersession.cli.story.standing import delivery_in_words
from intersession.cli.story.unknown import unknown_names
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.deliveries import (
    LOST,
    Delivered,
    Deliveries,
    DeliveriesAnswer,
    deliveries_found,
    text_value,
)
from intersession_actors.hindsight.debugger.named import delivery_named
from intersession_actors.hindsight.debugger.verbs.verbs import DELIVERIES
from intersession_actors.hindsight.debugger.view import View
from intersession_events.basics.ids import delivery_stream
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.stores.opened import has_writer
from intersession_projections.questions.known_names import KnownNames

if TYPE_CHECKING:
    from intersession.cli.host.hosting import Operating

deliveries = App(name="deliveries")

_TEXT_CHARS: Final = 60
_QUIET_S: Final = 2.0
_MOST_EVENTS: Final = 1000
"""How much is read, for each delivery that is waited for, of what else happens in the log."""


@deliveries.default
@asks(DELIVERIES, options={"at": AsOf})
def listed(asked: VerbCall[DeliveriesAnswer], *, page: Page = PAGE) -> Answer:
    """List the texts that went outside, or should have.

    Where to, what became of each, and why; newest first, by when each was decided. `intersession deliveries
    retry ID` has one tried once more.
    """
    with asked.view() as view:
        given = read_arguments(Deliveries, asked.given | page.given)
        # Who is at work now says nothing of what stood then.
        at_work = given.at is not None or has_writer(view.log)
        found = deliveries_found(view, given, page.most)
        names = names_of(view.log, [row.session_key for row, _ in found.rows])
        named = {"--channel": given.channel, "--person": given.person}
        unknown = [] if found.rows else unknown_names(view.reader, named)
        values = {row.delivery_id: text_value(row, note, view) for row, note in found.rows}
        imported = not found.rows and KnownNames(view.log).has_imports()
    lost = given.at is None and any(row.state in LOST for row, _ in found.rows)
    return page.answer(
        found,
        "deliveries",
        lambda row: values[row[0].delivery_id],
        lambda screen, rows: _show(screen, rows, names, values, at_work=at_work),
        what="text",
        hint="`intersession deliveries retry ID` has one tried once more" if lost else "",
        if_none=_IMPORTED if imported else "",
        unknown=unknown,
    )


_IMPORTED: Final = (
    "an imported record has none of its own, `intersession runs` says what it shows of announces"
)


@deliveries.command(name="retry")
def retry(
    delivery: Annotated[
        str | None, Parameter(help="The delivery: its id, or how that begins; or --failed.")
    ] = None,
    /,
    *,
    failed: Annotated[
        bool, Parameter(help="All texts that failed, the oldest first, instead of one.")
    ] = False,
    channel: Annotated[str | None, Parameter(help="With --failed: only those to this channel.")] = None,
    to: Annotated[str | None, Parameter(help="With --failed: only those to this chat, by its id.")] = None,
    session: Annotated[
        str | None, Parameter(help="With --failed: only those in the name of this session.")
    ] = None,
    reading: Reading = READING,
) -> Answer:
    """Have a text tried once more that did not arrive, or all that failed.

    The send policy of its session decides again. A channel that may have shown the text already shows it twice, unless it
    takes an idempotency key. Where the log has a host, it does the work; else this command does, with the channels
    that --config names. A text for another channel waits for the next host that has it.
    """
    from intersession.cli.host.hosting import operator_of  # noqa: PLC0415 - a list needs nothing of what writes

    if failed == (delivery is not None):
        raise UsageError(
            "give an ID or --failed, not both"
            if failed
            else "give the ID of a text, or --failed for all that failed"
        )
    only = {"channel": channel, "to": to, "sessionKey": session}
    if delivery is not None and any(only.values()):
        raise UsageError(
            "--channel, --to and --session say which of those that failed: give them with --failed"
        )
    with operator_of(reading) as operator:
        flows, after = operator.reader.flows, operator.reader.log.head()
        if delivery is None:
            retried = _all_retried(operator, only)
        else:
            retried = [delivery_named(operator.reader, delivery)]
            operator.call("deliveries.retry", {"deliveryId": retried[0]})
        left = {delivery_stream(name) for name in retried}
        # Until each has an outcome, or nothing happens any more: its channel is not here.
        events = islice(operator.events(after, quiet_s=_QUIET_S), _MOST_EVENTS * len(left))
        for recorded in events if left else ():
            if recorded.event.ends == "delivery":
                left.discard(recorded.stream)
            if not left:
                break
        rows = [row for row in map(flows.delivery, retried) if row is not None]
        found, view = list(zip(rows, flows.notes_of(rows), strict=True)), View(operator.reader)
        at_work = not operator.here

    def show(screen: Screen) -> None:
        if not found:
            screen.line("no text failed that nobody gave up")
        for row, note in found:
            screen.line(f"{row.delivery_id}  ", delivery_in_words(row, note, at_work=at_work))

    values = [text_value(*each, view) for each in found]
    arrived = all(row.state == "done" or row.is_open for row in rows)
    value = values[0] if delivery is not None else {"count": len(found), "deliveries": values}
    return Answer(value, show, OK if arrived else REFUSED)


def _all_retried(operator: "Operating", only: Mapping[str, str | None]) -> list[str]:
    """Retry all failed deliveries, or some of them; return their ids."""
    wanted = {"failed": True, **{name: value for name, value in only.items() if value is not None}}
    retried: list[str] = []
    more = True
    while more:
        answer = operator.call("deliveries.retry", wanted)
        some = {str(name) for name in answer["retried"]}
        # One that has failed again meanwhile is not tried for ever.
        more = bool(answer["more"]) and not some <= {*retried}
        retried += [name for name in map(str, answer["retried"]) if name not in retried]
    return retried


def _show(
    screen: Screen,
    found: Sequence[Delivered],
    names: Names,
    values: Mapping[str, JsonMapping],
    *,
    at_work: bool,
) -> None:
    screen.table(
        ["id", "decided (UTC)", "of", "what became of it", "text"],
        [
            (
                row.delivery_id,
                "" if note is None else moment(note.decided_ms),
                names.of(row.session_key),
                f"waits behind {values[row.delivery_id]['waitsFor'][:8]} to the same chat"
                if "waitsFor" in values[row.delivery_id]
                else delivery_in_words(row, note, at_work=at_work),
                "" if note is None else one_line(note.text, _TEXT_CHARS),
            )
            for row, note in found
        ],
    )
