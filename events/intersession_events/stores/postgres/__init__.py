"""The log in a schema of a PostgreSQL database, on the eventsourcing library's recorder. Loaded only where a URL names one."""

from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.filling import SchemaFilling
from intersession_events.stores.postgres.lease import Waiting
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.postgres.opening import inspect, writer_at
from intersession_events.stores.postgres.queue.taking import Taking

__all__ = ["PostgresLog", "SchemaFilling", "Taking", "Waiting", "address_of", "inspect", "writer_at"]
