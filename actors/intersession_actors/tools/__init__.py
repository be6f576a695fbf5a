"""The session tools as an agent has them: one module a tool."""

from intersession_actors.tools.agents_list import AgentsList
from intersession_actors.tools.registry import TOOLS, schemas
from intersession_actors.tools.sessions_history import SessionsHistory, read_history
from intersession_actors.tools.sessions_list import DEFAULT_LIMIT, MAX_LIMIT, SessionsList, list_sessions
from intersession_actors.tools.sessions_send import SessionsSend
from intersession_actors.tools.sessions_spawn import SessionsSpawn
from intersession_actors.tools.toolbox import Result, RunRecorder, Tools

__all__ = [
    "DEFAULT_LIMIT",
    "MAX_LIMIT",
    "TOOLS",
    "AgentsList",
    "Result",
    "RunRecorder",
    "SessionsHistory",
    "SessionsList",
    "SessionsSend",
    "SessionsSpawn",
    "Tools",
    "list_sessions",
    "read_history",
    "schemas",
]
