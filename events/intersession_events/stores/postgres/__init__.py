"""The log in a schema of a PostgreSQL database, on the eventsourcing library's recorder. Loaded only where a URL names one."""

from intersession_events.stores.postgres.dumping import dump, rows_in
from intersession_events.stores.postgres.filling import SchemaFilling
from intersession_events.stores.postgres.log import PostgresLog

__all__ = ["PostgresLog", "SchemaFilling", "dump", "rows_in"]
