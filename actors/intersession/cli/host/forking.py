"""Makes forks for commands: of the log that is read, beside whoever writes it (FORK)."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from intersession.cli.shell import Reading, UsageError
from intersession_actors.agents import Agent, configured_agents
from intersession_actors.config import load_config
from intersession_actors.forking import Cast, ForkDoor, Forker, MadeFork
from intersession_actors.methods import fork_methods
from intersession_actors.runtime import MachineThreads
from intersession_actors.service import Reader
from intersession_actors.system import SessionSystem
from intersession_events.machine import random_id
from intersession_events.plain_json import JsonMapping, JsonObject
from intersession_events.stores import PortableLog


@contextmanager
def forking_beside(reader: Reader, reading: Reading) -> Generator[Callable[[str, JsonMapping], JsonObject]]:
    """Yield what calls the methods of forks of a log that is only read, for a door beside whoever writes it.

    Agents that the configuration has answer in them. What goes on at the end of the block is given up.
    """
    named = configured_agents(load_config(reading.config).config).agents
    threads = MachineThreads()

    def opened(made: MadeFork, cast: Cast) -> SessionSystem:
        return SessionSystem(made.path, agents=cast.agents, config=cast.config, stopping=cast.stopping)

    def forker(inside: Reader | None) -> Forker:
        return forker_of(inside or reader, reading, named, afar=True)

    door = ForkDoor(reader.log, threads, forker=forker, opens=opened)
    try:
        yield fork_methods(reader, door, threads)
    finally:
        door.stop(1.0)


def forker_of(reader: Reader, reading: Reading, named: Mapping[str, Agent], *, afar: bool = False) -> Forker:
    """Return what forks the runs of a log; forks run under what was in force, with the settings that are given on top."""
    if not isinstance(reader.log, PortableLog):
        raise UsageError(f"{reader.log.path} is no log that can be forked")
    return Forker(
        reader.log,
        reader,
        config=None,
        over=reading.config,
        new_id=random_id,
        named=named,
        afar=afar,
    )
