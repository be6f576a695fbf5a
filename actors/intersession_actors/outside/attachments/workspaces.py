"""Finds the workspace of an agent: where the configuration says, else beside the log (ATT-3)."""

import os
from pathlib import Path

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ToolRefused
from intersession_events.copies.forks.files import lies_with_forks
from intersession_events.stores.database import MEMORY


def workspace_of(config: Config, agent_id: str, store: str) -> str:
    """Return the path of an agent's workspace, links resolved. `store` is the log's file, or `:memory:`.

    A fork has its own, which goes with it when it is deleted (FORK-9).

    Raises:
        ToolRefused: none is configured, and a log in memory has no place beside it (`not_supported`).
    """
    configured = configured_workspace(config, agent_id)
    if configured is not None:
        return configured
    if store == MEMORY:
        raise ToolRefused(
            "not_supported",
            "attachments: a log in memory has no workspaces beside it, set agents.defaults.workspace",
        )
    own = f"{Path(store).name}.workspaces" if lies_with_forks(store) else "workspaces"
    return os.path.realpath(Path(store).parent / own / agent_id)


def configured_workspace(config: Config, agent_id: str) -> str | None:
    """Return the path of the workspace that is configured for an agent, its own or that of all, links resolved; None for none."""
    configured = config.agent(agent_id).workspace or config.agents.defaults.workspace
    return None if configured is None else os.path.realpath(Path(configured).expanduser())


def all_workspaces(config: Config, store: str) -> tuple[str, ...]:
    """Return the workspaces of all configured agents that there can be, each once."""
    found: dict[str, None] = {}
    for agent_id in config.agent_ids:
        try:
            found[workspace_of(config, agent_id, store)] = None
        except ToolRefused:
            continue
    return tuple(found)
