"""`agents_list`: the agents that a requester may start sub-agents of (SPAWN-2)."""

import msgspec

from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import AccessSummary, Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.policy.spawning import agents_list
from intersession_events.facts import ready


@ready
class AgentsList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No arguments."""


def list_agents(service: Service, call: Call, arguments: Result) -> Result:
    """List the agents that may be started, the requester's own first."""
    read_arguments(AgentsList, arguments)
    call.summary = AccessSummary()
    requester = call.requester
    agent_id = None if requester.key is None else requester.key.agent_id
    found = agents_list(service.config, agent_id, requester.may_know_agent)
    answer: Result = msgspec.to_builtins(found)
    return answer
