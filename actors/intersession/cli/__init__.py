"""The command line: thin commands over the one place that every door asks."""

from intersession.cli.shell import main

__all__ = ["main"]
