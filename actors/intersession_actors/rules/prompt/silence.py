"""The words by which an agent stays silent, and the exact tests for them (LOOP-2, LOOP-6, ANN-1, SEND-5).

They are read from the whole answer of the agent whose turn it is, never found inside a text.
"""

from typing import Final

REPLY_SKIP: Final = "REPLY_SKIP"
"""Ends the reply-back loop."""
ANNOUNCE_SKIP: Final = "ANNOUNCE_SKIP"
"""Keeps an announce silent."""
NO_REPLY: Final = "NO_REPLY"
"""Is no text, everywhere."""

# Not `str.strip()`: it takes away characters that only look like nothing, and then a visible text would count as empty.
_WHITE_SPACE: Final = " \t\r\n"


def is_reply_skip(text: str) -> bool:
    """Whether an answer in the loop ends it: exactly the word, case kept, ASCII white space aside."""
    return text.strip(_WHITE_SPACE) == REPLY_SKIP


def is_announce_skip(text: str) -> bool:
    """Whether an announce turn chose silence: exactly the word, case kept, ASCII white space aside."""
    return text.strip(_WHITE_SPACE) == ANNOUNCE_SKIP


def is_withheld(reply: str | None) -> bool:
    """Whether an answer to a person is a word that keeps a loop or an announce silent: it is not delivered (INB-2)."""
    return reply is not None and (is_reply_skip(reply) or is_announce_skip(reply))


def visible_text(text: str | None) -> str | None:
    """Return an answer as it was given, or None if it counts as no text: empty when trimmed, or exactly NO_REPLY."""
    if text is None or text.strip(_WHITE_SPACE) in {"", NO_REPLY}:
        return None
    return text


def shown_text(text: str) -> str:
    """Return what may be shown of an answer that goes on: nothing while it may yet become a word for silence (STREAM-2)."""
    said = text.strip(_WHITE_SPACE)
    may_be_silent = any(word.startswith(said) for word in (NO_REPLY, REPLY_SKIP, ANNOUNCE_SKIP))
    return "" if may_be_silent else text


def spoken(text: str | None) -> str | None:
    """Return a primary reply, or None if it counts as no text: empty, NO_REPLY or REPLY_SKIP (SEND-5)."""
    said = visible_text(text)
    return None if said is None or is_reply_skip(said) else said
