"""Calls the host's code for agents and channels: functions on threads, coroutines on a loop, actors by message."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.host.actors import HostActor, asking, is_host_actor
    from intersession_actors.host.awaited import ToolCoroutine
    from intersession_actors.host.calls import Call, Came, Inside, Outcome, Outside, Raised, is_async
    from intersession_actors.host.door_threads import ABOUT, DoorThreads, LimitedLane
    from intersession_actors.host.extras import imported, is_installed, needed
    from intersession_actors.host.hosts_loop import HostsLoop, LoopEnded
    from intersession_actors.host.loop import OwnLoop
    from intersession_actors.host.named import named_object
    from intersession_actors.host.own_threads import off_loop, to_its_end
    from intersession_actors.host.steps import Blocking
    from intersession_actors.host.threads import Job, Workers
    from intersession_events.errors import MissingExtra

__all__ = [
    "ABOUT",
    "Blocking",
    "Call",
    "Came",
    "DoorThreads",
    "HostActor",
    "HostsLoop",
    "Inside",
    "Job",
    "LimitedLane",
    "LoopEnded",
    "MissingExtra",
    "Outcome",
    "Outside",
    "OwnLoop",
    "Raised",
    "ToolCoroutine",
    "Workers",
    "asking",
    "imported",
    "is_async",
    "is_host_actor",
    "is_installed",
    "named_object",
    "needed",
    "off_loop",
    "to_its_end",
]
