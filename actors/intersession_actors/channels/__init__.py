"""Channels, which show texts to people outside: the ones that come with us, and the caller that the outbox uses."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.channels.attempts import Asked, Attempts
    from intersession_actors.channels.caller import ChannelCaller
    from intersession_actors.channels.channels import (
        AnyChannel,
        Channel,
        DeliveryInDoubt,
        DeliveryLater,
        DeliveryRefused,
        MemoryChannel,
        Outbound,
        ThreadWanted,
        console_channel,
    )
    from intersession_actors.channels.configured import configured_channels, host_problems
    from intersession_actors.channels.outcomes import Delivered, DeliveryResult, NotDelivered, ThreadOpened
    from intersession_actors.channels.turns import Place
    from intersession_actors.channels.url import BadChannelUrl
    from intersession_actors.channels.webhook import posting

__all__ = [
    "AnyChannel",
    "Asked",
    "Attempts",
    "BadChannelUrl",
    "Channel",
    "ChannelCaller",
    "Delivered",
    "DeliveryInDoubt",
    "DeliveryLater",
    "DeliveryRefused",
    "DeliveryResult",
    "MemoryChannel",
    "NotDelivered",
    "Outbound",
    "Place",
    "ThreadOpened",
    "ThreadWanted",
    "configured_channels",
    "console_channel",
    "host_problems",
    "posting",
]
