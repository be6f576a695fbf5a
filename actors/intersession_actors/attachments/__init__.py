"""Files that a spawn hands to its child: checked, staged and claimed in its workspace."""

from intersession_actors.attachments.checks import (
    AttachmentArgument,
    GivenFile,
    Reference,
    blocks_without_contents,
    check_attachments,
    check_mount_path,
    receipt,
    relative_directory,
    taken_out,
    without_contents,
)
from intersession_actors.attachments.files import (
    Place,
    can_be_safe,
    claim_files,
    discard_staged,
    manifest_sha256,
    remove_claimed,
    stage_files,
    sweep_unclaimed,
)
from intersession_actors.attachments.told import Attachment, OwnFiles, own_files
from intersession_actors.attachments.workspaces import all_workspaces, workspace_of

__all__ = [
    "Attachment",
    "AttachmentArgument",
    "GivenFile",
    "OwnFiles",
    "Place",
    "Reference",
    "all_workspaces",
    "blocks_without_contents",
    "can_be_safe",
    "check_attachments",
    "check_mount_path",
    "claim_files",
    "discard_staged",
    "manifest_sha256",
    "own_files",
    "receipt",
    "relative_directory",
    "remove_claimed",
    "stage_files",
    "sweep_unclaimed",
    "taken_out",
    "without_contents",
    "workspace_of",
]
