"""The files of a spawn on the disk: there as a whole or not at all, and never outside of the workspace."""

import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from intersession_actors.outside.attachments.checks import CheckedFile, receipt
from intersession_actors.outside.attachments.files import (
    Place,
    claim_files,
    remove_claimed,
    stage_files,
    sweep_unclaimed,
)
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import AttachedFile, Attachments

LOG = "00000000-0000-4000-8000-000000000001"
CONTENTS = {"a.txt": b"one", "b.bin": b"\0\1\2"}
FILES = tuple(
    CheckedFile(
        file=AttachedFile(name=name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest()),
        content=content,
    )
    for name, content in CONTENTS.items()
)
RACES = 100


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Somebody else's directory, with something in it."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "precious").write_text("precious")
    return made


def place(root: Path, spawn_id: str = "w1") -> Place:
    return Place(root=os.path.realpath(root), log_id=LOG, spawn_id=spawn_id)


def attachments(root: Path, directory: str = "d1") -> Attachments:
    return Attachments(
        root=os.path.realpath(root), directory=directory, files=tuple(file.file for file in FILES)
    )


def stage(root: Path, spawn_id: str = "w1") -> None:
    stage_files(place(root, spawn_id), attachments(root), FILES)


def claim(root: Path) -> str:
    return claim_files(place(root), attachments(root))


def snapshot(root: Path) -> dict[str, object]:
    """Return what stands below a directory, links as what they point to."""
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(root.rglob("*"))
    }


def there(root: Path) -> Path:
    return root / ".openclaw" / "attachments" / "d1"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.clause("ATT-3", "X9")
def test_files_appear_in_their_place_with_a_manifest_and_for_nobody_else(workspace: Path) -> None:
    stage(workspace)
    assert not there(workspace).exists()

    sha256 = claim(workspace)

    assert snapshot(there(workspace)) == {
        **CONTENTS,
        ".manifest.json": (there(workspace) / ".manifest.json").read_bytes(),
    }
    manifest = (there(workspace) / ".manifest.json").read_bytes()
    assert msgspec.json.decode(manifest) == receipt(attachments(workspace))
    assert hashlib.sha256(manifest).hexdigest() == sha256
    assert mode(workspace / ".openclaw") == mode(there(workspace).parent) == mode(there(workspace)) == 0o700
    assert {mode(path) for path in there(workspace).iterdir()} == {0o600}


@pytest.mark.clause("ATT-3")
def test_modes_do_not_depend_on_the_mask_of_the_process(workspace: Path) -> None:
    before = os.umask(0o777)
    try:
        stage(workspace)
        claim(workspace)
    finally:
        os.umask(before)

    assert mode(there(workspace)) == 0o700
    assert {mode(path) for path in there(workspace).iterdir()} == {0o600}


@pytest.mark.clause("ATT-3")
def test_a_workspace_that_is_not_there_is_made(tmp_path: Path) -> None:
    workspace = tmp_path / "workspaces" / "main"

    stage(workspace)
    claim(workspace)

    assert (there(workspace) / "a.txt").read_bytes() == b"one"


@pytest.mark.clause("ATT-3")
def test_what_is_put_in_its_place_twice_is_there_once(workspace: Path) -> None:
    stage(workspace)

    assert claim(workspace) == claim(workspace)
    assert list((there(workspace).parent / ".staging").iterdir()) == []


@pytest.mark.clause("ATT-3")
def test_staging_again_begins_again(workspace: Path) -> None:
    stage(workspace)
    left = there(workspace).parent / ".staging" / f"{LOG}.w1" / "left over"
    left.write_text("x")

    stage(workspace)

    assert not left.exists()


@pytest.mark.clause("ATT-2", "ATT-3")
@pytest.mark.parametrize("link", [".openclaw", ".openclaw/attachments", ".openclaw/attachments/.staging"])
def test_a_link_in_the_way_is_refused_and_nothing_is_written_behind_it(
    workspace: Path, outside: Path, link: str
) -> None:
    """A35: made before the spawn."""
    (workspace / link).parent.mkdir(parents=True, exist_ok=True)
    (workspace / link).symlink_to(outside)
    before = snapshot(workspace), snapshot(outside)

    with pytest.raises(ToolRefused) as refused:
        stage(workspace)

    assert refused.value.code == "unsafe_path"
    assert (snapshot(workspace), snapshot(outside)) == before


@pytest.mark.clause("ATT-3")
def test_a_link_to_the_workspace_that_is_put_there_later_is_refused(workspace: Path, outside: Path) -> None:
    given = place(workspace)
    workspace.rmdir()
    workspace.symlink_to(outside)

    with pytest.raises(ToolRefused) as refused:
        stage_files(given, attachments(workspace), FILES)

    assert refused.value.code == "unsafe_path"
    assert snapshot(outside) == {"precious": b"precious"}


def _changed(path: Path, _: Path) -> None:
    (path / "a.txt").write_text("two")


def _more(path: Path, _: Path) -> None:
    (path / "c.txt").write_text("x")


def _less(path: Path, _: Path) -> None:
    (path / "a.txt").unlink()


def _linked(path: Path, outside: Path) -> None:
    (path / "a.txt").unlink()
    (path / "a.txt").symlink_to(outside / "precious")


def _shared(path: Path, outside: Path) -> None:
    (outside / "a.txt").write_bytes(b"one")
    (path / "a.txt").unlink()
    os.link(outside / "a.txt", path / "a.txt")


def _a_pipe(path: Path, _: Path) -> None:
    (path / "a.txt").unlink()
    os.mkfifo(path / "a.txt")


