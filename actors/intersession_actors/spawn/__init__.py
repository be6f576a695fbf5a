"""The spawner: drives each `sessions_spawn` through its child's task, the announce and the archiving."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.spawn.commands import (
        ArchiveDue,
        AskStarted,
        FilesRemoved,
        OpenSpawn,
        Prepared,
        SpawnCommand,
    )
    from intersession_actors.spawn.records import RULES
    from intersession_actors.spawn.rules import (
        Circumstances,
        Spawn,
        announced_text,
        decide_open,
        replied,
        with_text,
    )
    from intersession_actors.spawn.spawner import Spawner
    from intersession_actors.spawn.steps import announce_run, step_asked, task_run, way_out

__all__ = [
    "RULES",
    "ArchiveDue",
    "AskStarted",
    "Circumstances",
    "FilesRemoved",
    "OpenSpawn",
    "Prepared",
    "Spawn",
    "SpawnCommand",
    "Spawner",
    "announce_run",
    "announced_text",
    "decide_open",
    "replied",
    "step_asked",
    "task_run",
    "way_out",
    "with_text",
]
