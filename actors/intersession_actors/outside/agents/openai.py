"""An agent on any endpoint of models, by OpenAI's library: chat completions, Responses, and Anthropic's Messages. Needs the extra `models`."""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, cast

import msgspec
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, NotGiven, Omit

from intersession_actors.outside.agents.dialects.anthropic import VERSION, AnthropicMessages
from intersession_actors.outside.agents.dialects.chat import ChatCompletions
from intersession_actors.outside.agents.dialects.dialect import (
    Dialect,
    ModelAnswer,
    NoAnswer,
    NotUnderstood,
    is_json_object,
    word_in,
)
from intersession_actors.outside.agents.dialects.responses import Responses
from intersession_actors.outside.agents.dialects.streaming import streamed
from intersession_actors.outside.agents.own_tools.calling import answers_to, made_after_all
from intersession_actors.outside.agents.own_tools.own_tools import OwnTools
from intersession_actors.outside.agents.turn import Reply, Turn, is_blank
from intersession_actors.rules.config.tools import TOOL_NAMES
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.running.failures.failure import one_line
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import TextBlock, Usage

_logger = logging.getLogger("intersession.runs")

_OF_THE_REQUEST: Final[Mapping[str, str]] = {
    "extra_headers": "headers",
    "extra_query": "params",
    "extra_body": "extra_json",
    "timeout": "timeout",
}
"""What `create` of the library takes beside the body, and what `post` calls it."""
_SHOWN: Final = 300
"""Characters of what an endpoint said instead of an answer."""
_DIALECTS: Final[Mapping[str, Dialect]] = {
    "chat": ChatCompletions(),
    "responses": Responses(),
    "anthropic": AnthropicMessages(),
}


class TooManyToolCalls(RuntimeError):
    """The model kept asking for tools and never answered."""


