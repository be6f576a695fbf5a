"""How model servers say that a request is too long for them, each in its own words, and what is not that."""

from typing import Any

import httpx
import pytest
from openai import APIStatusError, BadRequestError, RateLimitError
from pydantic_ai.exceptions import ModelHTTPError

from intersession_actors.outside.agents.too_long import is_too_long

SAID = {
    "OpenAI": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9042 tokens.",
    "Anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "Anthropic, with the answer": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "Gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "llama.cpp": "the request exceeds the available context size. try increasing the context size or enable context shift",
    "llama.cpp, older": "input is too large to process. increase the physical batch size",
    "vLLM": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "vLLM, with the answer": "max_tokens must be at least 1, got -200.",
    "Ollama": "the input length exceeds the context length",
    "Ollama, newer": "prompt too long; exceeded max context length by 312 tokens",
    "Mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
    "Bedrock": "Input is too long for requested model.",
    "Cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "Groq": "Please reduce the length of the messages or completion.",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "OpenAI, newer": "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 281234 tokens.",
    "OpenAI, responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "OpenAI, by size": "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760.",
    "OpenAI, by number": "Invalid 'input': array too long. Expected an array with maximum length 2048.",
    "Azure": "This model's maximum context length is 8191 tokens, however you requested 10346 tokens. Please reduce your prompt.",
    "Anthropic, large": "Request exceeds the maximum size of a prompt: its context length is too large",
    "Vertex": "Unable to submit request because the input token count is 40000 but model only supports up to 32768.",
    "Bedrock, Titan": "Too many input tokens. Max input tokens: 8192, request input token count: 9279",
    "Bedrock, Nova": "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
    "Bedrock, in letters": "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input.",
    "Together": "The input (10000 tokens) is longer than the model's context length (8192 tokens).",
    "Fireworks": "The prompt is too long: 140000, model maximum context length: 131071",
    "Cerebras": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    "Cohere, newer": "too many tokens: size limit exceeded by 3000 tokens. Try using shorter or fewer inputs.",
    "Copilot": "prompt token count of 130000 exceeds the limit of 128000",
    "DeepSeek": "This model's maximum context length is 131072 tokens. However, you requested 141403 tokens.",
    "MiniMax": "invalid params, context window exceeds limit (2013)",
    "Kimi": "Invalid request: Your request exceeded model token limit: 131072",
    "GLM": "Prompt exceeds max length",
    "Qwen": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
    "OpenRouter": "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens.",
    "Cloudflare": "The estimated number of input and maximum tokens (9000) exceeded this model context window limit (8192).",
    "watsonx": "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
    "NIM": "Input length 5000 exceeds maximum allowed token size 4096",
    "Einstein": "Request input tokens exceed model token limit. Reduce the input size.",
    "SGLang": "Requested token count exceeds the model's maximum context length of 8192 tokens.",
    "vLLM, newer": "Input length (5000) exceeds model's maximum context length (4096).",
    "vLLM, pictures": "The prompt (total length 5000) is too long to fit into the model",
    "llama.cpp, newest": "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "llama-cpp-python": "Requested tokens (5000) exceed context window of 2048",
    "TabbyAPI": "Prompt length 5000 is greater than max_seq_len 4096",
    "TGI, older": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2048",
    "LM Studio, newer": "The number of tokens to keep from the initial prompt is greater than the context length",
    "LM Studio, later": "Reached context length of 4096 tokens with model",
    "nobody yet": "Sorry, this conversation has more tokens than the window holds: it does not fit.",
    "Kimi, in short": "exceeded model token limit: 8192 (requested: 9000)",
    "one of few words": "Conversation too long",
    "one that names the prompt": "Input prompt is too large",
    "one that names the limit alone": "token limit exceeded",
    "one that names the limit after": "Prompt has 130000 tokens, but the limit is 128000",
    "one that names what it has": "your prompt has 9000 tokens but the model only has 8192",
    "one that names a parameter": "the prompt is longer than n_ctx",
    "one that names a sequence": "maximum sequence length is 4096, got 5000",
    "LM Studio": "Trying to keep the first 5000 tokens when context the overflows.",
}
OTHER = {
    "a key": "Incorrect API key provided: sk-1234.",
    "a limit of the minute": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000.",
    "time": "context deadline exceeded",
    "a parameter": "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "a name": "The model `gpt-9` does not exist.",
    "a limit of the day": "You exceeded your input tokens per day. Limit 500000, used 499000, requested 3000.",
    "a limit of the day, in short": "Daily token limit exceeded.",
    "a number of tokens": "max_tokens must be a number: the maximum is 4096",
    "a quota": "Your prompt tokens exceed what is left of your quota.",
    "money": "This request requires more credits: you requested 8192 tokens, more than you can afford.",
    "an answer": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "an answer, by name": "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for this model",
    "a name of a tool": "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
    "a description": "The tool's description exceeds the maximum length of 1024 characters of the input.",
    "a picture": "messages.0.content.1.image.source: image exceeds 5 MB maximum: its length is too large",
    "a number": "temperature: Input should be less than or equal to 1",
    "tries": "HTTPSConnectionPool: Max retries exceeded with url: /v1/messages",
    "a filter": "Your prompt exceeds the safety threshold of this deployment.",
    "a key that is long": "Authorization: the token's length exceeds 4096",
    "waiting": "Request timed out: more than 60 seconds for an input of 500 tokens",
    "an order": "messages: roles must alternate between user and assistant",
    "tools": "messages.2: tool_use ids were found without tool_result blocks",
    "a field": "metadata: value exceeds length 512 in the request",
    "a header": "header too long: request line exceeds length",
    "a load": "The server is overloaded, try again.",
}


