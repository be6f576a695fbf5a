"""A configuration without its secrets, for showing and recording."""

import hashlib
import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from intersession_actors.rules.config.settings import Settings
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list_like, is_object

HIDDEN: Final = "<hidden>"
# An address that takes what anybody sends it, and what a program is called with, are as good as passwords.
_SECRET: Final = re.compile(
    r"token|password|secret|key$|headers|credential$|env$|args$|webhook$|command$", re.IGNORECASE
)
# Keys under which a channel's own settings are read here, and so are known to hold no secret.
_OPEN_IN_CHANNELS: Final = frozenset({"threadBindings", "enabled", "allowHosts", "maxChars"})
_NO_SECRET: Final = frozenset({"mainKey"})


def plain_config(settings: Settings) -> JsonObject:
    """Return settings as plain JSON, without defaults. Settings of a channel's own are kept as they were given."""
    # `msgspec.structs.fields` would read the types of all fields each time.
    names = zip(settings.__struct_encode_fields__, settings.__struct_fields__, strict=True)
    given = ((name, getattr(settings, field)) for name, field in names)
    return {name: _kept(value) for name, value in given if value is not None}


def redacted_text(settings: Settings) -> str:
    """Return settings as JSON with sorted keys, without secrets."""
    return msgspec.json.encode(_shown(plain_config(settings)), order="sorted").decode()


def has_secrets(plain: JsonObject) -> bool:
    """Whether some settings hold anything that is hidden when they are shown and recorded."""
    return _shown(plain) != {"channels": {}, **plain}


def _shown(plain: JsonObject) -> JsonObject:
    channels = plain.get("channels", {})
    return {
        **_redacted({name: value for name, value in plain.items() if name != "channels"}),
        "channels": {name: _hidden(channel, open_keys=True) for name, channel in channels.items()}
        if is_object(channels)
        else channels,
    }


def config_digest(redacted: str) -> str:
    """Return the SHA-256 of a redacted text, in hexadecimal."""
    return hashlib.sha256(redacted.encode()).hexdigest()


def _kept(value: object) -> JsonValue:
    if isinstance(value, str | int | float):
        return value  # as most are
    if isinstance(value, Settings):
        return plain_config(value)
    if is_object(value):
        return {key: _kept(inner) for key, inner in value.items()}
    if is_list_like(value):
        return [_kept(inner) for inner in value]
    return value


def _redacted(value: object) -> JsonValue:
    if isinstance(value, str):
        return _without_userinfo(value)
    if is_object(value):
        return {key: HIDDEN if _is_secret(key, inner) else _redacted(inner) for key, inner in value.items()}
    if is_list_like(value):
        return [_redacted(inner) for inner in value]
    return value


def _is_secret(key: str, value: object) -> bool:
    # A number under such a name counts tokens; it is not a secret.
    return bool(value) and not isinstance(value, int | float) and _names_a_secret(key)


@lru_cache(maxsize=1_024)  # the names of the settings, mostly
def _names_a_secret(key: str) -> bool:
    return _SECRET.search(key) is not None and key not in _NO_SECRET


def _hidden(value: object, *, open_keys: bool = False) -> JsonValue:
    """Hide every text of a channel's own settings: their meaning is unknown here, and webhooks are secrets."""
    if is_object(value):
        return {
            key: inner if open_keys and key in _OPEN_IN_CHANNELS else _hidden(inner)
            for key, inner in value.items()
        }
    if is_list_like(value):
        return [_hidden(inner) for inner in value]
    return HIDDEN if isinstance(value, str) and value else value


def _without_userinfo(text: str) -> str:
    """Hide the password and the query of a URL; both carry credentials."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{HIDDEN}@{host}" if "@" in parts.netloc else host
    return urlunsplit(parts._replace(netloc=netloc, query=HIDDEN if parts.query else ""))
