"""The command line, for people and scripts: each command asks the same questions as every other door."""

from intersession.cli.shell.run import main

__all__ = ["main"]
