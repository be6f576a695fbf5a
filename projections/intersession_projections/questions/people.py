"""The people of a log and their chats: who wrote where, found by any name of theirs. For `told` (ANS-1)."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Final, Literal, NamedTuple

from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import ChatType, Provenance, Route, RunQueued, is_imported
from intersession_events.log.log import Log
from intersession_events.log.sql import Row
from intersession_projections.basics.row_prefilter import Holding, prefiltered
from intersession_projections.basics.spans import Span
from intersession_projections.basics.speakers import as_read, called
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.sessions.list import Sessions

_ALIKE: Final = re.compile(rb'"(?:provenance|route)":\{[^{}]*\}')
"""The parts of a stored message by which it names its person and chat: of many that are alike, one is read."""


ChatKind = ChatType | Literal["address"]
"""The kind of a chat; `address`: nobody of the name wrote there, it has it as its address."""


class Chat(NamedTuple):
    """A chat that a person wrote in, of a channel, or that has the person's own address.

    `session_key` is the session that the person spoke to there, None for an address where they never did; `first` is the position of
    their first words.
    """

    route: Route
    kind: ChatKind
    session_key: str | None
    first: int | None

    @property
    def address(self) -> tuple[str, str | None, str]:
        """Its place, whatever the thread."""
        return self.route.channel, self.route.account, self.route.to


class Person(NamedTuple):
    """Somebody by the names that the log knows, with their chats. `imported`: some of their words came by an import, which has no deliveries."""

    people: tuple[Provenance, ...]
    chats: tuple[Chat, ...]
    imported: bool = False


def person_named(log: Log, names: Collection[str]) -> Person | None:
    """Return the person with one of some names (an id, a name, `telegram:ada`); None if nobody has it, and no text went to such an address.

    An id that one message names is meant under every other name as well. People of the same name are one here; `people` names them all.
    """
    wanted = {name.casefold() for name in names}
    found = _Found(log)
    for name in dict.fromkeys(names):
        found.look(name, lambda origin: not wanted.isdisjoint(map(str.casefold, called(origin))))
    for one in [*found.people]:
        if one.sender is not None and one.sender.casefold() not in wanted:
            found.look(one.sender, partial(_is_same, one))
    chats = [
        Chat(route, _kind(log, key, route), key, first) for route, (first, _, key) in found.spoke.items()
    ]
    chats.extend(_addressed(log, wanted, found.people, chats))
    if not found.people and not chats:
        return None
    return Person(tuple(found.people), tuple(chats), found.imported)


class _Found:
    """Finds the people of some names, and where they spoke."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.people: dict[Provenance, None] = {}
        self.spoke: dict[Route, tuple[int, int, str]] = {}
        """Of each place the positions of their first and last words there, and the session of these."""
        self.imported = False

    def look(self, name: str, is_meant: Callable[[Provenance], bool]) -> None:
        """Look through the log for people with a name."""
        alike, passed = _Alike(Holding.of_person(self._log, name)), dict[int, tuple[Route, str]]()
        for recorded in prefiltered(self._log, Span(), alike.is_new):
            message = as_read(recorded.event)
            origin = None if message is None else message.provenance
            if origin is None or not is_meant(origin):
                continue
            self.people[_who(origin)] = None
            self.imported = self.imported or is_imported(recorded.event)
            route = recorded.event.route if isinstance(recorded.event, RunQueued) else None
            if route is not None:
                passed[recorded.position] = (route, recorded.stream.removeprefix(SESSIONS))
        for position, (route, key) in passed.items():
            first, last = alike.bounds(position)
            known = self.spoke.get(route, (first, last, key))
            self.spoke[route] = (min(first, known[0]), *max((last, key), known[1:]))


def _is_same(one: Provenance, origin: Provenance) -> bool:
    return (one.source_channel, one.sender) == (origin.source_channel, origin.sender)


class _Alike:
    """Passes one of all rows of a person that name the same chat, and remembers where the first and the last stand."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._parts: dict[tuple[object, ...], tuple[int, int]] = {}
        self._passed: dict[int, tuple[object, ...]] = {}

    def is_new(self, row: Row) -> bool:
        """Whether a row is a person's, and none like it has passed."""
        if not self._holding.is_in(row):
            return False
        at: int = row[0]
        state: bytes = row[4]
        parts = _ALIKE.findall(state)
        # A name with a brace in it is not cut out: such a row is read.
        is_whole = len(parts) == state.count(b'"provenance":{') + state.count(b'"route":{')
        kind = (row[1], row[3], *parts) if is_whole else (at,)
        known = self._parts.get(kind)
        first, last = known or (at, at)
        self._parts[kind] = (min(first, at), max(last, at))
        if known is None:
            self._passed[at] = kind
        return known is None

    def bounds(self, position: int) -> tuple[int, int]:
        """Return the first and the last position of the rows like one that passed, once all were looked at."""
        return self._parts[self._passed[position]]


def _who(origin: Provenance) -> Provenance:
    """Return a person without what each message has of its own."""
    return Provenance(
        kind="external_user",
        source_channel=origin.source_channel,
        sender=origin.sender,
        sender_name=origin.sender_name,
    )


def _kind(log: Log, key: str, route: Route) -> ChatType:
    """Return the kind of a chat: as the session's key says it, else as its channel did; a thread is a group's."""
    of_key = SessionKey.recorded(key).chat_type
    if of_key is not None:
        return of_key
    row = Sessions(log).get(key)
    if row is not None and row.chat_type is not None:
        return row.chat_type
    return "direct" if route.thread is None else "group"


def _addressed(
    log: Log, wanted: Collection[str], people: Collection[Provenance], chats: Collection[Chat]
) -> Iterator[Chat]:
    """Yield the chats of deliveries that are other threads of a person's chats, or have the person's own address."""
    known = {chat.address: chat for chat in chats}
    spoken = {chat.route for chat in chats}
    own = {(one.source_channel, (one.sender or "").casefold()) for one in people}
    for route in Flows(log).routes():
        chat = known.get((route.channel, route.account, route.to))
        if route in spoken:
            continue
        if chat is not None:
            yield chat._replace(route=route)
        elif (
            (route.channel, route.to.casefold()) in own
            or route.to.casefold() in wanted
            or f"{route.channel}:{route.to}".casefold() in wanted
            or route.text.casefold() in wanted
        ):
            yield Chat(route, "address", None, None)
