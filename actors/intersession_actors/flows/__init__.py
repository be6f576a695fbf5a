"""What exchanges, spawns and deliveries share: the manager of many small streams, and how exchanges and spawns are led."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.flows.leader import Decided, Leader
    from intersession_actors.flows.led import (
        ENDS,
        Begins,
        Circumstances,
        Led,
        announce_requested,
        circumstances_in,
        knew_of,
    )
    from intersession_actors.flows.process_manager import Flow, ProcessManager
    from intersession_actors.flows.rules import RecordRead, Rules
    from intersession_actors.flows.steps import Appends, announce_of, step_of

__all__ = [
    "ENDS",
    "Appends",
    "Begins",
    "Circumstances",
    "Decided",
    "Flow",
    "Leader",
    "Led",
    "ProcessManager",
    "RecordRead",
    "Rules",
    "announce_of",
    "announce_requested",
    "circumstances_in",
    "knew_of",
    "step_of",
]
