"""`intersession events`: what is in the log, event by event."""

from collections.abc import Sequence

from intersession.cli.host import reader_of
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.questions.recorded import Chosen, EventPrinter, Kinds, Session, Stream, value_of
from intersession.cli.shell import READING, Answer, Reading, Screen
from intersession.cli.story import unknown_stream
from intersession_events.log import Recorded


def events(
    *,
    kind: Kinds = (),
    stream: Stream = None,
    session: Session = None,
    page: Page = PAGE,
    reading: Reading = READING,
) -> Answer:
    """List the events of a log, one a line.

    Newest first: position, time, stream, name, and what it says. `intersession tail` shows them as they come.
    """
    with reader_of(reading) as reader:
        chosen = Chosen.of(reader, kind, stream, session)
        listing = page.of(chosen.newest(reader, page.span(reader)), lambda recorded: recorded.position)
        unknown = [] if listing.rows else unknown_stream(reader, chosen.beginning)
    return listing.answer("events", value_of, _show, what="event", unknown=unknown)


def _show(screen: Screen, found: Sequence[Recorded]) -> None:
    printer = EventPrinter(screen)
    for recorded in found:
        printer.print(recorded)
