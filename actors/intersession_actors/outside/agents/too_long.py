"""Recognises a model server's refusal of a request as too long, by its codes and words (CTX-3). Each server has its own.

What is known is listed. Another server's words are understood if a sentence says what was asked, that it is measured, and that it
is more than it may be.
"""

import re
from collections.abc import Iterator
from typing import Final, cast

from intersession_events.basics.patterns import later

_CODES: Final = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Azure, Groq, OpenRouter
        "context_window_exceeded",
        "exceed_context_size_error",  # llama.cpp
        "model_context_window_exceeded",  # Anthropic
        "request_too_large",  # Anthropic
        "tokens_limit_reached",  # GitHub
    }
)
_NAMES: Final = later(r"Context(Window|Length)Exceeded")
"""As pydantic-ai and LiteLLM name it."""
_TOO_LARGE: Final = 413
_OTHER_REASONS: Final = frozenset({401, 402, 403, 404, 408, 429})
"""What a status says that has another reason. Of too much in a minute (429) the words are alike: it has to wait, and not to be cut."""
_MOST_LOOKED_AT: Final = 20_000
_MOST_CAUSES: Final = 8

_WORDS: Final = later(
    "|".join(
        (
            *_CODES,
            r"maximum context length",  # OpenAI, vLLM, Ollama, Mistral, DeepSeek
            r"maximum (model|sequence) length",  # vLLM
            r"max_model_len",
            r"max_tokens must be at least 1, got -",  # vLLM
            r"max(imum)? prompt length",  # xAI
            r"(conversation|input|prompt) (is |was )?too (long|large)",  # Anthropic, Ollama, Bedrock, llama.cpp
            r"exceeds? (the )?(available |model'?s? )?(maximum )?context (limit|size|length|window)",  # Anthropic, llama.cpp
            r"context (size|length|window) (has been |was |is )?exceeded",
            r"exceed\w* max(imum)? (allowed )?(context|input|token|number of tokens)",  # Ollama, Gemini
            r"(input|prompt) token count .{0,80}exceeds",  # Gemini
            r"exceeds the maximum number of( input)? tokens",  # Gemini
            r"inputs?`? tokens \+ `?max_new_tokens`? must be",  # TGI
            r"exceed(s|ed)? (the )?model token limit",  # Kimi
            r"too many (input )?tokens: ",  # Cohere
            r"too large for model with \d+ maximum",  # Mistral
            r"reduce the length of the (messages|prompt|input)",  # OpenAI, Groq
            r"context overflows?|context the overflows",  # LM Studio
            r"larger than the (model'?s )?context (size|length|window)",
            r"longer than the (model'?s )?(context|maximum)",
            r"'(messages|input|prompt)\b[^']{0,80}': (string|array) too long",  # OpenAI
            r"expected maxlength: \d+, actual: \d+",  # Bedrock
            r"range of input length should be",  # Qwen
            r"prompt exceeds max(imum)? length",  # GLM
            r"reached context length",  # LM Studio
            r"request payload size exceeds",  # Gemini
            r"`?inputs`? must have less than \d+ tokens",  # TGI
        )
    ),
    re.IGNORECASE,
)

_ASKED: Final = later(
    r"\b((input|prompt)_tokens|inputs?|prompts?|messages?|conversation|context|sequence|request(ed)?|token limit)\b(?!['\"]?:)",
    re.IGNORECASE,
)
"""A name of what was asked; as a field of an answer it says nothing."""
_MEASURED: Final = later(
    r"\b(((input|prompt)_)?tokens?|(context|prompt|input|sequence|total) (length|window|size)|max_seq_len|n_ctx)\b",
    re.IGNORECASE,
)
_BEYOND: Final = later(
    r"\bexceed(s|ed|ing)?\b|\bover(flow\w*)?\b|\btoo (long|large|many|big)\b"
    r"|\b(longer|larger|greater|more|bigger) than\b|\bonly (has|supports?|takes?)\b|\b(limit|maximum) is\b|\bdo(es)?n[o']t fit\b|\bdo(es)? not fit\b",
    re.IGNORECASE,
)
_OTHERWISE: Final = later(
    r"\bper[ _-](second|min|minute|hour|day|month|user)|\b[tr]p[mhd]\b|rate.?limit|quota|credit|billing|budget|deadline|time.?out"
    r"|timed out|\bretries\b|\bimages?\b|\baudio\b|\bvideo\b|\bfiles?\b|\bpdf\b|\bdocuments?\b|\b[kmg]i?b\b|\bname\b|\bdescription\b"
    r"|\bkey\b|\b(daily|monthly)\b|\b(completion|output|thinking)\b",
    re.IGNORECASE,
)
_SENTENCE: Final = later(r"[.;!?\n](?:\s|$)|['\"], ['\"]")


def is_too_long(error: BaseException) -> bool:
    """Whether an error of a model's client means that the request exceeded the model's context.

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
    if status in _OTHER_REASONS:
        return False
    return any(_WORDS.search(text) or _means_it(text) for text in _texts(error))


def _means_it(text: str) -> bool:
    """Whether one sentence says in its own words that the request is too long, and none gives another reason."""
    return any(
        all(found.search(sentence) for found in (_ASKED, _MEASURED, _BEYOND))
        and not _OTHERWISE.search(sentence)
        for sentence in _SENTENCE.split(text)
    )


def _texts(error: BaseException) -> Iterator[str]:
    for value in (*error.args, _attribute(error, "message"), _attribute(error, "body")):
        if isinstance(value, str):
            yield value[:_MOST_LOOKED_AT]
        elif isinstance(value, dict | list):
            yield repr(cast("object", value))[:_MOST_LOOKED_AT]


def _attribute(error: BaseException, name: str) -> object:
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - a property of the host's, or of a library
        return None
