"""An agent on any endpoint that speaks OpenAI's chat completions. Needs the extra `models`."""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, cast

import msgspec
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, NotGiven, Omit
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

from intersession_actors.outside.agents.openai_stream import streamed
from intersession_actors.outside.agents.turn import Reply, Turn, is_blank, json_text
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.gate.texts import arguments_in
from intersession_actors.rules.gate.values import storable, storable_value
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


class TooManyToolCalls(RuntimeError):
    """The model kept asking for tools and never answered."""


class NoAnswer(RuntimeError):
    """The model's answer has no text, and its finish reason does not explain that."""


_SAID_ALL: Final = frozenset({"stop", "eos", "end_turn", "", None})
"""How an answer ends in which the model has said all that it wanted to."""


class OpenAiAgent:
    """Answers with a model: asks it, makes its tool calls, until it returns a text.

    `system` stands before the turn's context. With `stream` each answer is shown while the endpoint gives it (STREAM-1). `most_rounds` bounds how often it may ask for tools in one turn.
    `client_options` go to `AsyncOpenAI` (`timeout` in seconds, `max_retries`, …), `options` to each request
    (`temperature`, …; `agents/endpoint_options.py` has them). Without `api_key` the client looks into `OPENAI_API_KEY`.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        system: str | None = None,
        most_rounds: int = 16,
        stream: bool = False,
        client_options: JsonObject | None = None,
        **options: object,
    ) -> None:
        given = {name: value for name, value in options.items() if not isinstance(value, NotGiven | Omit)}
        self._model = model
        self._clients = _Clients({"base_url": base_url, "api_key": api_key, **(client_options or {})})
        self._system = system
        self._most_rounds = most_rounds
        self._stream = stream
        self._body = {name: value for name, value in given.items() if name not in _OF_THE_REQUEST}
        beside = {_OF_THE_REQUEST[name]: given[name] for name in given.keys() & _OF_THE_REQUEST.keys()}
        # None is the library's word for "no such thing", but as a timeout it means "wait for ever".
        self._beside = {
            name: value for name, value in beside.items() if value is not None or name == "timeout"
        }

    async def __call__(self, turn: Turn) -> Reply:
        """Answer one turn.

        Raises:
            TooManyToolCalls: the model asked for tools more than `most_rounds` times.
            NoAnswer: its answer was filtered, or cut off before it had a text.
            openai.OpenAIError: the endpoint did not answer, or refused.
        """
        system = "\n\n".join(part for part in (self._system, turn.context) if part)
        messages: list[JsonObject] = [{"role": "system", "content": system}] if system else []
        messages += turn.messages("openai")
        body: JsonObject = {"messages": messages, "model": self._model, **self._body}
        tools = turn.tools.schemas("openai")
        if tools:
            body["tools"] = tools
        usage = Usage()
        client = await self._clients.of_this_loop()
        for _ in range(self._most_rounds + 1):
            completion = await self._asked(client, body, turn)
            usage = _added(usage, completion.usage)
            choice = completion.choices[0]
            calls = choice.message.tool_calls or []
            if not calls:
                return Reply(
                    self._words(choice),
                    usage=usage,
                    model=completion.model,
                    stop_reason=choice.finish_reason,
                )
            # The endpoint gets back what it said; half of a surrogate pair it could say and can't be told.
            messages.append(storable_value(choice.message.model_dump(exclude_none=True)))
            if choice.message.content:
                await off_loop(turn.recorder.said, [TextBlock(text=choice.message.content)])
            for call in calls:
                if call.type != "function":
                    raise TypeError(f"the model wants a {call.type!r} tool; none was offered")
                content = await _called(turn, call.id, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": storable(call.id), "content": content})
        raise TooManyToolCalls(
            f"{self._model} asked for tools {self._most_rounds + 1} times in one turn and did not answer"
        )

    def _words(self, choice: Choice) -> str | None:
        """Return the model's text; a refusal counts as one.

        Raises:
            NoAnswer: it says why there are none, such as a filter, or a length that thinking has used up.
        """
        message = choice.message
        said = message.refusal if is_blank(message.content) else message.content
        if is_blank(said) and choice.finish_reason not in _SAID_ALL:
            raise NoAnswer(f"{self._model} gave no text: it ended with {choice.finish_reason!r}")
        return said

    async def _asked(self, client: AsyncOpenAI, body: JsonObject, turn: Turn) -> ChatCompletion:
        # `chat.completions.create` would hold each message and schema against its types, which takes longer than all
        # else that we do in a turn. What stands here is ready to be sent; retries, errors and answers are the same.
        options = cast("Any", {"security": {"bearer_auth": True}, **self._beside})  # its type is not exported
        # Any: what an endpoint says that sends no JSON is a text, whatever is asked for.
        post = cast("Any", client.post)
        # "Connection error." is all that the library says, and a run that ran out of time says not even that.
        where = f"model {self._model!r} at {str(client.base_url).rstrip('/')}"
        try:
            if self._stream:
                return _completion(await streamed(post, body, options, turn))
            return _completion(
                await post("/chat/completions", cast_to=ChatCompletion, body=body, options=options)
            )
        except asyncio.CancelledError:
            told, _ = redact_text(where)
            _logger.warning("%s had not answered when its run was over: run=%s", one_line(told), turn.run_id)
            raise
        except Exception as error:
            error.add_note(where)  # shown with the traceback, to the operator alone
            raise


def _completion(answer: object) -> ChatCompletion:
    # What is missing is None in spite of its type.
    if isinstance(answer, ChatCompletion) and answer.choices and getattr(answer.choices[0], "message", None):
        return answer
    said: object = getattr(answer, "error", answer)
    if isinstance(said, dict):
        said = cast("JsonObject", said).get("message", said)
    raise TypeError(
        f"the endpoint gave no completion, but {repr(said)[:_SHOWN]}; an endpoint that always streams is asked with stream=True"
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


async def _called(turn: Turn, call_id: str, name: str, source: str) -> str:
    try:
        arguments = msgspec.convert(arguments_in(source or "{}"), JsonObject)
    except ValueError as error:
        # The tools record their own calls; this one never reaches them.
        result = json_text({"status": "error", "error": f"the arguments are no JSON object: {error}"})
        await off_loop(turn.recorder.tool_call, call_id, name, source)
        await off_loop(turn.recorder.tool_result, call_id, name, result, is_error=True)
        return result
    return json_text(await turn.tools.acall(name, arguments))


def _added(usage: Usage, more: object) -> Usage:
    # What an endpoint says is not held against its type, and its answer is not lost for an invalid number.
    details = getattr(more, "prompt_tokens_details", None)
    return Usage(
        input=usage.input + _count(more, "prompt_tokens"),
        output=usage.output + _count(more, "completion_tokens"),
        cache_read=usage.cache_read + _count(details, "cached_tokens"),
        total_tokens=usage.total_tokens + _count(more, "total_tokens"),
    )


def _count(given: object, name: str) -> int:
    number = getattr(given, name, 0)
    return number if isinstance(number, int) and number > 0 else 0
