"""Calls of the gateway's methods by those who stand for less than the operator, as a door makes them: a refusal is an answer."""

from typing import Any

from intersession import Debugger, SessionSystem, ToolRefused
from intersession_actors.calls.service.callers import Caller
from intersession_actors.hindsight.debugger.view import View


def called_by(caller: Caller, system: SessionSystem, method: str, params: dict[str, Any]) -> Any:
    """Return what a caller is answered."""
    try:
        return system.gateway.perform(method, params, caller=caller)
    except ToolRefused as refused:
        return dict(refused.as_result())


def as_session(system: SessionSystem, key: str) -> Debugger:
    """Return what a session is shown of a system's log."""
    reader = system.debug.view.reader
    return Debugger(View(reader, reader.requester(key)))
