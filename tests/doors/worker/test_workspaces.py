"""Where a worker lays the files that a spawn handed to a session on another machine."""

import hashlib
from pathlib import Path

import pytest

from intersession import ToolRefused, load_config
from intersession.worker.workspaces import files_here
from intersession_actors.outside.agents.acts import AttachedFile, Attachments


class Handed:
    """What the writer gives of a session's files, and how often it was asked for a content."""

    def __init__(self, directory: str, content: bytes | None = b"milk", name: str = "notes.txt") -> None:
        self.content = content
        self.asked = 0
        sha256 = hashlib.sha256(content or b"").hexdigest()
        file = AttachedFile(name=name, size=4, sha256=sha256, is_there=True)
        self.given = Attachments(directory=directory, files=(file,))

    def attached(self) -> Attachments:
        return self.given

    def attachment(self, file: AttachedFile) -> bytes | None:
        assert file in self.given.files
        self.asked += 1
        return self.content


def laid(root: Path | None, handed: Handed) -> Path | None:
    config = load_config({} if root is None else {"agents": {"defaults": {"workspace": str(root)}}}).config
    (attachment,) = files_here(lambda: config, "main", handed).attachments
    return attachment.path


def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    handed = Handed("in/here")

    found = [laid(tmp_path, handed) for _ in range(2)]

    assert found == [tmp_path / "in" / "here" / "notes.txt"] * 2
    assert handed.asked == 1
    (tmp_path / "in" / "here" / "notes.txt").write_bytes(b"changed")
    assert laid(tmp_path, handed) == found[0]
    assert (tmp_path / "in" / "here" / "notes.txt").read_bytes() == b"milk"


@pytest.mark.parametrize("directory", ["..", "../other", "/", "in/../../other"])
def test_no_file_is_laid_outside_of_the_workspace(tmp_path: Path, directory: str) -> None:
    with pytest.raises(ToolRefused, match="leads out of the workspace"):
        laid(tmp_path / "mine", Handed(directory))

    assert [*tmp_path.rglob("notes.txt")] == []


def test_a_directory_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "in").symlink_to(tmp_path)

    with pytest.raises(ToolRefused, match="leads out of the workspace"):
        laid(tmp_path / "mine", Handed("in"))


@pytest.mark.parametrize("handed", [Handed("in", None), Handed("in", name="../notes.txt")])
def test_a_file_that_is_gone_or_has_no_name_of_its_own_has_no_path(tmp_path: Path, handed: Handed) -> None:
    assert laid(tmp_path, handed) is None


def test_without_a_workspace_there_is_nowhere_to_lay_a_file() -> None:
    handed = Handed("in")

    assert laid(None, handed) is None
    assert handed.asked == 0
