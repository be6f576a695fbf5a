"""The texts of an event that are searched: messages, and the arguments and results of tools. Pure."""

from collections.abc import Iterator
from typing import Final

from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object
from intersession_events.facts import AccessRecorded, is_imported, message_in, raw_message, words
from intersession_events.log.recorded import Recorded
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp

SEARCHES: Final = "sessions_search"
"""What this tool was given and gave is not searched: each search would find itself, and all that were made before."""

_NAMES: Final = frozenset({"type", "id", "data", "mimeType", "thinkingSignature", "toolCallId"})
"""Fields of a block that say nothing."""


def message_of(recorded: Recorded) -> JsonObject | None:
    """Return the message of an event in its raw form, as transcripts show it; None if it has none, or nothing to search."""
    message = message_in(recorded.event)
    if message is None or message.tool_name == SEARCHES:
        return None
    raw = raw_message(message)
    if is_imported(recorded.event) and message.role == "user" and isinstance(raw["content"], str):
        raw["content"] = strip_stamp(raw["content"])  # of an import; readers do not see it
    return raw


def texts_of_message(raw: JsonObject) -> list[str]:
    """Return the texts of a message in its raw form."""
    content = raw.get("content")
    return [text for text in _texts(content) if text]


def texts_of_event(recorded: Recorded) -> list[str]:
    """Return the texts of an event that records no message."""
    if isinstance(recorded.event, AccessRecorded) or message_in(recorded.event) is not None:
        return []
    return [text for text in words(recorded.event) if text]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_list(value):
        for item in value:
            yield from _texts(item)
    elif is_object(value):
        if value.get("type") == "toolCall" and value.get("name") == SEARCHES:
            return
        for name, item in value.items():
            if name not in _NAMES:
                yield from _texts(item)
