"""The log in an SQLite file, on the eventsourcing library's recorder: one writer, group commit, readers of their own."""

from intersession_events.stores.database import MEMORY
from intersession_events.stores.sqlite.application import SessionLog
from intersession_events.stores.sqlite.connections import LogDatastore
from intersession_events.stores.sqlite.filling import FileFilling, files_there
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.writer_lock import gateway_of, holder_of, is_loopback, writer_of

__all__ = [
    "MEMORY",
    "FileFilling",
    "LogDatastore",
    "SessionLog",
    "SqliteLog",
    "files_there",
    "gateway_of",
    "holder_of",
    "is_loopback",
    "writer_of",
]
