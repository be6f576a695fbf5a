"""Short names of sessions: `research` for `agent:research:main`, `main/subagent:54f161d9` for a child. For lists, stories and places."""

import re
from functools import lru_cache
from typing import Final

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey

_UUID: Final = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_FIRST: Final = r"\1"
_REMEMBERED: Final = 1_024
"""Names; a long story asks for those of a few sessions again and again."""


@lru_cache(_REMEMBERED)
def short_name(name: str) -> str:
    """Return the name of a session in lists, if it is unique; any other text unchanged."""
    try:
        key = SessionKey.recorded(name)
    except InvalidKey:
        return name
    return key.agent_id if key.is_main else f"{key.agent_id}/{_UUID.sub(_FIRST, key.rest)}"
