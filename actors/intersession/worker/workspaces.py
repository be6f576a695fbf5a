"""The files of an agent at a worker: its own configuration says where they are, and what a spawn handed over is laid there (ATT-6)."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from intersession_actors.outside.agents.acts import AttachedFile, Attachments
from intersession_actors.outside.attachments.checks import name_problem
from intersession_actors.outside.attachments.workspaces import Attachment, OwnFiles, configured_workspace
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ToolRefused


class Handed(Protocol):
    """Gives what a spawn handed over, from the writer's machine."""

    def attached(self) -> Attachments:
        """Return what files these are."""
        ...

    def attachment(self, file: AttachedFile) -> bytes | None:
        """Return the content of one of them."""
        ...


def files_here(config: Callable[[], Config], agent_id: str, handed: Handed | None) -> OwnFiles:
    """Return an agent's workspace on this machine, and the files from the spawn of its session, which are fetched into it once.

    Raises:
        ToolRefused: the writer does not give them.
        OSError: they can't be written.
    """
    configured = configured_workspace(config(), agent_id)
    root = None if configured is None else Path(configured)
    if handed is None:
        return OwnFiles(workspace=root)
    given = handed.attached()
    return OwnFiles(
        workspace=root,
        attachments=tuple(
            Attachment(
                name=file.name,
                path=None if root is None else _laid(root, given.directory, file, handed),
                size=file.size,
                sha256=file.sha256,
                mime_type=file.mime_type,
            )
            for file in given.files
        ),
    )


def _laid(root: Path, directory: str, file: AttachedFile, handed: Handed) -> Path | None:
    """Return where a file lies here, with its content; None where it is there no more."""
    if not file.is_there or name_problem(file.name) is not None:
        return None
    path = Path(os.path.realpath(root / directory)) / file.name
    if not path.is_relative_to(root):
        raise ToolRefused("unsafe_path", f"attachments: {directory!r} leads out of the workspace")
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256:
        return path
    content = handed.attachment(file)
    if content is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)
    return path
