"""What a log is in any SQL database: both halves of a recorder, group commit, appends, the one writer, the reader of events, the views."""

from intersession_events.stores.portable.appends import NotTaken
from intersession_events.stores.portable.application import NAME, PREFIX, LogApplication
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.filling import Filling, Moved
from intersession_events.stores.portable.identity import Holder, Identity, check_format, identity_of
from intersession_events.stores.portable.inline_views import InlineViews, Query, ViewTables
from intersession_events.stores.portable.keeping import Keeping
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.portable.reading import EventReader, Following, Follows, ReadsLog
from intersession_events.stores.portable.recent import LAST_EVENTS, Recent, recent_of
from intersession_events.stores.portable.writer import PAGE_TIMEOUT_S, Opened, Writer

__all__ = [
    "LAST_EVENTS",
    "NAME",
    "PAGE_TIMEOUT_S",
    "PREFIX",
    "Committing",
    "EventReader",
    "Filling",
    "Following",
    "Follows",
    "Holder",
    "Identity",
    "InlineViews",
    "Keeping",
    "LogApplication",
    "Moved",
    "NotTaken",
    "Opened",
    "PortableLog",
    "Query",
    "ReadsLog",
    "Recent",
    "ViewTables",
    "Writer",
    "check_format",
    "identity_of",
    "recent_of",
]
