"""Agents as a configuration describes them: each on its model's provider, an OpenAI-compatible endpoint."""

from typing import Any, Final, NamedTuple

from intersession_actors.agents import openai_agent
from intersession_actors.config import Config
from intersession_actors.errors import ConfigError, ConfigProblem
from intersession_actors.turn import AgentFunction

SPEAKS: Final = frozenset({"openai-completions"})
"""The kinds of endpoint (`models.providers.<id>.api`) that can be called."""


class ConfiguredAgents(NamedTuple):
    """`agents` by id, and `notices` on those that have nobody to answer for them: their runs stay parked (KEY-9)."""

    agents: dict[str, AgentFunction]
    notices: tuple[str, ...]


def configured_agents(config: Config) -> ConfiguredAgents:
    """Make the agents that a configuration lists.

    Raises:
        ConfigError: a model's provider is not configured, or has no `baseUrl`.
        MissingExtra: there is one to be made, and the extra `models` is not installed.
    """
    agents: dict[str, AgentFunction] = {}
    notices: list[str] = []
    problems: list[ConfigProblem] = []
    for agent_id in config.agent_ids:
        model = config.model_of(agent_id)
        if model is None:
            notices.append(
                f"agent {agent_id!r} has no model (agents.defaults.model); its runs wait until it has one"
            )
            continue
        provider_id, _, model_id = model.partition("/")
        path = f"models.providers.{provider_id}"
        provider = config.models.providers.get(provider_id)
        if provider is None:
            notices.append(f"agent {agent_id!r}: {path} is not configured; its runs wait until it is")
            continue
        api = provider.get("api", "openai-completions")
        if api not in SPEAKS:
            notices.append(
                f"agent {agent_id!r}: {path}.api {api!r} is not spoken here, use one of {', '.join(sorted(SPEAKS))}; "
                "its runs wait"
            )
            continue
        base_url = provider.get("baseUrl")
        if not isinstance(base_url, str) or not base_url:
            problems.append(ConfigProblem(f"{path}.baseUrl", "is missing; give the address of the endpoint"))
            continue
        agents[agent_id] = openai_agent(model=model_id, base_url=base_url, **_options(provider))
    if problems:
        raise ConfigError(problems)
    return ConfiguredAgents(agents, tuple(notices))


def _options(provider: dict[str, Any]) -> dict[str, Any]:
    # An endpoint that asks for no key still gets one: the client insists.
    api_key = provider.get("apiKey")
    headers = provider.get("headers")
    return {"api_key": api_key if isinstance(api_key, str) and api_key else "none"} | (
        {"client_options": {"default_headers": headers}} if isinstance(headers, dict) else {}
    )
