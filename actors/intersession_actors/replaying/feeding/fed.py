"""A command that is fed, and to whom."""

from typing import NamedTuple

from intersession_actors.streams import Command


class ToSession(NamedTuple):
    """A command to a session's actor. `left_behind`: the process that had begun an attempt, a run's id and its number, was gone."""

    key: str
    command: Command
    left_behind: tuple[str, int] | None = None


class ToFlow(NamedTuple):
    """A command to the manager of a flow. `cut_off`: the process that had made the attempt under way was gone."""

    stream: str
    command: Command
    cut_off: bool = False
