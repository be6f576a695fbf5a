"""What is a person's in a log: who they are, their direct chats, and all that came of what they said. For `people.forget` (FORGET-1)."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.ids import notes_stream, session_stream
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import (
    DeliveryDecided,
    Event,
    Provenance,
    Route,
    RouteChanged,
    RunAborted,
    RunCompleted,
    encode,
    is_summary,
    message_in,
    run_named,
    unsaid,
    words,
)
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.row_prefilter import may_be_a_persons, prefiltered
from intersession_projections.basics.spans import Span
from intersession_projections.copies.text_copies import strings_in
from intersession_projections.views.run_outcomes.runs import Runs

_PAGE: Final = 256
_SESSION: Final = "session:"
_SHORTEST_NAME: Final = 3
"""A name of fewer characters is in other words more often than not."""


class Person:
    """A person, by their addresses `channel:id`, in a log as it is now. `called` is their name in keys, where that is another one.

    `sessions` are their direct chats, in which nobody else spoke: all of those is theirs. Elsewhere it is what they said, and
    the causal chains that this began. `names` are those that channels gave them.
    """

    def __init__(self, log: Log, addresses: Collection[str], called: str | None = None) -> None:
        self._log = log
        self.addresses = frozenset(addresses)
        self._called = called
        self._ids = frozenset(address.partition(":")[2] for address in addresses)
        self.names: set[str] = set()
        self.runs: set[str] = set()
        """The runs that answer what they said, and begin the chains that are theirs."""
        self.messages: set[str] = set()
        """The ids of what they said."""
        self.summaries: set[str] = set()
        """Runs that have summarised a session in which they spoke."""
        self._spoke: dict[str, int] = {}
        """The sessions' streams in which they spoke, each with the position of the first of their messages."""
        self._chats: set[tuple[str, str]] = set()
        """Channel and address of their direct chats."""
        self._to_them: set[str] = set()
        """The streams of deliveries to these."""
        self._told_by: dict[str, None] = {}
        """Runs of other chains whose words they were told."""
        self._look()
        self.sessions: tuple[str, ...] = tuple(sorted(self._direct()))
        self._naming = _pattern({*self.names, *self._ids})
        self._calling = _pattern(self.names - self._ids)

    @property
    def is_known(self) -> bool:
        """Whether the log knows them at all."""
        return bool(self.messages or self.runs or self.sessions)

    def said(self, event: Event) -> bool:
        """Whether an event brings a message of theirs."""
        message = message_in(event)
        return message is not None and message.id in self.messages

    def events(self, log: Log) -> Iterator[Recorded]:
        """Yield what is theirs outside of their direct chats, also in a fork: what others said in between is not."""
        flows: dict[str, None] = {}
        for recorded in log.all(to=log.head()):
            if not self._is_theirs(recorded):
                continue
            kind, _, flow = recorded.stream.partition(":")
            if kind in {"exchange", "spawn"}:
                flows[flow] = None
            yield recorded
        for name in (*self.runs, *flows):
            yield from _stream(log, notes_stream(name))
        for run_id in self._told_by:
            run = Runs(log).get(run_id)
            if run is not None:
                for recorded in log.stream(
                    session_stream(run.session_key), after=run.first_version - 1, to=run.last_version
                ):
                    if run_named(recorded.event) == run_id and isinstance(recorded.event, RunCompleted):
                        yield recorded

    def is_named_in(self, text: str) -> bool:
        """Whether a text names them."""
        return self._naming.search(text) is not None

    def is_mentioned(self, recorded: Recorded) -> bool:
        """Whether words of an event name them."""
        return any(map(self.is_named_in, words(recorded.event)))

    def is_kept_in(self, recorded: Recorded) -> bool:
        """Whether what an erasure leaves of an event names them, save by an id in a key or a route."""
        left = encode(unsaid(recorded.event))
        text = left.decode().casefold()
        # Few events have one: so the JSON of all others is not taken apart.
        return any(name.casefold() in text for name in self.names) and any(
            self._calling.search(one) for one in strings_in(left)
        )

    def _look(self) -> None:
        """Find what they said, newest first."""
        senders = [_plain(name) for name in self._ids]
        for recorded in prefiltered(
            self._log, Span(), lambda row: may_be_a_persons(row) and any(one in row[4] for one in senders)
        ):
            message = message_in(recorded.event)
            origin = None if message is None else message.provenance
            if message is None or origin is None or not self._is_by_them(origin):
                continue
            self.messages.add(message.id)
            self._spoke[recorded.stream] = recorded.position
            if origin.sender_name:
                self.names.add(origin.sender_name)
            if (run := run_named(recorded.event)) is not None:
                self.runs.add(run)

    def _direct(self) -> Iterator[str]:
        """Yield the direct chats that are theirs alone, archived ones too, and note where their texts go."""
        keys = self._log.query(
            "SELECT DISTINCT originator_id FROM stored_events WHERE originator_id >= 'session:' AND originator_id < 'session;'",
            (),
        )
        for (stream,) in keys:
            text = str(stream).removeprefix(_SESSION)
            try:
                key = SessionKey.recorded(text)
            except InvalidKey:
                continue
            if key.chat_type != "direct" or not (stream in self._spoke or self._is_peer(key)):
                continue
            routes, is_shared = self._looked_at(str(stream))
            if not is_shared:
                self._chats |= routes
                yield text

    def _is_peer(self, key: SessionKey) -> bool:
        if self._called is not None and key.peer == self._called:
            return True
        return any(
            (key.channel or channel) == channel and key.peer == sender
            for channel, _, sender in (address.partition(":") for address in self.addresses)
        )

    def _looked_at(self, stream: str) -> tuple[set[tuple[str, str]], bool]:
        """Return where the texts of a session went, and whether another person spoke there."""
        routes: set[tuple[str, str]] = set()
        for recorded in _stream(self._log, stream):
            event = recorded.event
            if isinstance(event, RouteChanged):
                routes.add(_chat(event.route))
            message = message_in(event)
            origin = None if message is None else message.provenance
            if self._is_by_another(origin):
                return set(), True
        return routes, False

    def _is_by_another(self, origin: Provenance | None) -> bool:
        is_a_persons = origin is not None and origin.kind == "external_user" and origin.sender is not None
        return is_a_persons and origin is not None and not self._is_by_them(origin)

    def _is_by_them(self, origin: Provenance) -> bool:
        return (
            origin.kind == "external_user"
            and origin.sender is not None
            and f"{origin.source_channel}:{origin.sender}" in self.addresses
        )

    def _is_theirs(self, recorded: Recorded) -> bool:
        event = recorded.event
        run = run_named(event)
        if is_summary(event) and self._spoke.get(recorded.stream, recorded.position) < recorded.position:
            self.summaries.add(run or "")
            return True
        if isinstance(event, DeliveryDecided) and self._goes_to_them(event.route):
            self._to_them.add(recorded.stream)
            if event.run_id is not None and recorded.correlation not in self.runs:
                self._told_by[event.run_id] = None
            return True
        if not (
            (recorded.correlation is not None and recorded.correlation in self.runs)
            or run in self.runs
            or recorded.stream in self._to_them
        ):
            return False
        if isinstance(event, RouteChanged) and event.chat_type == "direct":
            self._chats.add(_chat(event.route))
        if isinstance(event, RunAborted) and event.into is not None:
            self.runs.add(event.into)  # it answers their message as well
        message = message_in(event)
        origin = None if message is None else message.provenance
        return not self._is_by_another(origin)

    def _goes_to_them(self, route: Route) -> bool:
        return _chat(route) in self._chats or f"{route.channel}:{route.to}" in self.addresses


def _stream(log: Log, stream: str) -> Iterator[Recorded]:
    after = 0
    while page := log.stream(stream, after=after, limit=_PAGE):
        yield from page
        after = page[-1].version


def _chat(route: Route) -> tuple[str, str]:
    return route.channel, route.to


def _plain(text: str) -> bytes:
    """Return the longest part of an id that is stored as it is."""
    parts: list[str] = re.findall(r"[\w@.+-]+", text, re.ASCII)
    return max(parts, key=len, default="").encode()


def _pattern(names: Collection[str]) -> re.Pattern[str]:
    long = sorted(name for name in names if len(name) >= _SHORTEST_NAME)
    return re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in long) or r"(?!)", re.IGNORECASE)
