"""The session tools, one module a tool, and the toolbox that an agent, a host and every door calls them with."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.tools.agents_list import AgentsList
    from intersession_actors.tools.made_before import asked_anew
    from intersession_actors.tools.recorder import RunRecorder
    from intersession_actors.tools.registry import TOOLS, described, schema_of, schemas, tools_offered
    from intersession_actors.tools.searching import Hit, before_of, page_of, words_asked
    from intersession_actors.tools.sessions_history import SessionsHistory, read_history
    from intersession_actors.tools.sessions_list import DEFAULT_LIMIT, MAX_LIMIT, SessionsList, list_sessions
    from intersession_actors.tools.sessions_search import SessionsSearch
    from intersession_actors.tools.sessions_send import SessionsSend
    from intersession_actors.tools.sessions_spawn import SessionsSpawn
    from intersession_actors.tools.toolbox import Tools

__all__ = [
    "DEFAULT_LIMIT",
    "MAX_LIMIT",
    "TOOLS",
    "AgentsList",
    "Hit",
    "RunRecorder",
    "SessionsHistory",
    "SessionsList",
    "SessionsSearch",
    "SessionsSend",
    "SessionsSpawn",
    "Tools",
    "asked_anew",
    "before_of",
    "described",
    "list_sessions",
    "page_of",
    "read_history",
    "schema_of",
    "schemas",
    "tools_offered",
    "words_asked",
]
