"""Makes a command the host of a log for a while, with agents or a system from a module that the user names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

from intersession.cli.host.reading import store_url
from intersession.cli.shell import Common, UsageError, use_level
from intersession_actors.agents import Agent
from intersession_actors.config import load_config
from intersession_actors.host import named_object
from intersession_actors.system import SessionSystem

_EXPECTED: Final = (
    "give module:NAME, where NAME is a dict of agents by id, or a function that takes the store's URL and returns a "
    "SessionSystem"
)


def hosted(common: Common, *, agents: str | None, config: Path | None) -> SessionSystem:
    """Return a running system on the log: the writer, for as long as the command lasts.

    Raises:
        UsageError: what `--agents` names is not there, or is neither agents nor a function that makes a system.
        StoreLocked: somebody else is the writer.
    """
    found = None if agents is None else _imported(agents)
    if callable(found):
        if config is not None:
            raise UsageError(
                f"--config: {agents} makes a system with a configuration of its own, leave one of them out"
            )
        return _made(found, common, agents or "")
    settings = load_config(config).config
    use_level(settings.logging)
    return SessionSystem(store_url(common, settings), agents=found or {}, config=settings)


def _imported(spec: str) -> Mapping[str, Agent] | Callable[[str | None], object]:
    try:
        found = named_object(spec)
    except ImportError as error:
        raise UsageError(f"--agents: {spec!r}: {error}; {_EXPECTED}") from error
    if isinstance(found, Mapping):
        return cast("Mapping[str, Agent]", found)
    if callable(found):
        return cast("Callable[[str | None], object]", found)
    raise UsageError(f"--agents: {spec!r} is a {type(found).__name__}; {_EXPECTED}")


def _made(factory: Callable[[str | None], object], common: Common, spec: str) -> SessionSystem:
    system = factory(store_url(common))
    if isinstance(system, SessionSystem):
        return system
    raise UsageError(f"--agents: {spec} returned a {type(system).__name__}; {_EXPECTED}")
