"""The `messages` part of a configuration: what becomes of persons' messages while their session is at work (QUEUE)."""

from typing import Annotated, Final, Literal

import msgspec

from intersession_actors.rules.config.settings import Settings
from intersession_events.facts import ready

QueueMode = Literal["followup", "collect", "interrupt"]

INBOUND: Final = "inbound"
"""The caller of runs on persons' messages."""


class Queue(Settings, frozen=True, kw_only=True):
    """How persons' messages wait, for all channels and for each; `cap` is the most that one run answers."""

    mode: QueueMode = "followup"
    by_channel: dict[str, QueueMode] = msgspec.field(default_factory=dict[str, QueueMode])
    cap: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 20


class Messages(Settings, frozen=True, kw_only=True):
    """What becomes of persons' messages."""

    queue: Queue = Queue()


@ready
class Queueing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings for one channel (QUEUE-1)."""

    mode: QueueMode = "followup"
    cap: int = 20


FOLLOWUP: Final = Queueing()


def queueing_of(messages: Messages, channel: str) -> Queueing:
    """Return how a channel's messages wait."""
    queue = messages.queue
    return Queueing(mode=queue.by_channel.get(channel, queue.mode), cap=queue.cap)
