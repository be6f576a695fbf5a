"""The verb `events`: the events of a log, newest first (FIND-2)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec

from intersession_actors.hindsight.debugger.lists.paging import (
    LimitArgument,
    Listed,
    PageAnswer,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.search import InSpan, check_kinds, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import CHOICES, KeyText, Name
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import PARTS, TOPICS, Deciding, ready
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.basics.spans import Span, backwards

STREAMS: Final = (
    "session:",
    "exchange:",
    "spawn:",
    "delivery:",
    "clock",
    "inbound:",
    "schedule:",
    "notes:",
    "access:",
    "import:",
    "erased:",
    "log",
)
"""How the names of streams begin."""


_RECEIPT: Final = "access_recorded"
_HOLDING: Final = frozenset(topic for topic, kind in TOPICS.items() if issubclass(kind, Deciding))
"""The stored names of events that more can follow in."""


class EventsWanted(NamedTuple):
    """A filter for events. `stream` is one stream's name, `beginning` how the names of several begin; no kinds mean all.

    Without `receipts` what says who looked at sessions is left out.
    """

    kinds: frozenset[str] = frozenset()
    stream: str | None = None
    beginning: str = ""
    receipts: bool = True

    def of_streams(self, log: Log, name: str, session_named: Callable[[str], str]) -> "EventsWanted":
        """Return the filter for a stream, a session's by any name that `session_named` knows, or for all streams that begin so."""
        if log.stream(name, limit=1):
            return self._replace(stream=name)
        session = name.removeprefix("session:")
        try:
            stream = session_stream(session_named(session)) if session != name else None
        except ToolRefused:
            stream = None  # then it is how several begin
        return self._replace(stream=stream, beginning="" if stream else name)

    def takes(self, recorded: Recorded) -> bool:
        """Whether an event matches."""
        if not any(self._is_of_kind(part.topic) for part in recorded.parts()):
            return False
        if self.stream not in {None, recorded.stream}:
            return False
        return recorded.stream.startswith(self.beginning)

    def newest(self, log: Log, span: Span) -> Iterator[Recorded]:
        """Yield the matching events of a part of the log, newest first."""
        if self.stream is not None:
            return filter(self.takes, backwards(log, span, self.stream))
        return filter(self.takes, prefiltered(log, span, self._may))

    def _may(self, row: Row) -> bool:
        stream, topic = row[1], row[3]
        # What follows in an event is of a kind, too.
        may_hold = topic in _HOLDING and not self.kinds.isdisjoint(PARTS)
        return (may_hold or self._is_of_kind(topic)) and stream.startswith(self.beginning)

    def _is_of_kind(self, topic: str) -> bool:
        kind = topic.rpartition(".")[0]
        return (not self.kinds or kind in self.kinds) and (self.receipts or kind != _RECEIPT)


@ready
class Events(InSpan, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `events`; null counts as missing."""

    kind: Annotated[
        Annotated[Sequence[Name], msgspec.Meta(max_length=CHOICES.most)] | None,
        msgspec.Meta(description="Only events of these names (run_failed, turn_ended, …)."),
    ] = None
    stream: Annotated[
        KeyText | None,
        msgspec.Meta(
            description="Only of this stream, or of all that begin so: session:research, exchange:46a2df48, delivery:"
        ),
    ] = None
    session: Annotated[KeyText | None, msgspec.Meta(description="Only of this session's own stream.")] = None
    limit: LimitArgument = None


class EventsAnswer(PageAnswer):
    """Events, newest first: `{position, eventId, timeMs, stream, version, kind, topic, who?, to?, text, …}`; `cursor` is for the next page."""

    events: list[JsonObject]


def list_events(view: View, given: Events) -> EventsAnswer:
    """Return the events of a log; other callers than the operator get those of the sessions they see, in words.

    Raises:
        ToolRefused: a name, a kind, a stream, a place or the cursor is invalid.
    """
    rows, cursor = events_found(view, given, most_of(given.limit))
    return {"count": len(rows), "events": [_shown(view, row) for row in rows], "cursor": cursor}


def events_found(view: View, given: Events, most: int, *, receipts: bool = True) -> Listed[Recorded]:
    """Return the same, as they are stored, up to a limit; without `receipts` what says who looked at sessions is left out.

    Raises:
        ToolRefused: as `list_events`.
    """
    wanted = events_wanted(view, given)._replace(receipts=receipts)
    found = view.known(wanted.newest(view.log, span_of(view, given)))
    return paged(found, lambda recorded: recorded.position, most)


def events_wanted(view: View, given: Events) -> EventsWanted:
    """Return the filter for events, for the whole log.

    Raises:
        ToolRefused: a name, a kind or a stream is invalid.
    """
    check_kinds(given.kind or ())
    wanted = EventsWanted(frozenset(given.kind or ()))
    if given.session is not None:
        if given.stream is not None:
            raise invalid("session", "it names a stream, too: leave it or stream out")
        wanted = wanted._replace(stream=session_stream(view.session(given.session, field="session")))
    elif given.stream is not None:
        if not any(each.startswith(given.stream) or given.stream.startswith(each) for each in STREAMS):
            begin = ", ".join(STREAMS)
            raise invalid("stream", f"no stream begins with {given.stream[:64]!a}, they begin with {begin}")
        wanted = wanted.of_streams(view.log, given.stream, lambda name: view.session(name, field="stream"))
    return wanted


def event_value(recorded: Recorded) -> JsonObject:
    """Return an event as JSON, with everything that is stored of it: its content (`data`), and its decision record."""
    return event_brief(recorded) | present(
        {
            "causation": recorded.causation,
            "correlation": recorded.correlation,
            "data": msgspec.to_builtins(recorded.event),
            "decision": msgspec.json.decode(recorded.decision) if recorded.decision else None,
        }
    )


def event_brief(recorded: Recorded) -> JsonObject:
    """Return an event in the short form of lists: its position, time and kind, and in words."""
    words = recorded.in_words()
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
        }
    )


def _shown(view: View, recorded: Recorded) -> JsonObject:
    """Return an event as the caller may know it: its stored form is the operator's."""
    if view.is_operator:
        stored: JsonObject = msgspec.json.decode(msgspec.json.encode(event_value(recorded)))
        return stored
    kind, _, name = recorded.stream.partition(":")
    told = event_brief(recorded)
    told["text"] = view.shown(recorded.in_words().brief, name if kind == "session" else "")
    return told
