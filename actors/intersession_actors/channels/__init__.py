"""Channels: what takes a text outside, the ones that come with us, and who calls them."""

from intersession_actors.channels.caller import (
    ChannelCaller,
    Delivered,
    DeliveryResult,
    NotDelivered,
    ThreadOpened,
)
from intersession_actors.channels.channels import (
    Channel,
    DeliveryInDoubt,
    DeliveryRefused,
    MemoryChannel,
    Outbound,
    ThreadWanted,
    console_channel,
    printable,
)
from intersession_actors.channels.configured import configured_channels

__all__ = [
    "Channel",
    "ChannelCaller",
    "Delivered",
    "DeliveryInDoubt",
    "DeliveryRefused",
    "DeliveryResult",
    "MemoryChannel",
    "NotDelivered",
    "Outbound",
    "ThreadOpened",
    "ThreadWanted",
    "configured_channels",
    "console_channel",
    "printable",
]
