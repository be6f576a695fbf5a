"""An agent on any endpoint that speaks OpenAI's chat completions. Needs the extra `models`."""

import asyncio
import ssl
from functools import cache
from typing import Any, cast

import msgspec
from httpx import create_ssl_context
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai.types.chat import ChatCompletion
from openai.types.completion_usage import CompletionUsage

from intersession_actors.agents.turn import Reply, Turn, json_text
from intersession_events.facts import TextBlock, Usage
from intersession_events.plain_json import JsonObject


class TooManyToolCalls(RuntimeError):
    """The model kept asking for tools and never answered."""


class OpenAiAgent:
    """Answers with a model: asks it, calls the tools it wants, until it has a text.

    `system` stands before the turn's context. `most_rounds` bounds how often it may ask for tools in one turn.
    `client_options` go to `AsyncOpenAI` (`timeout` in seconds, `max_retries`, …), `options` to each request
    (`temperature`, …). Without `api_key` the client looks into `OPENAI_API_KEY`.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        system: str | None = None,
        most_rounds: int = 16,
        client_options: JsonObject | None = None,
        **options: object,
    ) -> None:
        self._model = model
        self._client_options: JsonObject = {
            "base_url": base_url,
            "api_key": api_key,
            **(client_options or {}),
        }
        self._system = system
        self._most_rounds = most_rounds
        self._options = options
        _certificates()

    async def __call__(self, turn: Turn) -> Reply:
        """Answer one turn.

        Raises:
            TooManyToolCalls: the model asked for tools more than `most_rounds` times.
            openai.OpenAIError: the endpoint did not answer, or refused.
        """
        system = "\n\n".join(part for part in (self._system, turn.context) if part)
        messages: list[JsonObject] = [{"role": "system", "content": system}] if system else []
        messages += turn.messages("openai")
        request: JsonObject = {"model": self._model, **self._options}
        tools = turn.tools.schemas("openai")
        if tools:
            request["tools"] = tools
        usage = Usage()
        # A client belongs to the loop it was used on, and the loop is the host's: one for each turn.
        async with self._client() as client:
            for _ in range(self._most_rounds + 1):
                completion = await self._asked(client, messages, request)
                usage = _added(usage, completion.usage)
                choice = completion.choices[0]
                calls = choice.message.tool_calls or []
                if not calls:
                    return Reply(
                        choice.message.content,
                        usage=usage,
                        model=completion.model,
                        stop_reason=choice.finish_reason,
                    )
                messages.append(choice.message.model_dump(exclude_none=True))
                if choice.message.content:
                    await asyncio.to_thread(turn.recorder.said, [TextBlock(text=choice.message.content)])
                for call in calls:
                    if call.type != "function":
                        raise TypeError(f"the model wants a {call.type!r} tool; none was offered")
                    content = await _called(turn, call.id, call.function.name, call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        raise TooManyToolCalls(
            f"{self._model} asked for tools {self._most_rounds + 1} times in one turn and did not answer"
        )

    def _client(self) -> AsyncOpenAI:
        options: JsonObject = self._client_options
        if "http_client" not in options:
            options = options | {"http_client": DefaultAsyncHttpxClient(verify=_certificates())}
        return AsyncOpenAI(**options)

    async def _asked(
        self, client: AsyncOpenAI, messages: list[JsonObject], request: JsonObject
    ) -> ChatCompletion:
        # A request that is a dict fits no overload of the library's.
        create = cast("Any", client.chat.completions.create)
        answer: object = await create(messages=messages, **request)
        if not isinstance(answer, ChatCompletion) or not answer.choices:
            raise TypeError(f"{self._model} gave no completion; a stream is not supported")
        return answer


@cache
def _certificates() -> ssl.SSLContext:
    """Return whom a client trusts. Reading that takes a tenth of a second, in which the host's loop would stand still."""
    return create_ssl_context()


async def _called(turn: Turn, call_id: str, name: str, source: str) -> str:
    try:
        arguments = msgspec.json.decode(source or "{}", type=JsonObject)
    except (ValueError, RecursionError) as error:
        # The tools record their own calls; this one never reaches them.
        result = json_text({"status": "error", "error": f"the arguments are no JSON object: {error}"})
        await asyncio.to_thread(turn.recorder.tool_call, call_id, name, source)
        await asyncio.to_thread(turn.recorder.tool_result, call_id, name, result, is_error=True)
        return result
    return json_text(await turn.tools.acall(name, arguments))


def _added(usage: Usage, more: CompletionUsage | None) -> Usage:
    if more is None:
        return usage
    cached = more.prompt_tokens_details.cached_tokens if more.prompt_tokens_details else None
    return Usage(
        input=usage.input + more.prompt_tokens,
        output=usage.output + more.completion_tokens,
        cache_read=usage.cache_read + (cached or 0),
        total_tokens=usage.total_tokens + more.total_tokens,
    )
