"""Agents as a configuration describes them: each on its model's provider, with the tools of the configured MCP servers."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from ipaddress import ip_address
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from intersession_actors.outside.agents.agents import openai_agent
from intersession_actors.outside.agents.own_tools.mcp_servers import McpTools, mcp_tools
from intersession_actors.outside.agents.turn import AgentFunction, Reply, Turn
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_actors.rules.policy.windows import find_model
from intersession_events.basics.plain_json import JsonList, JsonObject, JsonValue, is_list, is_object

SPEAKS: Final[Mapping[JsonValue, Literal["chat", "responses", "anthropic"]]] = {
    "openai-completions": "chat",
    "openai-responses": "responses",
    "anthropic-messages": "anthropic",
}
"""The kinds of endpoint (`models.providers.<id>.api`) that can be called, and what `openai_agent` calls them."""

_USUAL: Final = "openai-completions"

_EFFORT: Final = {"minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
"""What an endpoint is told of a thinking level; nothing for `off` and `adaptive`, which leave it to the model."""


class ConfiguredAgents(NamedTuple):
    """`agents` by id, and `notices` on those without an implementation: their runs stay parked (KEY-9)."""

    agents: dict[str, AgentFunction]
    notices: tuple[str, ...]


class ConfiguredAgent:
    """Answers with the model that a turn asks for, else with its own (SPAWN-1, GATE-2)."""

    def __init__(self, config: Config, model: str, tools: Sequence[McpTools] = ()) -> None:
        self._config = config
        self._model = model
        self._tools = tools
        self._by_choice: dict[tuple[str, str | None], AgentFunction] = {}
        self._with(model, None)

    async def __call__(self, turn: Turn) -> Reply:
        """Answer one turn.

        Raises:
            ConfigError: the model that is asked for can't be called.
            openai.OpenAIError: the endpoint did not answer, or refused.
        """
        # A model that was chosen in another system may stand there without its provider (IMP-1).
        chosen = None if turn.model is None else find_model(self._config, turn.model) or turn.model
        thinking = turn.thinking or self._config.thinking_of(turn.agent_id)
        agent = self._with(chosen or self._model, thinking)
        return await cast("Callable[[Turn], Awaitable[Reply]]", agent)(turn)

    def _with(self, model: str, thinking: str | None) -> AgentFunction:
        provider_id, _, model_id = model.partition("/")
        provider = self._config.models.providers.get(provider_id)
        problem = _problem(provider_id, provider)
        if provider is None or problem is not None:
            path = f"models.providers.{provider_id}"
            raise ConfigError(
                [
                    problem
                    or ConfigProblem(
                        path,
                        f"is not configured; model {model!r} needs it. Configure it, or give the session another"
                        " model (sessions.patch, null clears)",
                    )
                ]
            )
        effort = _EFFORT.get(thinking or "") if _reasons(provider, model_id) else None
        choice = (model, effort)
        if choice not in self._by_choice:
            # A configuration may give anything (Any): `openai_agent` looks at each value.
            options: dict[str, Any] = {**_options(provider)}
            api = SPEAKS[provider.get("api", _USUAL)]
            if effort is not None and api != "anthropic":
                options |= (
                    {"reasoning_effort": effort} if api == "chat" else {"reasoning": {"effort": effort}}
                )
            self._by_choice[choice] = openai_agent(
                model=model_id, base_url=provider["baseUrl"], api=api, tools=self._tools, **options
            )
        return self._by_choice[choice]

    def close_connections(self) -> list[Future[None]]:
        """Close the connections of its tools; returns what says that they have ended."""
        return [ended for source in self._tools for ended in source.close()]


def configured_agents(config: Config, named: Collection[str] | None = None) -> ConfiguredAgents:
    """Make the agents of a configuration, each with the tools of its MCP servers: those `named`, else all that workers do not have.

    Raises:
        ConfigError: a model's provider has no `baseUrl`, or no key where its endpoint answers nobody without one; an MCP server
            can't be one.
        MissingExtra: there is one to be made, and the extra `models`, or `mcp` for an MCP server, is not installed.
    """
    if named is None:
        named = [agent_id for agent_id in config.agent_ids if not config.at_workers(agent_id)]
    tools = mcp_sources(config) if named else []
    agents: dict[str, AgentFunction] = {}
    notices: list[str] = []
    problems: list[ConfigProblem] = []
    for agent_id in named:
        model = config.model_of(agent_id)
        if model is None:
            notices.append(
                f"agent {agent_id!r} has no model (agents.defaults.model); its runs wait until it has one"
            )
            continue
        provider_id = model.partition("/")[0]
        provider = config.models.providers.get(provider_id)
        problem = None if provider is None else _problem(provider_id, provider)
        if provider is None:
            path = f"models.providers.{provider_id}"
            notices.append(f"agent {agent_id!r}: {path} is not configured; its runs wait until it is")
        elif problem is None:
            agents[agent_id] = ConfiguredAgent(config, model, tools)
            if (without := keyless(provider_id, provider)) is not None:
                notices.append(f"agent {agent_id!r}: {without.path} {without.what}")
        elif problem.path.endswith(".api"):
            notices.append(f"agent {agent_id!r}: {problem.path} {problem.what}; its runs wait")
        else:
            problems.append(problem)
    if problems:
        raise ConfigError(problems)
    return ConfiguredAgents(agents, tuple(notices))


def mcp_sources(config: Config) -> list[McpTools]:
    """Return the tools of the MCP servers that are not disabled.

    Raises:
        ConfigError: one can't be an MCP server.
        MissingExtra: there is one, and the extra `mcp` is not installed.
    """
    sources: list[McpTools] = []
    problems: list[ConfigProblem] = []
    for server_id, server in config.mcp.servers.items():
        if not server.enabled:
            continue
        needs = {"stdio": server.command, "streamable-http": server.url, None: ""}[server.transport]
        if needs is None:
            what = f"{server.transport!r} needs {'a command' if server.url else 'a url'}"
            problems.append(ConfigProblem(f"mcp.servers.{server_id}.transport", what))
            continue
        try:
            sources.append(
                mcp_tools(
                    name=server_id,
                    command=None if server.command is None else (server.command, *server.args),
                    env=server.env or None,
                    cwd=server.cwd,
                    url=server.url,
                    headers=server.headers or None,
                    connect_seconds=server.connection_timeout_ms / 1000,
                    call_seconds=server.request_timeout_ms / 1000,
                    include=server.tool_filter.include,
                    exclude=server.tool_filter.exclude,
                )
            )
        except (TypeError, ValueError) as error:
            problems.append(ConfigProblem(f"mcp.servers.{server_id}", str(error)))
    if problems:
        raise ConfigError(problems)
    return sources


def _problem(provider_id: str, provider: JsonObject | None) -> ConfigProblem | None:
    """Return why a provider can't be called, if it can't."""
    if provider is None:
        return None
    path = f"models.providers.{provider_id}"
    api = provider.get("api", _USUAL)
    if api not in SPEAKS:
        return ConfigProblem(
            f"{path}.api", f"{api!r} is not spoken here, use one of {', '.join(sorted(SPEAKS))}"
        )
    if not isinstance(provider.get("stream", False), bool):
        return ConfigProblem(f"{path}.stream", f"is {provider['stream']!r}, give true or false")
    base_url = provider.get("baseUrl")
    if not isinstance(base_url, str) or not base_url:
        return ConfigProblem(f"{path}.baseUrl", "is missing; give the address of the endpoint")
    if urlsplit(base_url).hostname in _ASKS_FOR_A_KEY:
        return keyless(provider_id, provider)
    return None


_ASKS_FOR_A_KEY: Final = frozenset(
    [
        "api.anthropic.com",
        "api.cerebras.ai",
        "api.cohere.ai",
        "api.deepseek.com",
        "api.fireworks.ai",
        "api.groq.com",
        "api.mistral.ai",
        "api.moonshot.ai",
        "api.openai.com",
        "api.perplexity.ai",
        "api.together.xyz",
        "api.x.ai",
        "generativelanguage.googleapis.com",
        "openrouter.ai",
    ]
)
"""Endpoints that answer nobody without a key."""


def keyless(provider_id: str, provider: JsonObject) -> ConfigProblem | None:
    """Return the notice that a provider has no key, unless its endpoint is local or a header of its own can be the key."""
    host = urlsplit(str(provider.get("baseUrl"))).hostname or ""
    key, headers = provider.get("apiKey"), provider.get("headers")
    if (isinstance(key, str) and key.strip()) or (is_object(headers) and headers) or _is_here(host):
        return None
    return ConfigProblem(
        f"models.providers.{provider_id}.apiKey",
        f"is missing, and {host} may answer nobody without one; give the key, or a header that identifies the caller",
    )


def _is_here(host: str) -> bool:
    """Whether an endpoint is on this machine or in its own network, where models often need no key."""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost"))


def _reasons(provider: JsonObject, model_id: str) -> bool:
    """Whether the configuration says of a model that it can be told how much to think (`reasoning: true`)."""
    models: JsonValue = provider.get("models")
    entries: JsonList = models if is_list(models) else []
    return any(
        is_object(entry) and entry.get("id") == model_id and entry.get("reasoning") is True
        for entry in entries
    )


def _options(provider: JsonObject) -> JsonObject:
    # An endpoint that asks for no key still gets one: the client insists.
    api_key = provider.get("apiKey")
    headers = provider.get("headers")
    key = api_key if isinstance(api_key, str) and api_key else "none"
    return {"api_key": key, "stream": provider.get("stream", False)} | (
        {"client_options": {"default_headers": headers}} if is_object(headers) else {}
    )
