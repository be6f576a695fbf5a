"""Methods about the gateway itself, for connections only: who is present, and the configuration.

The original's command line asks for both before it says that a gateway is well (`openclaw gateway probe`).
"""

from typing import Final

import msgspec

from intersession_actors.calls.service.callers import Caller
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.policy.questions import check_called
from intersession_events.basics.plain_json import JsonObject

PRESENCE: Final = "system-presence"
CONFIG: Final = "config.get"


def presence(version: str, now_ms: int) -> list[JsonObject]:
    """Return who is present: the gateway. Connections are not told of each other."""
    return [
        {
            "text": f"Gateway: intersession {version}",
            "mode": "gateway",
            "reason": "self",
            "version": version,
            "ts": now_ms,
        }
    ]


def configuration(caller: Caller, config: Config) -> JsonObject:
    """Return the configuration in force without its secrets, in the original's shape.

    Raises:
        ToolRefused: who stands for some sessions only hears nothing of all others (`forbidden`).
    """
    check_called(CONFIG, {}, is_operator=caller.is_operator)
    return {
        "exists": True,
        "valid": True,
        "config": msgspec.json.decode(config.redacted()),
        "issues": [],
        "warnings": [],
        "legacyIssues": [],
        "hash": config.digest(),
    }
