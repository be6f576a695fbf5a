"""The files of an agent at a worker: its own configuration says where they are, and what a spawn handed over is laid there (ATT-6)."""

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from intersession_actors.outside.agents.acts import Fetched, FetchedFile
from intersession_actors.outside.attachments.checks import name_problem
from intersession_actors.outside.attachments.workspaces import Attachment, OwnFiles, configured_workspace
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ToolRefused


def files_here(config: Callable[[], Config], agent_id: str, fetch: Callable[[], Fetched] | None) -> OwnFiles:
    """Return an agent's workspace on this machine, and the files from the spawn of its session, fetched once.

    Raises:
        ToolRefused: the writer does not give them.
        OSError: they can't be written.
    """
    configured = configured_workspace(config(), agent_id)
    root = None if configured is None else Path(configured)
    fetched = Fetched() if fetch is None else fetch()
    return OwnFiles(
        workspace=root,
        attachments=tuple(_laid(root, fetched.directory, file) for file in fetched.files),
    )


def _laid(root: Path | None, directory: str, file: FetchedFile) -> Attachment:
    path = None
    if root is not None and file.content is not None and name_problem(file.name) is None:
        path = Path(os.path.realpath(root / directory)) / file.name
        if not path.is_relative_to(root):
            raise ToolRefused("unsafe_path", f"attachments: {directory!r} leads out of the workspace")
        _write(path, base64.b64decode(file.content), file.sha256)
    return Attachment(name=file.name, path=path, size=file.size, sha256=file.sha256, mime_type=file.mime_type)


def _write(path: Path, content: bytes, sha256: str) -> None:
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)
