"""The command line, for people and scripts: each command asks what every other door asks."""

from intersession.cli.shell.run import main

__all__ = ["main"]
