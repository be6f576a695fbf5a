"""What is put right in a configuration before it is checked: each time with a notice, never silently."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from intersession_actors.errors import ConfigProblem
from intersession_actors.plain_json import is_list, is_object

MAX_TURNS: Final = 5
_TURNS: Final = "session.agentToAgent.maxPingPongTurns"
_VARIABLE: Final = re.compile(r"\$?\$\{([A-Z_][A-Z0-9_]*)\}")


def clamp_turns(config: Mapping[str, Any], notices: list[str]) -> None:
    """Bring the number of turns into 0..5, in place (LOOP-2). What is no number is left for the check to refuse."""
    exchanges: Any = config
    for key in ("session", "agentToAgent"):
        exchanges = exchanges.get(key) if is_object(exchanges) else None
    if not is_object(exchanges):
        return
    given: Any = exchanges.get("maxPingPongTurns")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return
    turns = min(max(math.floor(given), 0), MAX_TURNS)
    if turns != given:
        notices.append(f"{_TURNS}: {given!r} is not a whole number from 0 to {MAX_TURNS}; {turns} is used")
    exchanges["maxPingPongTurns"] = turns


def fold_agent_ids(config: Mapping[str, Any], notices: list[str]) -> None:
    """Write agent ids in lower case, as keys have them, in place."""
    agents: Any = config.get("agents")
    listed: Any = agents.get("list") if is_object(agents) else None
    for index, entry in enumerate(listed if is_list(listed) else []):
        given: Any = entry.get("id") if is_object(entry) else None
        if isinstance(given, str) and given.isascii() and given != given.lower():
            entry["id"] = given.lower()
            notices.append(f"agents.list[{index}].id: {given!r} is written {given.lower()!r} here")


def fill_in(value: Any, variables: Mapping[str, str], problems: list[ConfigProblem], path: str = "") -> Any:
    """Replace `${NAME}` in texts by environment variables, as the original does; `$${NAME}` stays as `${NAME}`.

    A variable that is not set is a problem: its literal text would otherwise become somebody's token.
    """
    if is_object(value):
        return {
            key: fill_in(inner, variables, problems, f"{path}.{key}" if path else str(key))
            for key, inner in value.items()
        }
    if is_list(value):
        return [fill_in(inner, variables, problems, f"{path}[{index}]") for index, inner in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        if found[0].startswith("$$"):
            return found[0][1:]
        if not variables.get(found[1]):
            problems.append(ConfigProblem(path, f"the environment variable {found[1]} is not set; set it"))
            return ""
        return variables[found[1]]

    return _VARIABLE.sub(replaced, value)
