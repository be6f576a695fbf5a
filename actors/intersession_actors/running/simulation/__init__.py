"""The simulation: a system in one thread, by a seed. For tests, for the search for faults, and for sealed replay."""
