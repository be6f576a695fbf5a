"""What can be registered as an agent, and two agents, `scripted` and `echo`, that need no key and no network."""

import inspect
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from intersession_actors.outside.agents.endpoint_options import check_options
from intersession_actors.outside.agents.own_tools.own_tools import OwnTools
from intersession_actors.outside.agents.pieces import of_generator
from intersession_actors.outside.agents.turn import AgentFunction, Reply, Turn
from intersession_actors.rules.gate.shapes import flaw_of_call
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.windows import ModelWindow
from intersession_actors.rules.prompt.fitting import tokens_in
from intersession_actors.running.host.actors import HostActor, asking, is_host_actor
from intersession_actors.running.host.extras import imported, needed
from intersession_actors.running.host.own_threads import off_loop


class PydanticAiAgent(Protocol):
    """The part of a pydantic-ai `Agent` that we use, for hosts without the `models` extra."""

    @property
    def run(self) -> Callable[..., Awaitable[Any]]:  # its types are pydantic-ai's, which may be missing
        """Run it once."""
        ...


Agent: TypeAlias = AgentFunction | HostActor | PydanticAiAgent
"""`def` or `async def agent(turn) -> str | None | Reply`, or one that yields pieces of its text (STREAM-1); a Pykka actor that gets the `Turn` as its message and
answers with the same; or a pydantic-ai `Agent`."""

Line: TypeAlias = "str | Reply | BaseException | type[BaseException] | AgentFunction | None"
"""What a scripted agent does on one turn: answer it, raise it, or call it with the turn."""


def as_function(agent: Agent) -> AgentFunction:
    """Return any kind of agent in the one form in which all are called.

    Raises:
        TypeError: this is no agent, or not one that can be called with a turn alone.
        MissingExtra: it is a pydantic-ai agent, and the extra `models` is not installed.
    """
    if is_host_actor(agent):
        return asking(agent)
    if any(base.__module__.partition(".")[0] == "pydantic_ai" for base in inspect.getmro(type(agent))):
        return pydantic_ai_agent(agent)
    if callable(agent) and not isinstance(agent, type):
        flaw = flaw_of_call(agent, "turn")
        if flaw is not None:
            raise TypeError(flaw)
        return of_generator(agent)
    raise TypeError(
        f"{agent!r} is no agent, give a function `agent(turn)`, sync or async, a Pykka actor's ref, "
        "or a pydantic-ai Agent"
    )


def function_of(field: str, agent: Agent) -> AgentFunction:
    """Return a host's agent in the one form in which all are called; `field` is where it was given.

    Raises:
        ToolRefused: this is no agent, or not one that can be called with a turn alone.
        MissingExtra: it is a pydantic-ai agent, and the extra `models` is not installed.
    """
    try:
        return as_function(agent)
    except TypeError as error:
        raise invalid(field, str(error)) from None


def pydantic_ai_agent(
    agent: object,
    *,
    deps: Callable[[Turn], object] | None = None,
    text: Callable[..., str | None] | None = None,
    context_tokens: int | None = None,
    images: bool | None = None,
    stream: bool = False,
) -> AgentFunction:
    """Make an agent from a pydantic-ai `Agent`; `deps` makes its dependencies for a turn.

    `text` says an output in words that is no text itself, such as a model of pydantic's; without it such an output fails the run
    with `bad_reply`. `context_tokens` is the window of the agent's model, where the table of windows does not know it (CTX-1),
    `images` whether it takes pictures (FILE-4). With
    `stream` the answer is shown while the model gives it (STREAM-1); the model must be able to. An agent that needs none of these can be registered as it is.

    Raises:
        MissingExtra: the extra `models` is not installed.
        TypeError: the agent has no model, or one that can't be made, such as for want of a key.
    """
    adapter = imported(
        "intersession_actors.outside.agents.pydantic_ai",
        what="a pydantic-ai agent",
        library="pydantic-ai",
        extra="models",
    )
    function: AgentFunction = adapter.pydantic_ai_agent(
        agent, deps=deps, text=text, context_tokens=context_tokens, images=images, stream=stream
    )
    return function


