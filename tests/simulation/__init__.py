"""Whole systems in simulated time, with whatever can go wrong: `python -m tests.simulation --help`."""
