"""What the eventsourcing library is given of ours, for any database: mapper, subscription, how far the log has got."""

from intersession_events.stores.library.erasures import Erasures
from intersession_events.stores.library.frontier import Frontier
from intersession_events.stores.library.mapper import ChainedMapper, Fresh, Pending
from intersession_events.stores.library.subscription import LogSubscription

__all__ = ["ChainedMapper", "Erasures", "Fresh", "Frontier", "LogSubscription", "Pending"]
