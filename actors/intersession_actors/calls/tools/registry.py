"""The session tools by name: arguments, function, description for a model."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.agents_list import AgentsList, list_agents
from intersession_actors.calls.tools.read_file import ReadFile, read_text_file
from intersession_actors.calls.tools.session_status import SessionStatus, session_status
from intersession_actors.calls.tools.sessions_history import SessionsHistory, read_history
from intersession_actors.calls.tools.sessions_list import SessionsList, list_sessions
from intersession_actors.calls.tools.sessions_search import SessionsSearch, search_sessions
from intersession_actors.calls.tools.sessions_send import SessionsSend, send_message
from intersession_actors.calls.tools.sessions_spawn import SessionsSpawn, start_subagent
from intersession_actors.calls.tools.subagents import SessionsYield, Subagents, lead_subagents, yield_turn
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.gate.schemas import schema_of, tool_in
from intersession_actors.rules.gate.shapes import text_of
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.tools import UseTool, Workshop, judge_tool, workshop_of
from intersession_events.basics.plain_json import JsonObject


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool with all that doors need to know. `call` returns its answer, or a pending one; it raises `ToolRefused`.

    `title` is what a person sees. A tool that only `reads` changes nothing, and asks for `operator.read` at
    the gateway, any other for `operator.write`. One that answers `at_once` reads settings alone, and never
    the log. A sub-agent has the tools that are `for_children`, and those that its settings give it (SPAWN-7).
    """

    name: str
    title: str
    description: str
    reads: bool = False
    at_once: bool = False
    for_children: bool = False
    arguments: type[msgspec.Struct]
    call: Callable[[Service, Call, Result], Result | Pending]


def _list(service: Service, call: Call, arguments: Result) -> Result:
    answer, call.summary = list_sessions(service.reader, call.requester, arguments)
    return answer


def _history(service: Service, call: Call, arguments: Result) -> Result:
    answer, call.summary = read_history(service.reader, call.requester, arguments)
    return answer


def _status(service: Service, call: Call, arguments: Result) -> Result:
    answer, call.summary = session_status(service, call.requester, arguments)
    return answer


def _search(service: Service, call: Call, arguments: Result) -> Result:
    answer, call.summary = search_sessions(service.reader, call.requester, arguments)
    return answer


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            name="sessions_list",
            title="List sessions",
            reads=True,
            description=(
                "List the sessions you can see, most recently active first, with filters. "
                "messageLimit adds the last messages of each."
            ),
            arguments=SessionsList,
            call=_list,
        ),
        Tool(
            name="sessions_history",
            title="Read a session",
            reads=True,
            description="Read the transcript of a session you can see, by sessionKey or sessionId, newest messages kept.",
            arguments=SessionsHistory,
            call=_history,
        ),
        Tool(
            name="sessions_search",
            title="Search sessions",
            reads=True,
            description=(
                "Find where words were said in the transcripts you can read, newest first: session, message and the words "
                "around. Read on with sessions_history."
            ),
            arguments=SessionsSearch,
            call=_search,
        ),
        Tool(
            name="sessions_send",
            title="Send to a session",
            description=(
                "Send a message to another session, named by sessionKey, label or agentId, and wait up to "
                "timeoutSeconds (30) for its reply; 0 does not wait."
            ),
            arguments=SessionsSend,
            call=send_message,
        ),
        Tool(
            name="sessions_spawn",
            title="Start a sub-agent",
            description=(
                "Start a sub-agent in a session of its own on a task. Answers at once; "
                "the result is announced to you when it has ended, so do not poll for it. "
                "With wait (seconds) the answer is the result. "
                'With context "fork" it begins with this conversation.'
            ),
            arguments=SessionsSpawn,
            call=start_subagent,
        ),
        Tool(
            name="agents_list",
            title="List agents",
            reads=True,
            at_once=True,
            description="List the agents you may start sub-agents of.",
            arguments=AgentsList,
            call=list_agents,
        ),
        Tool(
            name="subagents",
            title="Lead sub-agents",
            for_children=True,
            description=(
                "List the sub-agents that you have started (action list), cancel one or all (action cancel), or give "
                "one that is at work a message, with which it begins again (action steer). target is its number in the "
                "list, its label, its session key, the beginning of its run id, or last."
            ),
            arguments=Subagents,
            call=lead_subagents,
        ),
        Tool(
            name="sessions_yield",
            title="Wait for sub-agents",
            for_children=True,
            description=(
                "End your turn to wait for the sub-agents that you have started in it, or with waitFor message for "
                "anybody's message. Their results come to you as messages. Answer right after it, with NO_REPLY or a "
                "word for those that wait."
            ),
            arguments=SessionsYield,
            call=yield_turn,
        ),
        Tool(
            name="read_file",
            title="Read a file",
            reads=True,
            for_children=True,
            description=(
                "Read a text file that came with a message of this session, by its name. nextOffset of the answer is the "
                "offset to read on."
            ),
            arguments=ReadFile,
            call=read_text_file,
        ),
        Tool(
            name="session_status",
            title="Look at a session",
            reads=True,
            for_children=True,
            description=(
                "Tell how a session stands that you can see: what runs and waits there, its model, how full its window is. "
                "With changesSince, the stateVersion of an earlier answer, what has happened there since."
            ),
            arguments=SessionStatus,
            call=_status,
        ),
    )
}


def is_read_from_log(name: object) -> bool:
    """Whether a tool's answer is in the log, so that a host that only follows it can give it."""
    tool = TOOLS.get(name) if isinstance(name, str) else None
    return tool is not None and tool.reads and not tool.at_once


def tools_offered(
    config: Config, requester: Requester, among: Sequence[str] = tuple(TOOLS)
) -> tuple[str, ...]:
    """Return the names of a caller's tools, in their order; the operator has all."""
    return _offered(workshop(config, requester), tuple(among))


@lru_cache(256)
def _offered(known: Workshop, among: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same by what decides on it: it is asked for at each start of a run, and seldom another."""
    return tuple(name for name in among if judge_tool(UseTool(tool=name), known) is None)


def workshop(config: Config, requester: Requester) -> Workshop:
    """Return the inputs that decide which tools a caller has."""
    return workshop_of(config, requester, _WITHHELD)


_WITHHELD: Final = tuple(name for name, tool in TOOLS.items() if not tool.for_children)


def schemas(names: Sequence[str], dialect: str) -> list[JsonObject]:
    """Describe tools in an API's form: `openai`, `responses`, `anthropic`, `mcp`, or `json-schema` (name and plain schema).

    The caller gets objects of their own.

    Raises:
        ToolRefused: there is no such dialect (`invalid_request`).
    """
    return msgspec.json.decode(_described(tuple(names), text_of("dialect", dialect)), type=list[JsonObject])


def described() -> str:
    """Return the JSON of all tools for models: name, description, plain schema."""
    return _described(tuple(TOOLS), "json-schema").decode()


@lru_cache(maxsize=64)
def _described(names: tuple[str, ...], dialect: str) -> bytes:
    """Return the JSON of their descriptions. An agent asks for them on each turn, and they never change."""
    return msgspec.json.encode(
        [
            tool_in(dialect, tool.name, tool.description, schema_of(tool.arguments))
            for tool in (TOOLS[name] for name in names)
        ]
    )
