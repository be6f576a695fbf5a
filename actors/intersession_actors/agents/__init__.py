"""Agents: what a host registers, the turn it is called with, and who calls it."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.agents.agents import (
        Agent,
        as_function,
        echo,
        function_of,
        openai_agent,
        pydantic_ai_agent,
        scripted,
    )
    from intersession_actors.agents.configured import ConfiguredAgent, configured_agents, keyless
    from intersession_actors.agents.executor import AgentExecutor
    from intersession_actors.agents.made_calls import MadeCall
    from intersession_actors.agents.recorded import Divergence, OnDivergence, RecordedAgent, RecordedCall
    from intersession_actors.agents.recording import RecordedAttempt, Recording
    from intersession_actors.agents.result import AgentResult, Answered, Broke
    from intersession_actors.agents.results import Results
    from intersession_actors.agents.runners import ACP, is_agent, runner_of, runner_of_turn
    from intersession_actors.agents.script import ScriptLine, script_agent, script_file
    from intersession_actors.agents.turn import AgentFunction, Given, Recorder, Reply, ToolBox, Turn

__all__ = [
    "ACP",
    "Agent",
    "AgentExecutor",
    "AgentFunction",
    "AgentResult",
    "Answered",
    "Broke",
    "ConfiguredAgent",
    "Divergence",
    "Given",
    "MadeCall",
    "OnDivergence",
    "RecordedAgent",
    "RecordedAttempt",
    "RecordedCall",
    "Recorder",
    "Recording",
    "Reply",
    "Results",
    "ScriptLine",
    "ToolBox",
    "Turn",
    "as_function",
    "configured_agents",
    "echo",
    "function_of",
    "is_agent",
    "keyless",
    "openai_agent",
    "pydantic_ai_agent",
    "runner_of",
    "runner_of_turn",
    "script_agent",
    "script_file",
    "scripted",
]
