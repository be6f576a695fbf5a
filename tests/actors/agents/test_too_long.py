"""How model servers say that a request is too long for them, each in its own words, and what is not that."""

from typing import Any

import httpx
import pytest
from openai import APIStatusError, BadRequestError, RateLimitError
from pydantic_ai.exceptions import ModelHTTPError

from intersession_actors.agents.too_long import is_too_long

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
    "LM Studio": "Trying to keep the first 5000 tokens when context the overflows.",
}
OTHER = {
    "a key": "Incorrect API key provided: sk-1234.",
    "a limit of the minute": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000.",
    "time": "context deadline exceeded",
    "a parameter": "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "a name": "The model `gpt-9` does not exist.",
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
    busy = {"message": "Request too large in a minute: input is too long"}
    assert not is_too_long(RateLimitError("no", response=answered(429, busy), body=busy))
