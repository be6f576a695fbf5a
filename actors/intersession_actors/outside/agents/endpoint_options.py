"""Checks the options of `openai_agent` when the agent is made, without OpenAI's library or the endpoint.

A test holds the lists against the library that is installed.
"""

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final, cast

OF_THE_AGENT: Final = frozenset(
    {
        "model",
        "base_url",
        "api_key",
        "api",
        "system",
        "most_rounds",
        "stream",
        "context_tokens",
        "client_options",
    }
)

OF_A_REQUEST: Final = frozenset(
    [
        "extra_body",
        "extra_headers",
        "extra_query",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "moderation",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "temperature",
        "timeout",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
"""The options of a chat completion that work here."""

OF_A_RESPONSE: Final = frozenset(
    [
        "access_programs",
        "context_management",
        "extra_body",
        "extra_headers",
        "extra_query",
        "include",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "moderation",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "temperature",
        "text",
        "timeout",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)
"""The options of OpenAI's Responses that work here."""

OF_A_MESSAGE: Final = frozenset(
    [
        "cache_control",
        "container",
        "context_management",
        "extra_body",
        "extra_headers",
        "extra_query",
        "inference_geo",
        "max_tokens",
        "metadata",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "temperature",
        "thinking",
        "timeout",
        "tool_choice",
        "top_k",
        "top_p",
    ]
)
"""The options of Anthropic's Messages that work here."""

OF_API: Final[Mapping[str, frozenset[str]]] = {
    "chat": OF_A_REQUEST,
    "responses": OF_A_RESPONSE,
    "anthropic": OF_A_MESSAGE,
}

_TOOLS: Final = "give the functions themselves, as tools=[…] of openai_agent"
_HERE: Final = "what the model is shown is the session, as this log has it, leave it out"
DO_NOT_WORK: Final[Mapping[str, str]] = {
    "audio": "an answer is text, leave it out",
    "background": "an answer is waited for, leave it out",
    "background_options": "an answer is waited for, leave it out",
    "conversation": _HERE,
    "function_call": _TOOLS,
    "functions": _TOOLS,
    "image": "an answer is text, leave it out",
    "input": _HERE,
    "instructions": "give instructions as `system`",
    "messages": "what the model is shown is the session, give instructions as `system`",
    "modalities": "an answer is text, leave it out",
    "mcp_servers": "give mcp_tools(…) among tools=[…] of openai_agent",
    "n": "there is one answer to a message, leave it out",
    "previous_response_id": _HERE,
    "prompt": "give instructions as `system`",
    "stream": "give stream=True beside it",
    "stream_options": "give stream=True, which asks for the usage as well",
    "tools": _TOOLS,
}
"""Options that a request of this agent can't have, at its top or in `extra_body`, and what to do."""

OF_A_CLIENT: Final = frozenset(
    [
        "admin_api_key",
        "api_key",
        "base_url",
        "data_residency",
        "default_headers",
        "default_query",
        "http_client",
        "max_retries",
        "organization",
        "project",
        "provider",
        "timeout",
        "webhook_secret",
        "websocket_base_url",
        "workload_identity",
        "_strict_response_validation",
        "_enforce_credentials",
    ]
)

_KEYS: Final = frozenset({"api_key", "admin_api_key", "workload_identity", "provider"})
_VARIABLES: Final = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY")


def check_options(options: Mapping[str, object]) -> None:
    """Refuse invalid options of an agent on an endpoint, by name.

    Raises:
        TypeError: an option is not known, or does not work here.
        ValueError: an option has a value that it can't have, or there is no key for the endpoint.
    """
    of_request = _options_of(options.get("api", "chat"))
    for name, value in options.items():
        if name in DO_NOT_WORK.keys() - OF_THE_AGENT and value not in (None, False):
            raise TypeError(f"{name}: {DO_NOT_WORK[name]}")
        if name not in OF_THE_AGENT | of_request | DO_NOT_WORK.keys():
            raise TypeError(
                f"{name}: is no option of this agent or of its requests{_near(name, OF_THE_AGENT | of_request)}; what your"
                f" endpoint takes beside these goes into extra_body={{{name!r}: …}}"
            )
    body = options.get("extra_body")
    for name, value in cast("Mapping[str, object]", body).items() if isinstance(body, Mapping) else ():
        if name in DO_NOT_WORK and value not in (None, False):
            raise TypeError(f"extra_body.{name}: {DO_NOT_WORK[name]}")
    client = options.get("client_options")
    if client is not None and not isinstance(client, Mapping):
        raise TypeError(
            f"client_options: is {type(client).__name__}, give a mapping of options of AsyncOpenAI"
        )
    of_client = cast("Mapping[str, object]", client or {})
    for name in of_client:
        if name not in OF_A_CLIENT:
            raise TypeError(f"client_options.{name}: is no option of AsyncOpenAI{_near(name, OF_A_CLIENT)}")
    _check_values(options)
    if options.get("api_key") is None and not _KEYS & {
        name for name, value in of_client.items() if value is not None
    }:
        _check_key()


def _options_of(api: object) -> frozenset[str]:
    for name, of_request in OF_API.items():
        if name == api:
            return of_request
    raise ValueError(f"api: is {api!r}, give one of {', '.join(OF_API)}")


def _check_values(options: Mapping[str, object]) -> None:
    model = options.get("model")
    if not isinstance(model, str) or not model.strip():
        raise ValueError(f"model: is {model!r}, give the name of a model at the endpoint")
    if not isinstance(options.get("stream", False), bool):
        raise ValueError(f"stream: is {options['stream']!r}, give True or False")  # noqa: TRY004 - as of any other option
    for name in ("most_rounds", "context_tokens", "max_tokens", "max_completion_tokens", "max_output_tokens"):
        value = options.get(name)
        if isinstance(value, int | str) and (isinstance(value, bool | str) or value < 1):
            raise ValueError(f"{name}: is {value!r}, give a whole number of at least 1")


def _check_key() -> None:
    """Find a missing key now: else the first person's message fails."""
    if not any(os.environ.get(name) for name in _VARIABLES):
        raise ValueError(
            "api_key: is missing, and OPENAI_API_KEY is not set; give one, or api_key='none' for an endpoint that asks for none"
        )


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f" (is {near[0]} meant?)" if near else ""