def answered(status: int, body: object) -> Any:
    return httpx.Response(status, json=body, request=httpx.Request("POST", "http://127.0.0.1/v1"))


@pytest.mark.clause("CTX-3")
@pytest.mark.parametrize("words", SAID.values(), ids=SAID)
def test_a_refusal_for_length_is_recognised_by_its_words(words: str) -> None:
    body = {"error": {"message": words}}
    as_cause = RuntimeError("the model failed")
    as_cause.__cause__ = ValueError(words)

    assert is_too_long(ValueError(words))
    assert is_too_long(BadRequestError(f"Error code: 400 - {body}", response=answered(400, body), body=body))
    assert is_too_long(ModelHTTPError(400, "m", body))
    assert is_too_long(as_cause)
    assert is_too_long(ExceptionGroup("all models failed", [KeyError("x"), ValueError(words)]))


@pytest.mark.clause("CTX-3")
@pytest.mark.parametrize("words", OTHER.values(), ids=OTHER)
def test_another_failure_is_not_taken_for_one(words: str) -> None:
    body = {"error": {"message": words}}

    assert not is_too_long(BadRequestError(words, response=answered(400, body), body=body))
    assert not is_too_long(ModelHTTPError(400, "m", body))


@pytest.mark.clause("CTX-3")
def test_it_is_recognised_by_a_status_and_a_code_without_words() -> None:
    coded = {"code": "context_length_exceeded", "message": "no"}

    assert is_too_long(BadRequestError("no", response=answered(400, coded), body=coded))
    assert is_too_long(APIStatusError("no", response=answered(413, {}), body={}))
    long = {"code": "string_above_max_length", "message": "Invalid 'user': string too long."}
    assert not is_too_long(BadRequestError(long["message"], response=answered(400, long), body=long))
    unknown = {"error": {"message": "Input tokens exceed the configured limit of 272000 tokens."}}
    assert is_too_long(
        APIStatusError(f"Error code: 422 - {unknown}", response=answered(422, unknown), body=unknown)
    )
    assert not is_too_long(APIStatusError("input is too long", response=answered(403, {}), body={}))
    busy = {"message": "Request too large in a minute: input is too long"}
    assert not is_too_long(RateLimitError("no", response=answered(429, busy), body=busy))
