"""Files that hold what was said are the owner's, and none is left that is not whole."""

import errno
from pathlib import Path

import pytest

from intersession_events.basics.machine import private_file


def half_written(path: Path, *, new: bool) -> None:
    with private_file(path, new=new) as file:
        file.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.clause("D14")
@pytest.mark.parametrize("new", [True, False])
def test_a_new_file_that_can_not_be_written_whole_is_taken_away(tmp_path: Path, *, new: bool) -> None:
    path = tmp_path / "head.json"
    if not new:
        path.write_bytes(b"before")

    with pytest.raises(OSError, match="No space left"):
        half_written(path, new=new)

    assert path.exists() is not new


@pytest.mark.clause("D14")
def test_a_file_that_is_there_is_not_taken_away_because_a_new_one_was_wanted(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    path.write_bytes(b"kept")

    with pytest.raises(FileExistsError), private_file(path, new=True):
        pass

    assert path.read_bytes() == b"kept"
