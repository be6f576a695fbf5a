"""Where an agent's files are: its workspace, by the configuration or beside the log (ATT-3), and what a spawn handed to it (ATT-6)."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from intersession_actors.outside.attachments.checks import relative_directory
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics import ids
from intersession_events.copies.forks.files import lies_with_forks
from intersession_events.facts import Attachments, AttachmentsReady, AttachmentsRemoved, SpawnAccepted
from intersession_events.log.recorded import Recorded
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
    """Return the configured workspace of an agent, its own or the common one, links resolved; None if there is none."""
    configured = config.agent(agent_id).workspace or config.agents.defaults.workspace
    return None if configured is None else os.path.realpath(Path(configured).expanduser())


def all_workspaces(config: Config, store: str) -> tuple[str, ...]:
    """Return the workspaces that configured agents can have, each once."""
    found: dict[str, None] = {}
    for agent_id in config.agent_ids:
        try:
            found[workspace_of(config, agent_id, store)] = None
        except ToolRefused:
            continue
    return tuple(found)


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a spawn handed to the child. Its content is untrusted, and so is its name.

    `size` is in bytes, `sha256` in hexadecimal digits; both are those of the content that was handed over. `mime_type` is what
    the requester said of it. `path` is None where the file is not there: it was removed (ATT-5), or this is a fork (FORK-5).
    """

    name: str
    path: Path | None
    size: int
    sha256: str
    mime_type: str | None = None


class OwnFiles(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's files: its workspace, if there is one, and those handed to its session."""

    workspace: Path | None = None
    attachments: tuple[Attachment, ...] = ()


def own_files(config: Config, agent_id: str, log_id: str, spawn: Iterable[Recorded]) -> OwnFiles:
    """Return the workspace of an agent, and the files that the spawn of its session handed to it (ATT-6).

    `spawn` is the stream of that, empty for a session that nobody spawned.
    """
    handed: Attachments | None = None
    are_there = False
    is_own = False
    for event in (item.event for item in spawn):
        match event:
            case SpawnAccepted(attachments=handed, run_id=run_id, spawn_id=spawn_id):
                # In a fork, what a spawn of its source had handed over lies in the source's workspace.
                is_own = ids.derive(log_id, "spawn", run_id) == spawn_id
            case AttachmentsReady(withheld=withheld):
                are_there = is_own and not withheld
            case AttachmentsRemoved():
                are_there = False
            case _:
                pass
    if handed is None:
        configured = configured_workspace(config, agent_id)
        return OwnFiles(workspace=None if configured is None else Path(configured))
    root = Path(handed.root)
    directory = root / relative_directory(handed.directory)
    return OwnFiles(
        workspace=root,
        attachments=tuple(
            Attachment(
                name=file.name,
                path=directory / file.name if are_there else None,
                size=file.bytes,
                sha256=file.sha256,
                mime_type=file.mime_type,
            )
            for file in handed.files
        ),
    )
