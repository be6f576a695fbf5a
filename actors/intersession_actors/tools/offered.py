"""Which of the tools a caller has: by its agent's settings, and as a sub-agent (SPAWN-3, SPAWN-7). Pure."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from intersession_actors.config import Config
from intersession_actors.policy import Requester, UseTool, Workshop, judge_tool, workshop_of
from intersession_actors.tools.registry import TOOLS


def tools_offered(
    config: Config, requester: Requester, among: Sequence[str] = tuple(TOOLS)
) -> tuple[str, ...]:
    """Return the names of the tools that a caller has, in their order; the operator has all."""
    return _offered(workshop(config, requester), tuple(among))


@lru_cache(256)
def _offered(known: Workshop, among: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same by what decides on it: it is asked for at each start of a run, and seldom another."""
    return tuple(name for name in among if judge_tool(UseTool(tool=name), known) is None)


def workshop(config: Config, requester: Requester) -> Workshop:
    """Return what decides on which of the tools a caller has."""
    return workshop_of(config, requester, _WITHHELD)


_WITHHELD: Final = tuple(name for name, tool in TOOLS.items() if not tool.for_children)
