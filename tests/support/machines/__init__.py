"""Machines on one machine: each has a network, process ids and a name of its own, so that it can be cut off, slowed and paused."""
