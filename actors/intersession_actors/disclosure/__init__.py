"""What may be shown of a text, for tools and views: secrets are hidden and long texts are cut."""

from intersession_actors.disclosure.messages import shown_messages
from intersession_actors.disclosure.redaction import redact_raw, redact_text, redact_value

__all__ = ["redact_raw", "redact_text", "redact_value", "shown_messages"]
