"""The spawner: drives each `sessions_spawn` through its child's task, the announce and the archiving."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.spawn.commands import ArchiveDue, AskStarted, FilesRemoved, OpenSpawn, Prepared
    from intersession_actors.spawn.records import circumstances_in, command_in
    from intersession_actors.spawn.rules import (
        Circumstances,
        Command,
        Spawn,
        decide,
        decide_open,
        evolve,
        spawn_in,
    )
    from intersession_actors.spawn.spawner import Spawner
    from intersession_actors.spawn.steps import announce_run, task_run

__all__ = [
    "ArchiveDue",
    "AskStarted",
    "Circumstances",
    "Command",
    "FilesRemoved",
    "OpenSpawn",
    "Prepared",
    "Spawn",
    "Spawner",
    "announce_run",
    "circumstances_in",
    "command_in",
    "decide",
    "decide_open",
    "evolve",
    "spawn_in",
    "task_run",
]
