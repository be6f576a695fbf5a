"""`agents_list`: the agents a requester may start sub-agents of (SPAWN-2)."""

from typing import Any

import msgspec

from intersession_actors.policy import agents_list as listed
from intersession_actors.service import AccessSummary, Caller, Service, read_arguments
from intersession_actors.tools.call import Answer
from intersession_events.facts import ready


@ready
class AgentsList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing is asked for."""


def list_agents(service: Service, caller: Caller, arguments: dict[str, Any]) -> Answer:
    """List the agents that may be started, the requester's own first."""
    read_arguments(AgentsList, arguments)
    caller.summary = AccessSummary()
    key = caller.requester.key
    result = listed(service.config, None if key is None else key.agent_id)
    return Answer(msgspec.to_builtins(result))
