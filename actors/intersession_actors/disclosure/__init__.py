"""What may be shown of a text, for tools and views: secrets are hidden and long texts are cut."""

from intersession_actors.disclosure.advice import Called, Terms, advised
from intersession_actors.disclosure.events import hidden_event, hidden_message
from intersession_actors.disclosure.messages import shown_messages
from intersession_actors.disclosure.redaction import redact_raw, redact_text, redact_value

__all__ = [
    "Called",
    "Terms",
    "advised",
    "hidden_event",
    "hidden_message",
    "redact_raw",
    "redact_text",
    "redact_value",
    "shown_messages",
]
