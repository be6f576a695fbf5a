"""Where an agent's files are: its workspace, and what a spawn handed to it (ATT-6)."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from intersession_actors.outside.attachments.checks import relative_directory
from intersession_actors.outside.attachments.workspaces import configured_workspace
from intersession_actors.rules.config.config import Config
from intersession_events.basics import ids
from intersession_events.facts import Attachments, AttachmentsReady, AttachmentsRemoved, SpawnAccepted
from intersession_events.log.recorded import Recorded


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a spawn handed to the child whose turn it is. Its content is untrusted, and so is its name.

    `size` is in bytes, `sha256` in hexadecimal digits; both are those of the content that was handed over. `mime_type` is what
    the requester said of it. `path` is None where the file is not there: it was removed (ATT-5), or this is a fork (FORK-5).
    """

    name: str
    path: Path | None
    size: int
    sha256: str
    mime_type: str | None = None


class OwnFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has of files: its workspace, if there is one, and what its session was handed."""

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
