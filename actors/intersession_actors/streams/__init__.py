"""What every owner of a stream shares: its commands, what it is handed of the world, and how events become an append."""

from intersession_actors.streams.commands import (
    Accepted,
    Answer,
    Appended,
    ChildGone,
    Command,
    DeliveryEnded,
    Refused,
    Resume,
    RunEnded,
    SessionRestarted,
    StepRefused,
    StepTaken,
    StreamLoaded,
)
from intersession_actors.streams.drafting import append_of
from intersession_actors.streams.process_manager import Flow, Plan, ProcessManager
from intersession_actors.streams.world import World

__all__ = [
    "Accepted",
    "Answer",
    "Appended",
    "ChildGone",
    "Command",
    "DeliveryEnded",
    "Flow",
    "Plan",
    "ProcessManager",
    "Refused",
    "Resume",
    "RunEnded",
    "SessionRestarted",
    "StepRefused",
    "StepTaken",
    "StreamLoaded",
    "World",
    "append_of",
]
