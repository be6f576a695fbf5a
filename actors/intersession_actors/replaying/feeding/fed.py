"""A command that is fed, and to whom."""

from typing import NamedTuple

from intersession_actors.streams import Command


class ToSession(NamedTuple):
    """A command to a session's actor."""

    key: str
    command: Command


class ToFlow(NamedTuple):
    """A command to the manager of a flow. `cut_off`: the process that had made the attempt under way was gone."""

    stream: str
    command: Command
    cut_off: bool = False
