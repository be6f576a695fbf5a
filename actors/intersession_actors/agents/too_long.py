"""Recognises that a model's server refused a request as too long, by its codes and words (CTX-3). Each server says it in its own way."""

import re
from collections.abc import Iterator
from typing import Final, cast

_CODES: Final = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Azure, Groq, OpenRouter
        "context_window_exceeded",
        "exceed_context_size_error",  # llama.cpp
        "model_context_window_exceeded",  # Anthropic
        "request_too_large",  # Anthropic
        "string_above_max_length",  # OpenAI
    }
)
_NAMES: Final = re.compile(r"Context(Window|Length)Exceeded")
"""As pydantic-ai and LiteLLM name it."""
_TOO_LARGE: Final = 413
_TOO_MANY_REQUESTS: Final = 429
_MOST_LOOKED_AT: Final = 20_000
_MOST_CAUSES: Final = 8

_WORDS: Final = re.compile(
    "|".join(
        (
            *_CODES,
            r"maximum context length",  # OpenAI, vLLM, Ollama, Mistral, DeepSeek
            r"maximum model length",  # vLLM
            r"max_model_len",
            r"max_tokens must be at least 1, got -",  # vLLM
            r"max(imum)? prompt length",  # xAI
            r"prompt (is )?too long",  # Anthropic, Ollama
            r"input (is |was )?too (long|large)",  # Bedrock, llama.cpp
            r"exceeds? (the )?(available |model'?s? )?(maximum )?context (limit|size|length|window)",  # Anthropic, llama.cpp
            r"context (size|length|window) (has been |was |is )?exceeded",
            r"exceed\w* max(imum)? (allowed )?(context|input|token|number of tokens)",  # Ollama, Gemini
            r"(input|prompt) token count .{0,80}exceeds",  # Gemini
            r"exceeds the maximum number of( input)? tokens",  # Gemini
            r"inputs?`? tokens \+ `?max_new_tokens`? must be",  # TGI
            r"too many (input )?tokens: ",  # Cohere
            r"too large for model with \d+ maximum",  # Mistral
            r"reduce the length of the (messages|prompt|input)",  # OpenAI, Groq
            r"context overflows?|context the overflows",  # LM Studio
            r"larger than the (model'?s )?context (size|length|window)",
            r"longer than the (model'?s )?(context|maximum)",
        )
    ),
    re.IGNORECASE,
)


def is_too_long(error: BaseException) -> bool:
    """Whether an error of a model's client says that the request was longer than the model takes.

    Looked at are the error and what it came from: its status, its code, its words, and the body of the answer.
    """
    return any(_says(one) for one in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    left = [error]
    for _ in range(_MOST_CAUSES):
        if not left:
            return
        one = left.pop(0)
        yield one
        if isinstance(one, BaseExceptionGroup):
            left += cast("tuple[BaseException, ...]", one.exceptions)
        cause = one.__cause__ or one.__context__
        if cause is not None:
            left.append(cause)


def _says(error: BaseException) -> bool:
    status = next(
        (
            one
            for name in ("status_code", "status", "code")
            if isinstance(one := _attribute(error, name), int)
        ),
        None,
    )
    if status == _TOO_LARGE:
        return True
    if any(isinstance(one := _attribute(error, name), str) and one in _CODES for name in ("code", "type")):
        return True
    if any(_NAMES.search(kind.__name__) for kind in type(error).__mro__):
        return True
    if status == _TOO_MANY_REQUESTS:
        return False  # too much in a minute, whose words are alike: it has to wait, and not to be cut
    return any(_WORDS.search(text[:_MOST_LOOKED_AT]) for text in _texts(error))


def _texts(error: BaseException) -> Iterator[str]:
    for value in (*error.args, _attribute(error, "message"), _attribute(error, "body")):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield repr(cast("object", value))


def _attribute(error: BaseException, name: str) -> object:
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - a property of the host's, or of a library
        return None
