"""The simulation: a system in one thread, by a seed. For tests, for the search for faults, and for sealed replay."""

from intersession_actors.simulation.greenlets import Stuck
from intersession_actors.simulation.simulated import SimulatedRuntime

__all__ = ["SimulatedRuntime", "Stuck"]
