"""The eventsourcing library's mapper with our registry, canonical JSON and hash chain.

The library's own stores the path of a class as topic and imports it on reading, and binds no event to the one before it.
Ours makes a stored event in two steps. A `Pending` is made in the thread of whoever appends, and knows the payload.
`seal` runs in the writer's thread, inside the transaction, where it is known which event the new one follows.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import Cipher, Compressor, Mapper, StoredEvent, Transcoder

from intersession_events.basics.errors import CorruptEvent, NotStorable, UnknownTopic
from intersession_events.log.envelope import Authorised, Erasing, seal, unseal
from intersession_events.log.erasing import erased_stream, rows_erased
from intersession_events.log.lineage import Lineage
from intersession_events.log.recorded import ANY_VERSION, Draft, Recorded
from intersession_events.log.row_state import is_sealed, opened
from intersession_events.log.storable import payload_of
from intersession_events.log.verifying.encrypted_rows import UNSEEN
from intersession_events.proofs.apart import has_thinking
from intersession_events.stores.keys.keyring import Keyring


class Fresh(msgspec.Struct, frozen=True):
    """A draft as the library takes it, for a stream. `ANY_VERSION` leaves its version to the writer."""

    originator_id: str
    draft: Draft
    originator_version: int = ANY_VERSION


class Pending(StoredEvent):
    """A stored event on its way: topic and payload are final; version, state and the event as read are set by `seal`."""

    draft: Draft
    payload: bytes
    has_thinking: bool
    """Whether `seal` takes a second salt, that of the thinking."""
    expected: int
    """The version that its stream must have before, if the library's event store puts it."""
    recorded: Recorded

    def __init__(self, stream: str, draft: Draft, expected: int = ANY_VERSION) -> None:
        """Make one of a draft.

        Raises:
            NotStorable: it could not be read again as it is.
        """
        topic, payload = payload_of(draft)
        # Past the frozen dataclass's own way, which sets each field by a call.
        self.__dict__.update(
            originator_id=stream,
            originator_version=0,
            topic=topic,
            state=b"",
            payload=payload,
            # Nearly no event has one of these words in it, and no call is made for it.
            has_thinking=(b"thinking" in payload or b"reasoning" in payload) and has_thinking(payload),
            draft=draft,
            expected=expected,
        )


class ChainedMapper(Mapper[str]):
    """Turns drafts into stored events and stored events into `Recorded`, for one log."""

    def __init__(
        self, transcoder: Transcoder, compressor: Compressor | None = None, cipher: Cipher | None = None
    ) -> None:
        """Make a mapper; opening the log sets `lineage`: the log's id is part of every hash.

        Raises:
            NotStorable: the environment asks for compressed or encrypted states, which nobody could hash again.
        """
        super().__init__(transcoder, compressor, cipher)
        if compressor is not None or cipher is not None:
            raise NotStorable("a log's rows are neither compressed nor encrypted by the library")
        self.lineage = Lineage("")
        self.authorised: Authorised = lambda _stream, _version, _stands: None
        """What may stand in the place of erased payloads; set by whoever can read the log."""
        self.keys: Keyring | None = None
        """The keys of a log that is kept encrypted; set as it is opened."""

    @property
    def log_id(self) -> str:
        """The id of the log that is written."""
        return self.lineage.log_id

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> Pending:
        """Return an event that `seal` completes.

        Raises:
            NotStorable: it could not be read again as it is.
        """
        if not isinstance(domain_event, Fresh):
            raise NotStorable(f"a log takes drafts (`Fresh`), not {type(domain_event).__name__}")
        version = domain_event.originator_version
        return Pending(
            domain_event.originator_id, domain_event.draft, version if version < 0 else version - 1
        )

    def seal(
        self, pending: Pending, *, position: int, version: int, prev: str, epoch: int, time: int, salt: bytes
    ) -> Recorded:
        """Put an event at its position, behind the one before it in its stream.

        Raises:
            NotStorable: its envelope can't be encoded.
        """
        state, recorded = seal(
            pending.draft,
            pending.topic,
            pending.payload,
            log_id=self.lineage.log_id,
            stream=pending.originator_id,  # type: ignore[arg-type]  # never a UUID; written for each event, so no cast
            version=version,
            epoch=epoch,
            prev=prev,
            salt=salt,
            time=time,
            position=position,
        )
        if self.keys is not None:
            state = self.keys.sealed(state, recorded)
        pending.__dict__.update(originator_version=version, state=state, recorded=recorded)
        return recorded

    def clear(self, state: bytes) -> bytes:
        """Return the state of a row with what is encrypted in clear, as far as the keys are at hand."""
        return state if self.keys is None else self.keys.clear(state)

    def to_domain_event(self, stored_event: StoredEvent) -> Recorded:
        """Return the event of a row, proven, at its position if it is a notification.

        Raises:
            CorruptEvent: it was changed; `position` says where it is.
            UnknownTopic: it is of a newer version; the same.
        """
        position: int = getattr(stored_event, "id", 0)
        stream: str = stored_event.originator_id  # type: ignore[assignment]  # never a UUID; read for each row, so no cast
        try:
            if self.keys is not None:
                self._check_encrypted(stored_event)
            return unseal(
                log_id=self.lineage.log_id_at(position),
                position=position,
                stream=stream,
                version=stored_event.originator_version,
                topic=stored_event.topic,
                state=stored_event.state,
                authorised=self.authorised,
            )
        except (CorruptEvent, UnknownTopic) as error:
            error.position = position or None
            raise

    def _check_encrypted(self, stored_event: StoredEvent) -> None:
        """Check a row that is still encrypted after it was read with the keys: they are not at hand, or it was changed.

        Raises:
            CorruptEvent: it was.
        """
        state, where = stored_event.state, (str(stored_event.originator_id), stored_event.originator_version)
        if self.keys is not None and is_sealed(state) and (envelope := opened(state, where=where)).sealed:
            said = self.keys.look(envelope)
            if said not in UNSEEN:
                raise CorruptEvent(f"{where[0]!r} version {where[1]!r}: {said}")


_REMEMBERED: Final = 256
"""Streams of which it is remembered what was erased in them."""


class Erasures:
    """An `Authorised`: reads the erasing events of a stream, and remembers them. They are never withdrawn."""

    def __init__(self, read: Callable[[str], Iterable[Recorded]]) -> None:
        self._read = read
        self._known: OrderedDict[str, Mapping[int, Erasing]] = OrderedDict()

    def __call__(self, stream: str, version: int, stands: str) -> Erasing | None:
        """Return what authorises that a payload is erased; None if nothing does.

        Raises:
            CorruptEvent: what would authorise it was changed.
        """
        known = self._known.get(stream, {})
        if (found := known.get(version)) is None or found.stands != stands:
            # Not known, or erased since: the thinking first, and later the rest.
            known = dict[int, Erasing]()
            for recorded in self._read(erased_stream(stream)):
                known.update(rows_erased(recorded.event, stream=recorded.stream, position=recorded.position))
            self._known[stream] = known
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known.get(version)
