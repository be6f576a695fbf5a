"""The sessions, exchanges, spawns, deliveries and runs that an event refers to, read from its payload alone."""

from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.facts import ready
from intersession_events.log.row_state import payload_in


class References:
    """The names in events: sessions by key, flows, deliveries and runs by id, streams by name. `queued` runs begin with one."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.exchanges: set[str] = set()
        self.spawns: set[str] = set()
        self.deliveries: set[str] = set()
        self.streams: set[str] = set()
        self.runs: set[str] = set()
        self.queued: set[str] = set()

    def take(self, topic: str, state: bytes) -> None:
        """Add the names in a row's event. An unreadable one adds none."""
        if topic in REFER_TO_NOTHING:
            return
        payload = payload_in(state)
        if payload is None:
            return
        try:
            named = _DECODE_SAID(payload) if topic in facts.SAYING else _DECODE_NAMED(payload)
            self._take_named(named, is_queued=topic.startswith(_QUEUED))
            if isinstance(named, _NamedMessage) and named.message is not None:
                self._take_message(named.message)
        except (ValueError, RecursionError):
            return  # reading it as an event says what is wrong with it

    def _take_message(self, message: "_Message") -> None:
        if message.run_id is not None:
            self.runs.add(message.run_id)
        origin = message.provenance
        if origin is not None:
            _add(self.sessions, origin.source_session_key)
            _add(self.exchanges, origin.exchange_id)

    def _take_named(self, named: "_Named", *, is_queued: bool) -> None:
        _add(self.sessions, named.spawned_by, named.requester, named.target, named.child, named.speaker)
        _add(self.sessions, named.session_key)
        self.sessions.update(named.chain)
        _add(self.exchanges, named.exchange_id)
        _add(self.spawns, named.spawn_id)
        _add(self.deliveries, named.delivery_id)
        _add(self.streams, named.owner)
        _add(self.runs, named.run_id, named.requester_run_id, named.root, named.retry_of)
        if named.budget is not None:
            _add(self.runs, named.budget.root)
            self.sessions.update(named.budget.path)
        if is_queued:
            _add(self.queued, named.run_id)


class _Budget(msgspec.Struct, rename="camel"):
    root: str | None = None
    path: tuple[str, ...] = ()


@ready
class _Named(msgspec.Struct, rename="camel"):
    """The fields of facts that refer to something, under the names that they have in all of them."""

    spawned_by: str | None = None
    requester: str | None = None
    target: str | None = None
    child: str | None = None
    speaker: str | None = None
    session_key: str | None = None
    chain: tuple[str, ...] = ()
    exchange_id: str | None = None
    spawn_id: str | None = None
    delivery_id: str | None = None
    owner: str | None = None
    run_id: str | None = None
    requester_run_id: str | None = None
    root: str | None = None
    retry_of: str | None = None
    budget: _Budget | None = None


class _Provenance(msgspec.Struct, rename="camel"):
    source_session_key: str | None = None
    exchange_id: str | None = None


class _Message(msgspec.Struct, rename="camel"):
    run_id: str | None = None
    provenance: _Provenance | None = None


@ready
class _NamedMessage(_Named, rename="camel"):
    message: _Message | None = None


_DECODE_NAMED: Final = msgspec.json.Decoder(_Named).decode
_DECODE_SAID: Final = msgspec.json.Decoder(_NamedMessage).decode
_QUEUED: Final = "run_queued."
_OF_OWN_STREAM: Final = (facts.RunAttempt, facts.DeliveryAttempt)
"""They name what their own stream began with before: the run that was queued there, the delivery that it is of."""
_DENIED: Final = facts.AccessRecorded
"""What somebody was denied does not go along."""
REFER_TO_NOTHING: Final = frozenset(
    topic
    for topic, kind in facts.TOPICS.items()
    if issubclass(kind, (*_OF_OWN_STREAM, _DENIED))
    or not ({*kind.__struct_fields__} & {*_Named.__struct_fields__, "message"})
)
"""The stored names of events that name nothing which has to go along."""


def _add(names: set[str], *given: str | None) -> None:
    names.update(name for name in given if name)
