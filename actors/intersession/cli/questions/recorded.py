"""The events of a log as `events` and `tail` choose and show them."""

from typing import Annotated, Final

from cyclopts import Parameter

from intersession.cli.shell import Screen, UsageError, clock, day, safe
from intersession.cli.story import Names
from intersession_actors.debugger import STREAMS, EventsWanted, session_named
from intersession_actors.service import Reader
from intersession_events.facts import EVENT_KINDS
from intersession_events.ids import session_stream
from intersession_events.log import Recorded
from intersession_projections.wording import words_in

_ID: Final = 8
"""So much of an id is shown, and enough to be typed back."""

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
    """Return which events were asked for.

    Raises:
        UsageError: there is no such kind of event or stream; the known ones are named. Or both options name streams.
        ToolRefused: there is no such session.
    """
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
    """Prints events, each on a line of its own; the day stands on one before the first of it."""

    def __init__(self, screen: Screen, names: Names) -> None:
        self._screen = screen
        self._names = names
        self._day = ""

    def print(self, recorded: Recorded) -> None:
        """Print the next event."""
        today = day(recorded.time)
        if today != self._day:
            self._day = today
            self._screen.line(safe(f"{today} (times are UTC)", "dim"))
        words = words_in(recorded)
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
