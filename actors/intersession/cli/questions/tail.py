"""`intersession tail`: the events of a log as they come, also of one that another process writes."""

from itertools import islice
from typing import Annotated, Final, NoReturn

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import reader_of
from intersession.cli.questions.recorded import EventPrinter, Kinds, Session, Stream, chosen
from intersession.cli.shell import READING, Reading, Screen
from intersession.cli.story import live_names, tell_unknown, unknown_stream
from intersession_actors.debugger import event_value
from intersession_actors.system import followed
from intersession_events.log import Recorded
from intersession_projections.spans import Span

_LOOK_S: Final = 0.5
"""How often it looks whether anybody still reads what it prints."""


def tail(
    *,
    last: Annotated[
        int,
        Parameter(
            name=["--last", "-n"],
            help="Begin with this many that are there already. Default: 10.",
            validator=Number(gte=0, lte=100_000),
        ),
    ] = 10,
    kind: Kinds = (),
    stream: Stream = None,
    session: Session = None,
    reading: Reading = READING,
) -> NoReturn:
    """Show the events of a log as they come.

    Oldest first, until Ctrl-C. It works on a log that another process writes, takes no lock and changes nothing. With
    --json each event is a document on a line of its own.
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
