"""What a tool of an agent's own is, and the two ways in which its call ends badly."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from intersession_actors.outside.agents.turn import Turn
from intersession_events.basics.plain_json import JsonObject


class BadArguments(ValueError):
    """A model's arguments do not fit a tool; the error says where, for the model."""


class ToolFailed(RuntimeError):
    """A tool did not do what was asked; the error says why, for the model."""


class OwnTool(NamedTuple):
    """A tool as a model sees it, and how it is called. `schema` is the JSON schema of its arguments.

    `call` gets a turn whose `call_id` names the call. What it returns is told to the model: a text as it is, else JSON. It raises
    `BadArguments` before it has done anything.
    """

    name: str
    description: str
    schema: JsonObject
    call: Callable[[Turn, JsonObject], Awaitable[object]]
