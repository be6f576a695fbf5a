"""A writer of a simulation that was taken over while it was paused: it wakes, and goes on with what it had in hand."""

from contextlib import suppress
from typing import TYPE_CHECKING

from intersession_actors.running.simulation.greenlets import Stuck
from simulation.faults import Crash
from simulation.store import STORE

if TYPE_CHECKING:
    from simulation.world import World


class Paused:
    """The process that has written the log until now: its actors, agents, clients and what waits to be written, as they are."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._its = world.runtime, world.log, world.system

    def wake(self, steps: int) -> None:
        """Let it do so many steps. Time stands still, and nothing of what it does may be in the store (STBY-3)."""
        world, its_runtime = self._world, self._its[0]
        taken_over = world.runtime, world.log, world.system
        before = _stored()
        world.runtime, world.log, world.system = self._its
        world.is_deposed = True
        try:
            for _ in range(steps):
                with suppress(Crash):
                    if not its_runtime._greenlets.step(until=world.clock.monotonic()):
                        break
        finally:
            world.is_deposed = False
            world.runtime, world.log, world.system = taken_over
        if _stored() != before:
            world.wrong("deposed", "a writer that was taken over has changed what is in the store")

    def end(self) -> None:
        """End the process."""
        runtime, log, _ = self._its
        with suppress(Crash):
            log.crash()
        with suppress(Crash, Stuck):
            runtime.crash()


def _stored() -> bytes:
    assert STORE.memory is not None
    return STORE.memory.serialize()
