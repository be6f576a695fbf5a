"""The command line: thin commands over the one place that every door asks."""

from intersession.cli.start import main

__all__ = ["main"]
