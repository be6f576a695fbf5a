"""`intersession events` and `tail`: the events of a log, and new ones as they come."""

from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Final, NoReturn

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host.reading import reader_of
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import READING, Answer, Reading, UsageError
from intersession.cli.shell.terminal import Screen
from intersession.cli.shell.times import clock, day
from intersession.cli.story.names import Names, live_names, names_of
from intersession.cli.story.unknown import tell_unknown, unknown_stream
from intersession_actors.assembly.system.follow import followed
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.lists.events import STREAMS, EventsWanted, event_value
from intersession_actors.hindsight.debugger.lists.paging import paged
from intersession_actors.hindsight.debugger.named import session_named
from intersession_events.basics.ids import session_stream
from intersession_events.facts import EVENT_KINDS
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span

_ID: Final = 8
"""The length of a shown id, which is enough to be typed back."""

Kinds = Annotated[
    tuple[str, ...],
    Parameter(
        name="--kind",
        help="Only events of this name (run_failed, turn_ended, …); may be given several times.",
    ),
]
Stream = Annotated[
    str | None,
    Parameter(
        help="Only of this stream, or of all that begin so: session:research, exchange:46a2df48, delivery:"
    ),
]
Session = Annotated[str | None, Parameter(help="Only of this session's own stream.")]


def chosen(reader: Reader, kinds: tuple[str, ...], stream: str | None, session: str | None) -> EventsWanted:
    """Return the filter for events."""
    for kind in kinds:
        if kind not in EVENT_KINDS:
            known = ", ".join(sorted(EVENT_KINDS))
            raise UsageError(f"--kind: no event is called {kind[:64]!r}, give one of {known}")
    wanted = EventsWanted(frozenset(kinds))
    if session is not None:
        if stream is not None:
            raise UsageError("--session names a stream, too: leave it or --stream out")
        return wanted._replace(stream=session_stream(session_named(reader, session, field="--session")))
    if stream is None:
        return wanted
    if not stream.startswith(STREAMS):
        raise UsageError(
            f"--stream: no stream begins with {stream[:64]!r}, they begin with {', '.join(STREAMS)}"
        )
    return wanted.of_streams(reader.log, stream, lambda name: session_named(reader, name, field="--stream"))


class EventPrinter:
    """Prints events, each on a line; the first of each day has the date above it."""

    def __init__(self, screen: Screen, names: Names) -> None:
        self._screen = screen
        self._names = names
        self._day = ""

    def print_all(self, found: Iterable[Recorded]) -> None:
        """Print events in order."""
        for recorded in found:
            self.print(recorded)

    def print(self, recorded: Recorded) -> None:
        """Print the next event."""
        today = day(recorded.time)
        if today != self._day:
            self._day = today
            self._screen.dim(f"{today} (times are UTC)")
        words = recorded.in_words()
        between = self._names.between(words.who, words.to)
        self._screen.one_line(
            self._screen.styled(
                f"#{recorded.position}  {clock(recorded.time)}  {self._stream(recorded.stream)}  ", "dim"
            ),
            self._screen.styled(recorded.kind, "bold"),
            f"  {between}: " if between and words.brief else f"  {between}",
            words.brief,
        )

    def _stream(self, stream: str) -> str:
        kind, colon, name = stream.partition(":")
        match kind:
            case "session":
                name = self._names.of(name)
            case "exchange" | "spawn" | "delivery" | "inbound":
                name = name[:_ID]
            case _:
                pass
        return f"{kind}{colon}{name}"


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
        newest = wanted.newest(reader.log, page.span(reader))
        found = paged(newest, lambda recorded: recorded.position, page.most)
        names = names_of(reader.log, [key for recorded in found.rows for key in _keys(recorded)])
        unknown = [] if found.rows else unknown_stream(reader, wanted.beginning)
    return page.answer(
        found,
        "events",
        event_value,
        lambda screen, rows: EventPrinter(screen, names).print_all(rows),
        what="event",
        unknown=unknown,
    )


def _keys(recorded: Recorded) -> tuple[str | None, ...]:
    words = recorded.in_words()
    return words.who, words.to, recorded.stream.removeprefix("session:")


_LOOK_S: Final = 0.5
"""How often it looks whether anybody still reads what it prints."""


def tail(
    *,
    last: Annotated[int, Parameter(name=["--last", "-n"], validator=Number(gte=0, lte=100_000))] = 10,
    kind: Kinds = (),
    stream: Stream = None,
    session: Session = None,
    reading: Reading = READING,
) -> NoReturn:
    """Show the events of a log as they come.

    Oldest first, until Ctrl-C. It works on a log that another process writes, takes no lock and changes nothing. With
    --json each event is a document on a line of its own.

    Args:
        last: Begin with this many that are there already. Default: 10.
    """
    screen = Screen()

    def told(recorded: Recorded, printer: EventPrinter) -> None:
        if reading.json:
            screen.json_line(event_value(recorded))
        else:
            printer.print(recorded)

    with reader_of(reading) as reader:
        printer = EventPrinter(screen, live_names(reader.log))
        wanted = chosen(reader, kind, stream, session)
        tell_unknown(screen, unknown_stream(reader, wanted.beginning))
        after = reader.log.head()
        for recorded in reversed(list(islice(wanted.newest(reader.log, Span(to=after)), last))):
            told(recorded, printer)
        while True:
            for recorded in followed(reader.log, after, timeout=_LOOK_S):
                after = recorded.position
                if wanted.takes(recorded):
                    told(recorded, printer)
            screen.look_for_reader()
