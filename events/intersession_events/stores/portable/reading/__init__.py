"""How a log is read in any SQL database: the half of a recorder that reads, its events, proven, and who follows it."""

from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.reading.following import Following
from intersession_events.stores.portable.reading.log import ReadableLog
from intersession_events.stores.portable.reading.recorder import EVENTS, Follows, ReadsLog

__all__ = ["EVENTS", "EventReader", "Following", "Follows", "ReadableLog", "ReadsLog"]