@pytest.mark.clause("ATT-3", "X9")
@pytest.mark.parametrize("tamper", [_changed, _more, _less, _linked, _shared, _a_pipe])
def test_what_is_not_as_it_was_given_is_not_handed_on(
    workspace: Path, outside: Path, tamper: Callable[[Path, Path], None]
) -> None:
    stage(workspace)
    tamper(there(workspace).parent / ".staging" / f"{LOG}.w1", outside)

    with pytest.raises(ToolRefused) as refused:
        claim(workspace)

    assert refused.value.code == "unsafe_path"


@pytest.mark.clause("ATT-3")
def test_a_place_that_is_taken_is_refused(workspace: Path, outside: Path) -> None:
    stage(workspace)
    there(workspace).symlink_to(outside)

    with pytest.raises(ToolRefused) as refused:
        claim(workspace)

    assert refused.value.code == "unsafe_path"
    assert snapshot(outside) == {"precious": b"precious"}


@pytest.mark.clause("ATT-2")
def test_a_workspace_that_can_not_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(ToolRefused, match="file"):
        stage(tmp_path / "file")


@pytest.mark.clause("ATT-2")
def test_a_file_that_can_not_be_written_leaves_nothing_staged(workspace: Path) -> None:
    broken = (
        *FILES,
        msgspec.structs.replace(FILES[0], file=AttachedFile(name="x" * 300, bytes=0, sha256="")),
    )

    with pytest.raises(ToolRefused) as refused:
        stage_files(place(workspace), attachments(workspace), broken)

    assert refused.value.code == "unavailable"
    assert list((workspace / ".openclaw" / "attachments" / ".staging").iterdir()) == []


@pytest.mark.clause("ATT-5")
def test_removal_takes_all_that_stands_there_and_is_done_when_nothing_does(workspace: Path) -> None:
    stage(workspace)
    claim(workspace)
    (there(workspace) / "made" / "by the child").mkdir(parents=True)
    (there(workspace).parent / "other").mkdir()

    remove_claimed(place(workspace), "d1")
    remove_claimed(place(workspace), "d1")

    assert not there(workspace).exists()
    assert (there(workspace).parent / "other").exists()


@pytest.mark.clause("ATT-5")
@pytest.mark.parametrize("link", ["attachments", "attachments/d1"])
def test_removal_takes_a_link_and_leaves_what_it_points_to(workspace: Path, outside: Path, link: str) -> None:
    """A37: the directory was replaced."""
    (outside / "d1").mkdir()
    (workspace / ".openclaw" / link).parent.mkdir(parents=True)
    (workspace / ".openclaw" / link).symlink_to(outside)
    before = snapshot(outside)

    remove_claimed(place(workspace), "d1")

    assert not (workspace / ".openclaw" / link).is_symlink()
    assert snapshot(outside) == before


@pytest.mark.clause("ATT-5")
def test_links_inside_are_removed_and_not_followed(workspace: Path, outside: Path) -> None:
    stage(workspace)
    claim(workspace)
    (there(workspace) / "to a directory").symlink_to(outside)
    (there(workspace) / "to a file").symlink_to(outside / "precious")

    remove_claimed(place(workspace), "d1")

    assert not there(workspace).exists()
    assert snapshot(outside) == {"precious": b"precious"}


@pytest.mark.clause("ATT-5")
def test_removal_behind_a_link_that_is_not_ours_fails_and_touches_nothing(
    workspace: Path, outside: Path
) -> None:
    (outside / "attachments" / "d1").mkdir(parents=True)
    (workspace / ".openclaw").symlink_to(outside)

    with pytest.raises(OSError):  # noqa: PT011 - whichever the system says of a link
        remove_claimed(place(workspace), "d1")

    assert (outside / "attachments" / "d1").exists()


@pytest.mark.clause("ATT-3")
def test_what_nobody_claims_is_swept_and_what_is_not_ours_stays(workspace: Path) -> None:
    for spawn_id in ("w1", "w2"):
        stage(workspace, spawn_id)
    staging = there(workspace).parent / ".staging"
    (staging / "another-log.w3").mkdir()

    swept = sweep_unclaimed(str(workspace), LOG, {"w2"})

    assert swept == ("w1",)
    assert {path.name for path in staging.iterdir()} == {f"{LOG}.w2", "another-log.w3"}


def test_sweeping_makes_nothing(tmp_path: Path) -> None:
    assert sweep_unclaimed(str(tmp_path), LOG, ()) == ()
    assert sweep_unclaimed(str(tmp_path / "none"), LOG, ()) == ()
    assert snapshot(tmp_path) == {}


COMPONENTS = [".openclaw", ".openclaw/attachments", ".openclaw/attachments/.staging"]


@pytest.mark.clause("X9", "ATT-3", "ATT-5")
@pytest.mark.parametrize("component", COMPONENTS)
def test_no_race_with_a_link_writes_or_removes_anything_outside(
    workspace: Path, outside: Path, component: str
) -> None:
    race(workspace, outside, component, RACES)


@pytest.mark.nightly
@pytest.mark.clause("X9", "ATT-3", "ATT-5")
@pytest.mark.parametrize("component", COMPONENTS)
def test_nor_do_a_thousand_races(workspace: Path, outside: Path, component: str) -> None:
    race(workspace, outside, component, 1000)


def race(workspace: Path, outside: Path, component: str, times: int) -> None:
    """Swap a directory for a link to elsewhere and back, while files come and go."""
    before = snapshot(outside)
    target = workspace / component
    aside = workspace.parent / "aside"
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                target.rename(aside)
                target.symlink_to(outside)
                target.unlink()
                aside.rename(target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(times):
            with contextlib.suppress(ToolRefused, OSError):
                stage(workspace)
                claim(workspace)
            with contextlib.suppress(OSError):
                remove_claimed(place(workspace), "d1")
    finally:
        over.set()
        swapper.join()

    assert snapshot(outside) == before
