"""Calls an agent as a session does, and waits for what comes of it."""

from queue import Queue
from typing import Any

from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.agents.result import AgentResult
from intersession_actors.outside.agents.turn import Turn
from support.running import WAIT


def answer_of(executor: AgentExecutor, agent: Any, turn: Turn) -> AgentResult:
    """Have an agent answer a turn."""
    results: Queue[AgentResult] = Queue()
    executor.register("agent", agent)
    executor.start(turn, results.put)
    return results.get(timeout=WAIT)
