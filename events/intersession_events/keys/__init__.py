"""Session keys: what a key is, and what callers type and are shown of one (KEY-1 to KEY-8)."""

from intersession_events.keys.key import Chat, Family, Kind, SessionKey, valid_agent_id, valid_main_key
from intersession_events.keys.references import (
    IdReference,
    KeyReference,
    LookupMiss,
    Reference,
    Scope,
    display,
    parse_agent_id,
    refer,
)
from intersession_events.keys.words import MAX_KEY_CHARACTERS

__all__ = [
    "MAX_KEY_CHARACTERS",
    "Chat",
    "Family",
    "IdReference",
    "KeyReference",
    "Kind",
    "LookupMiss",
    "Reference",
    "Scope",
    "SessionKey",
    "display",
    "parse_agent_id",
    "refer",
    "valid_agent_id",
    "valid_main_key",
]
