"""The outbox: takes each text that was decided to its channel, and records how that ended."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.delivery.commands import (
        DeliveryCommand,
        DeliveryReturned,
        GiveUpDelivery,
        RetryDelivery,
        RetryDue,
        TooOld,
    )
    from intersession_actors.delivery.outbox import Outbox
    from intersession_actors.delivery.records import RULES
    from intersession_actors.delivery.rules import (
        GIVEN_UP,
        MOST_CUT_OFF,
        ended_in,
    )

__all__ = [
    "GIVEN_UP",
    "MOST_CUT_OFF",
    "RULES",
    "DeliveryCommand",
    "DeliveryReturned",
    "GiveUpDelivery",
    "Outbox",
    "RetryDelivery",
    "RetryDue",
    "TooOld",
    "ended_in",
]
