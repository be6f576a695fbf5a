"""Threads, loops, clocks, and calls of code that is not ours."""