class OpenAiAgent:
    """Answers with a model: asks it, makes its tool calls, until it returns a text.

    `api` is the API that the endpoint speaks: `chat`, `responses` or `anthropic`. `system` stands before the turn's context. `tools`
    are the agent's own. With `stream` each answer is shown while the endpoint gives it (STREAM-1). `most_rounds` bounds how often the
    model may ask for tools in one turn.
    `client_options` go to `AsyncOpenAI` (`timeout` in seconds, `max_retries`, …), `options` to each request
    (`temperature`, …; `agents/endpoint_options.py` has them). Without `api_key` the client looks into `OPENAI_API_KEY`.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        api: str = "chat",
        system: str | None = None,
        tools: OwnTools | None = None,
        most_rounds: int = 16,
        stream: bool = False,
        client_options: JsonObject | None = None,
        **options: object,
    ) -> None:
        given = {name: value for name, value in options.items() if not isinstance(value, NotGiven | Omit)}
        self._model = model
        self._dialect = _DIALECTS[api]
        self._clients = _Clients({"base_url": base_url, "api_key": api_key, **(client_options or {})})
        self._system = system
        self._tools = tools or OwnTools(())
        self._most_rounds = most_rounds
        self._stream = stream
        self._body = {name: value for name, value in given.items() if name not in _OF_THE_REQUEST}
        beside = {_OF_THE_REQUEST[name]: given[name] for name in given.keys() & _OF_THE_REQUEST.keys()}
        # None is the library's word for "no such thing", but as a timeout it means "wait for ever".
        self._beside: JsonObject = {
            name: value for name, value in beside.items() if value is not None or name == "timeout"
        }

    async def __call__(self, turn: Turn) -> Reply:
        """Answer one turn.

        Raises:
            TooManyToolCalls: the model asked for tools more than `most_rounds` times.
            NoAnswer: its answer was filtered, or cut off before it had a text.
            openai.OpenAIError: the endpoint did not answer, or refused.
        """
        dialect, renders = self._dialect, self._dialect.renders
        # A summary is written without tools (CTX-5).
        own = await (OwnTools(()) if turn.step == "compaction" else self._tools).of(turn)
        system = "\n\n".join(part for part in (self._system, turn.context, *own.missing) if part)
        of_the_system = turn.tools.schemas(renders)
        names = frozenset({*TOOL_NAMES, *map(_name, of_the_system)})
        if turn.held_before:
            turn = await made_after_all(turn, own.tools, names)
        said: list[JsonObject] = list(await turn.amessages(renders))
        tools = [*of_the_system, *own.schemas(renders)]
        usage = Usage()
        client = await self._clients.of_this_loop()
        for _ in range(self._most_rounds + 1):
            body = {**dialect.request(self._model, system, said, tools), **self._body}
            answer = await self._asked(client, body, turn)
            usage = _added(usage, answer.usage)
            if not answer.calls:
                return Reply(
                    self._words(answer), usage=usage, model=answer.model, stop_reason=answer.stop_reason
                )
            said += answer.said
            if answer.text:
                await off_loop(turn.recorder.said, [TextBlock(text=answer.text)])
            said += dialect.results(answer.calls, await answers_to(turn, own.tools, names, answer.calls))
        raise TooManyToolCalls(
            f"{self._model} asked for tools {self._most_rounds + 1} times in one turn and did not answer"
        )

    def _words(self, answer: ModelAnswer) -> str | None:
        """Return the model's text.

        Raises:
            NoAnswer: it says why there is none, such as a filter, or a length that thinking has used up.
        """
        if is_blank(answer.text) and not answer.is_whole:
            raise NoAnswer(f"{self._model} gave no text: it ended with {answer.stop_reason!r}")
        return answer.text

    async def _asked(self, client: AsyncOpenAI, body: JsonObject, turn: Turn) -> ModelAnswer:
        # The library's own methods would hold each message and schema against its types, which takes longer than all
        # else that we do in a turn. What stands here is ready to be sent; retries and errors are the same.
        options: JsonObject = {"security": {"bearer_auth": True}, **self._beside}
        if self._dialect.renders == "anthropic":
            key = {"Authorization": Omit(), "x-api-key": client.api_key, "anthropic-version": VERSION}
            options |= {"security": {}, "headers": key | (options.get("headers") or {})}
        # Any: what an endpoint says that sends no JSON is a text, whatever is asked for; the type of options is not exported.
        post = cast("Any", client.post)
        # "Connection error." is all that the library says, and a run that ran out of time says not even that.
        base_url = str(client.base_url).rstrip("/")
        where = f"model {self._model!r} at {base_url}"
        ask = partial(post, self._dialect.path(base_url), cast_to=object, options=options)
        try:
            return await self._got(ask, body, turn)
        except asyncio.CancelledError:
            told, _ = redact_text(where)
            _logger.warning("%s had not answered when its run was over: run=%s", one_line(told), turn.run_id)
            raise
        except Exception as error:
            error.add_note(where)  # shown with the traceback, to the operator alone
            raise

    async def _got(
        self,
        ask: Callable[..., Awaitable[Any]],  # the client's `post`
        body: JsonObject,
        turn: Turn,
    ) -> ModelAnswer:
        if not self._stream:
            return self._answer(await ask(body=body))
        ask = partial(ask, body=self._dialect.streaming(body))
        said, is_shown = await streamed(ask, turn, self._dialect.chunks())
        answer = self._answer(said)
        if answer.text and not is_shown:
            turn.stream(answer.text)
        if answer.text and answer.calls:
            turn.stream("\n")  # what the model says after its calls is shown on a line of its own
        return answer

    def _answer(self, said: object) -> ModelAnswer:
        if isinstance(said, str) and said.lstrip().startswith("{"):
            with suppress(ValueError):
                said = msgspec.json.decode(said)  # an endpoint that says of its JSON that it is a text
        try:
            if is_json_object(said):
                return self._dialect.answer({**said})
            flaw = "it is no JSON object"
        except NotUnderstood as error:
            flaw = str(error)
        told: object = said.get("error") or said if is_json_object(said) else said
        told = word_in(told, "message") or told
        raise TypeError(
            f"the endpoint gave no answer ({flaw}), but {repr(told)[:_SHOWN]}; one that always streams is asked with stream=True"
        )


def _name(schema: JsonObject) -> str:
    name: str = schema["name"] if "name" in schema else schema["function"]["name"]
    return name


def _added(usage: Usage, more: Usage) -> Usage:
    return Usage(
        input=usage.input + more.input,
        output=usage.output + more.output,
        cache_read=usage.cache_read + more.cache_read,
        cache_write=usage.cache_write + more.cache_write,
        total_tokens=usage.total_tokens + more.total_tokens,
    )


class _Clients:
    """The clients of one agent: one for each event loop that it is called on, as a client belongs to the loop it was used on.

    Each lives in an asynchronous generator. So its loop closes it: when the loop ends, and when nobody has the agent any more.
    """

    def __init__(self, options: JsonObject) -> None:
        self._options = options
        # A loop, which is one thread, touches nothing but its own entry and those of loops that have ended.
        self._kept: dict[asyncio.AbstractEventLoop, tuple[AsyncOpenAI, AsyncGenerator[None]]] = {}
        _certificates()

    async def of_this_loop(self) -> AsyncOpenAI:
        """Return the client of the loop that runs here, made when it is first asked for."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is not None:
            return kept[0]
        for other in list(self._kept):
            if other.is_closed():
                self._kept.pop(other, None)
        client = self._made()
        closing = _open(client, is_ours="http_client" not in self._options)
        self._kept[loop] = (client, closing)
        await anext(closing)
        return client

    def _made(self) -> AsyncOpenAI:
        options: JsonObject = self._options
        if "http_client" not in options:
            options = options | {"http_client": DefaultAsyncHttpxClient(verify=_certificates())}
        return AsyncOpenAI(**options)


async def _open(client: AsyncOpenAI, *, is_ours: bool) -> AsyncGenerator[None]:
    """Keep a client open until the generator is closed. A connection of the host's own is left to the host."""
    try:
        yield
    finally:
        if is_ours:
            await client.close()


@cache
def _certificates() -> ssl.SSLContext:
    """Return whom a client trusts. Reading that takes a tenth of a second, in which the host's loop would stand still."""
    # What the library stands on was httpx and is httpx2. Importing the other one would take memory for nothing, and it may be missing.
    below = import_module(DefaultAsyncHttpxClient.__mro__[1].__module__)
    context: ssl.SSLContext = below.create_ssl_context()
    return context