def openai_agent(
    *,
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    api: Literal["chat", "responses", "anthropic"] = "chat",
    tools: Iterable[object] = (),
    context_tokens: int | None = None,
    images: bool | None = None,
    **options: object,
) -> AgentFunction:
    """Make an agent from a model behind an endpoint (`agents.openai.OpenAiAgent`).

    `api` is the API that the endpoint speaks: chat completions, OpenAI's Responses, or Anthropic's Messages. `tools` are the agent's
    own, functions and `mcp_tools(…)`, beside those of the system (TOOL-1). `context_tokens` is the window of the model, where the table of windows does not know it (CTX-1), `images` whether it takes pictures (FILE-4). `options` are `system`,
    `most_rounds`, `stream` (True shows the answer while the endpoint gives it, STREAM-1), `client_options`, and those of a request; what an endpoint takes beside these goes into `extra_body`.

    Raises:
        MissingExtra: the extra `models` is not installed.
        TypeError: an option is not known, or does not work here; something among the tools is no tool, or can't be described to a model.
        ValueError: an option has a value that it can't have, or there is no key for the endpoint.
    """
    needed("openai", what=_ON_AN_ENDPOINT, library="openai", extra="models")
    given = {"model": model, "base_url": base_url, "api_key": api_key, "api": api, **options}
    check_options({**given, "context_tokens": context_tokens})
    return _OnAnEndpoint(given, OwnTools(tools), context_tokens, images)


_ON_AN_ENDPOINT: Final = "an agent on an OpenAI-compatible endpoint"


class _OnAnEndpoint:
    """Imports OpenAI's library on its first turn, on a thread: most of a second and some 50 MB."""

    def __init__(
        self, options: Mapping[str, object], tools: OwnTools, context_tokens: int | None, images: bool | None
    ) -> None:
        system, answer = (
            options.get("system"),
            options.get("max_completion_tokens")
            or options.get("max_output_tokens")
            or options.get("max_tokens"),
        )
        self.model_window = ModelWindow(
            model=str(options["model"]),
            tokens=context_tokens,
            instructions=tokens_in(f"{system or ''}{tools.described}"),
            answer=answer if isinstance(answer, int) else None,
            images=images,
        )
        self._tools = tools
        self._options = {**options, "tools": tools}
        self._agent: Callable[[Turn], Awaitable[Reply]] | None = None

    async def __call__(self, turn: Turn) -> Reply:
        """Answer one turn.

        Raises:
            TooManyToolCalls: the model asked for tools too often.
            openai.OpenAIError: the endpoint did not answer, or refused.
        """
        if self._agent is None:
            made = await off_loop(self._made)
            self._agent = self._agent or made
        return await self._agent(turn)

    def close_connections(self) -> list[Future[None]]:
        """Close the connections of its tools; returns what says that they have ended."""
        return self._tools.close()

    def _made(self) -> Callable[[Turn], Awaitable[Reply]]:
        adapter = imported(
            "intersession_actors.outside.agents.openai",
            what=_ON_AN_ENDPOINT,
            library="openai",
            extra="models",
        )
        agent: Callable[[Turn], Awaitable[Reply]] = adapter.OpenAiAgent(**self._options)
        return agent


class ScriptEnded(LookupError):
    """A scripted agent was called once more than it has lines."""


def scripted(lines: Sequence[Line] | Mapping[str, Sequence[Line]]) -> AgentFunction:
    """Make an agent that answers with its lines in order, in each session from the first one.

    A mapping has the lines per session key. Past the last line it raises `ScriptEnded`.
    """
    lock = threading.Lock()
    said: defaultdict[str, int] = defaultdict(int)

    def agent(turn: Turn) -> object:
        script = lines.get(turn.session_key, ()) if isinstance(lines, Mapping) else lines
        with lock:
            number = said[turn.session_key]
            said[turn.session_key] += 1
        if number >= len(script):
            raise ScriptEnded(
                f"the script of {turn.session_key} has {len(script)} lines; turn {number + 1} has none"
            )
        line = script[number]
        if isinstance(line, BaseException):
            raise line
        if isinstance(line, type):
            raise cast("type[BaseException]", line)
        return line if line is None or isinstance(line, str | Reply) else line(turn)

    return agent


def echo(prefix: str = "") -> AgentFunction:
    """Make an agent that returns every message, and is silent in loops and announces."""

    def agent(turn: Turn) -> str | Reply:
        return f"{prefix}{turn.message}" if turn.step == "message" else Reply.skip()

    return agent
