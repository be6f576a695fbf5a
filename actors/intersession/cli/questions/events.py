"""`intersession events` and `tail`: the events of a log, and new ones as they come."""

from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Final, NoReturn

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen
from intersession.cli.shell.times import clock, day
from intersession.cli.story.names import Names, live_names, names_of
from intersession.cli.story.unknown import tell_unknown, unknown_stream
from intersession_actors.assembly.system.follow import followed
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.events import (
    Events,
    EventsAnswer,
    event_value,
    events_found,
    events_wanted,
)
from intersession_actors.hindsight.debugger.verbs.verbs import EVENTS
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span

_ID: Final = 8
"""The length of a shown id, which is enough to be typed back."""


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


@asks(EVENTS)
def events(asked: VerbCall[EventsAnswer], *, page: Page = PAGE) -> Answer:
    """List the events of a log, one a line.

    Newest first: position, time, stream, name, and what it says. `intersession tail` shows them as they come.
    """
    with asked.view() as view:
        given = read_arguments(Events, asked.given | page.given)
        found = events_found(view, given, page.most)
        names = names_of(view.log, [key for recorded in found.rows for key in _keys(recorded)])
        unknown = [] if found.rows else unknown_stream(view.reader, events_wanted(view, given).beginning)
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
_Last = Annotated[
    int,
    Parameter(
        name=["--last", "-n"],
        validator=Number(gte=0, lte=100_000),
        help="Begin with this many that are there already. Default: 10.",
    ),
]


@asks(EVENTS)
def tail(asked: VerbCall[EventsAnswer], *, last: _Last = 10) -> NoReturn:
    """Show the events of a log as they come.

    Oldest first, until Ctrl-C. It works on a log that another process writes, takes no lock and changes nothing. With
    --json each event is a document on a line of its own.
    """
    screen = Screen()

    def told(recorded: Recorded, printer: EventPrinter) -> None:
        if asked.reading.json:
            screen.json_line(event_value(recorded))
        else:
            printer.print(recorded)

    with asked.view() as view:
        log, printer = view.log, EventPrinter(screen, live_names(view.log))
        wanted = events_wanted(view, read_arguments(Events, asked.given))
        tell_unknown(screen, unknown_stream(view.reader, wanted.beginning))
        after = log.head()
        for recorded in reversed(list(islice(wanted.newest(log, Span(to=after)), last))):
            told(recorded, printer)
        while True:
            for recorded in followed(log, after, timeout=_LOOK_S):
                after = recorded.position
                if wanted.takes(recorded):
                    told(recorded, printer)
            screen.look_for_reader()
