"""Calls of the gateway's methods by those who stand for less than the operator, as a door makes them: a refusal is an answer."""

from typing import Any

from intersession import SessionSystem, ToolRefused
from intersession_actors.calls.service.callers import Caller


def called_by(caller: Caller, system: SessionSystem, method: str, params: dict[str, Any]) -> Any:
    """Return what a caller is answered."""
    try:
        return system.gateway.perform(method, params, caller=caller)
    except ToolRefused as refused:
        return dict(refused.as_result())
