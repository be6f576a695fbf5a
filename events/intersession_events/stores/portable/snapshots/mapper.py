"""The eventsourcing library's mapper for snapshots: to a row with a digest and back, for one log."""

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import Mapper, StoredEvent

from intersession_events.basics.errors import NotStorable
from intersession_events.log.states import Snapshot, read_snapshot, stored_snapshot
from intersession_events.stores.library.mapper import ChainedMapper


class SnapshotMapper(Mapper[str]):
    """Turns snapshots into stored events of the library and back. Nothing is imported: a topic names a shape, no class."""

    def __init__(self, events: ChainedMapper) -> None:
        super().__init__(events.transcoder)
        self._events = events

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> StoredEvent:
        """Return the row of a snapshot.

        Raises:
            NotStorable: it is something else.
        """
        if not isinstance(domain_event, Snapshot):
            raise NotStorable(f"the snapshot store takes snapshots, not {type(domain_event).__name__}")
        return StoredEvent(
            originator_id=domain_event.stream,
            originator_version=domain_event.version,
            topic=domain_event.topic,
            state=stored_snapshot(domain_event, log_id=self._events.log_id),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Snapshot:
        """Return the snapshot of a row.

        Raises:
            CorruptEvent: it was changed.
        """
        return read_snapshot(
            log_id=self._events.log_id,
            stream=str(stored_event.originator_id),
            version=stored_event.originator_version,
            topic=stored_event.topic,
            state=stored_event.state,
        )
