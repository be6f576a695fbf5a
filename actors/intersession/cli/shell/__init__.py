"""Shared by all commands: options, times, answers, failures, the terminal, and the exit code."""
