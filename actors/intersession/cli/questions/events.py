"""`intersession events`: what is in the log, event by event."""

from collections.abc import Sequence

from intersession.cli.host import reader_of
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.questions.recorded import EventPrinter, Kinds, Session, Stream, chosen
from intersession.cli.shell import READING, Answer, Reading, Screen
from intersession.cli.story import Names, names_of, unknown_stream
from intersession_actors.debugger import event_value
from intersession_events.log import Recorded
from intersession_projections.wording import words_in


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
        wanted = chosen(reader, kind, stream, session)
        listing = page.of(wanted.newest(reader.log, page.span(reader)), lambda recorded: recorded.position)
        names = names_of(reader.log, [key for recorded in listing.rows for key in _keys(recorded)])
        unknown = [] if listing.rows else unknown_stream(reader, wanted.beginning)
    return listing.answer(
        "events", event_value, lambda screen, rows: _show(screen, rows, names), what="event", unknown=unknown
    )


def _keys(recorded: Recorded) -> tuple[str | None, ...]:
    words = words_in(recorded)
    return words.who, words.to, recorded.stream.removeprefix("session:")


def _show(screen: Screen, found: Sequence[Recorded], names: Names) -> None:
    printer = EventPrinter(screen, names)
    for recorded in found:
        printer.print(recorded)
