"""Threads, loops, clocks, and calls of the host's code."""
