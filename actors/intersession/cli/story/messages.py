"""Messages and failed attempts of a session as stories tell them: who says or does it is always named."""

from collections.abc import Iterator

from intersession_events.facts import LateReplyDropped, Message, RunAborted, RunFailed, RunInterrupted
from intersession_projections.wording import Words, recorded_speaker, words_of, words_of_message


def message_words(message: Message, key: str) -> Iterator[Words]:
    """Yield what a message of a session says: its text, then the tools it calls."""
    for words in words_of_message(message, key):
        match message.role:
            case "assistant":
                yield words
            case "toolResult":
                yield words._replace(who=key, to=None)
            case "user" | "system":
                yield words._replace(who=recorded_speaker(message))


def attempt_words(event: RunInterrupted | RunFailed | RunAborted | LateReplyDropped, key: str) -> Words:
    """Return what became of an attempt that did not answer."""
    return words_of(event, key)._replace(who=key, to=None)
