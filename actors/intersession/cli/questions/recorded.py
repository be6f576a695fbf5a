"""The events of a log as `events` and `tail` choose and show them."""

from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import msgspec
from cyclopts import Parameter

from intersession.cli.shell import Screen, UsageError, clock, day, safe
from intersession.cli.story import Names
from intersession_actors.debugger import session_named
from intersession_actors.errors import ToolRefused
from intersession_actors.service import Reader
from intersession_events.facts import EVENT_KINDS
from intersession_events.ids import session_stream
from intersession_events.log import Recorded, Row
from intersession_events.plain_json import JsonObject, present
from intersession_projections.positions import Span, backwards
from intersession_projections.sieve import sieved
from intersession_projections.wording import words_in

_STREAMS: Final = ("session:", "exchange:", "spawn:", "delivery:", "inbound:", "access:", "log")
"""How the names of streams begin."""

_ID: Final = 8
"""So much of an id is shown, and enough to be typed back."""

Kinds = Annotated[
    tuple[str, ...],
    Parameter(
        name="--kind",
        help="Only events of this name (run_failed, turn_replied, …); may be given several times.",
    ),
]
Stream = Annotated[
    str | None,
    Parameter(
        help="Only of this stream, or of all that begin so: session:research, exchange:46a2df48, delivery:"
    ),
]
Session = Annotated[str | None, Parameter(help="Only of this session's own stream.")]


class Chosen(NamedTuple):
    """Which events are asked for. `stream` is one stream's name, `beginning` how the names of several begin."""

    kinds: frozenset[str]
    stream: str | None = None
    beginning: str = ""

    @classmethod
    def of(cls, reader: Reader, kinds: tuple[str, ...], stream: str | None, session: str | None) -> "Chosen":
        """Return the choice that was typed.

        Raises:
            UsageError: there is no such kind of event or stream; the known ones are named. Or both options name streams.
            ToolRefused: there is no such session.
        """
        for kind in kinds:
            if kind not in EVENT_KINDS:
                known = ", ".join(sorted(EVENT_KINDS))
                raise UsageError(f"--kind: no event is called {kind[:64]!r}, give one of {known}")
        wanted = frozenset(kinds)
        if session is not None:
            if stream is not None:
                raise UsageError("--session names a stream, too: leave it or --stream out")
            return cls(wanted, session_stream(session_named(reader, session, field="--session")))
        if stream is None:
            return cls(wanted)
        if not stream.startswith(_STREAMS):
            raise UsageError(
                f"--stream: no stream begins with {stream[:64]!r}, they begin with {', '.join(_STREAMS)}"
            )
        if reader.log.stream(stream, limit=1):
            return cls(wanted, stream)
        name = stream.removeprefix("session:")
        try:
            named = session_stream(session_named(reader, name, field="--stream")) if name != stream else None
        except ToolRefused:
            named = None  # then it is how several begin
        return cls(wanted, named, beginning=stream)

    def takes(self, recorded: Recorded) -> bool:
        """Whether an event is asked for."""
        if self.kinds and recorded.kind not in self.kinds:
            return False
        if self.stream is not None:
            return recorded.stream == self.stream
        return recorded.stream.startswith(self.beginning)

    def newest(self, reader: Reader, span: Span) -> Iterator[Recorded]:
        """Yield the events of a part of the log that are asked for, the newest first."""
        if self.stream is not None:
            return filter(self.takes, backwards(reader.log, span, self.stream))
        return sieved(reader.log, span, self._may)

    def _may(self, row: Row) -> bool:
        stream: str = row[1]
        topic: str = row[3]
        is_kind = not self.kinds or topic.rpartition(".")[0] in self.kinds
        return is_kind and stream.startswith(self.beginning)


def value_of(recorded: Recorded) -> JsonObject:
    """Return an event as `--json` prints it, with all that is stored of it (`data`)."""
    words = words_in(recorded)
    return present(
        {
            "position": recorded.position,
            "eventId": recorded.id,
            "timeMs": recorded.time,
            "stream": recorded.stream,
            "version": recorded.version,
            "kind": recorded.kind,
            "topic": recorded.topic,
            "who": words.who,
            "to": words.to,
            "text": words.brief,
            "causation": recorded.causation,
            "correlation": recorded.correlation,
            "data": msgspec.to_builtins(recorded.event),
        }
    )


class EventPrinter:
    """Prints events, each on a line of its own; the day stands on one before the first of it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._names = Names()
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
            safe(f"#{recorded.position}  {clock(recorded.time)}  {self._stream(recorded.stream)}  ", "dim"),
            safe(recorded.kind, "bold"),
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
