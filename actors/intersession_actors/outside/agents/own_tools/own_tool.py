"""Functions that are tools of a framework's agent, with their calls on record: `own_tool` (TOOL-8)."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import wraps
from types import TracebackType
from typing import Any, Final, cast, get_type_hints

import msgspec

from intersession_actors.outside.agents.own_tools.calling import outcome_of, released
from intersession_actors.outside.agents.own_tools.functions import function_tool
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.plain_json import JsonObject

_turn: Final[ContextVar[Turn | None]] = ContextVar("intersession_turn", default=None)


class Answering:
    """Lets tools know the turn that an agent is called for, while a block lasts that is `inside` another one."""

    __slots__ = ("_inside", "_token", "_turn")

    def __init__(self, turn: Turn, inside: AbstractContextManager[object]) -> None:
        self._turn = turn
        self._inside = inside

    def __enter__(self) -> None:
        """Begin the block."""
        self._inside.__enter__()
        self._token = _turn.set(self._turn)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End the block."""
        _turn.reset(self._token)
        return self._inside.__exit__(kind, error, trace)


def own_tool(function: Callable[..., object]) -> Callable[..., Awaitable[str]]:
    """Return a function as one that any framework can have as an async tool, and whose calls are recorded.

    Called while an agent answers, it records the call in the session, calls the function, records the result and returns it, as the
    tools of `openai_agent` do: a text as it is, else JSON; an exception is a result that says so; a second attempt has the recorded
    result. A first parameter that is a `Turn` gets the turn, and the framework does not see it. Name, docstring and
    annotations stay, so decorate with this one first, and with the framework's own around it.

    Raises:
        TypeError: the function can't be a tool.
    """
    tool = function_tool(function)
    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.name in tool.schema["properties"]]
    signature = signature.replace(parameters=parameters, return_annotation=str)

    @wraps(function)
    async def called(*positional: object, **named: object) -> str:
        turn = _turn.get()
        if turn is None:
            raise RuntimeError(f"{tool.name} is a tool of an agent, and no agent is answering here")
        bound = signature.bind(*positional, **named).arguments
        arguments = cast("JsonObject", msgspec.to_builtins(bound, enc_hook=repr))
        call_id = await off_loop(turn.record_call, tool.name, arguments)

        async def work(inside: Turn) -> object:
            return await released(inside, call_id, tool, arguments)

        return (await outcome_of(turn, call_id, tool.name, work)).text

    hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    # Any: an annotation is whatever the host wrote.
    kept: dict[str, Any] = {one.name: hints[one.name] for one in parameters if one.name in hints}
    # What a framework looks at: the turn is not there, and no name has to be looked up in the function's module.
    del called.__wrapped__
    called.__annotations__ = {**kept, "return": str}
    vars(called)["__signature__"] = signature.replace(
        parameters=[one.replace(annotation=kept.get(one.name, one.annotation)) for one in parameters]
    )
    return called
