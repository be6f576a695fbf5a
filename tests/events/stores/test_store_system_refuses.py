"""What the operating system refuses is an error of the log, wherever it is met: none comes out as it is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from intersession_events.basics.errors import (
    BackupFailed,
    NoSuchStore,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
)
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.backup import back_up
from intersession_events.stores.opened import gateway_of, open_log
from intersession_events.stores.portable.log import PortableLog
from support.log_drafts import said, to

pytestmark = pytest.mark.sqlite("about files")


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.mark.clause("D14", "D5")
def test_a_new_log_on_a_full_disk_is_refused_as_full(tmp_path: Path) -> None:
    # Whoever writes into this device has no space left.
    (tmp_path / "log.db.lock").symlink_to("/dev/full")

    with pytest.raises(StoreFull, match=r"no space left for the log: .*log\.db\.lock"):
        open_log(url_of(tmp_path / "log.db"))
    (tmp_path / "log.db.lock").unlink()
    with open_log(url_of(tmp_path / "log.db")) as log:
        assert log.head() == 0


def make_places(folder: Path) -> dict[str, Path]:
    (folder / "file").touch()
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "log.db.lock").mkdir()
    return {
        "a missing folder": folder / "none" / "log.db",
        "a file in the place of a folder": folder / "file" / "log.db",
        "a folder in the place of the file": folder / "folder",
        "a link to itself": folder / "loop",
        "a folder that is a link to itself": folder / "loop" / "log.db",
        "a name that is too long": folder / ("x" * 300),
        "a folder in the place of the lock": folder / "log.db",
    }


PLACES = [
    "a missing folder",
    "a file in the place of a folder",
    "a folder in the place of the file",
    "a link to itself",
    "a folder that is a link to itself",
    "a name that is too long",
    "a folder in the place of the lock",
]


@pytest.mark.clause("D14")
@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_can_hold_no_log_is_refused(tmp_path: Path, place: str) -> None:
    url = url_of(make_places(tmp_path)[place])

    with pytest.raises(StoreUnavailable):
        open_log(url)
    with pytest.raises(StoreUnavailable):
        open_log(url, read_only=True)


@pytest.mark.clause("D14")
@pytest.mark.parametrize("place", PLACES)
def test_whose_gateway_is_there_is_answered_or_refused(tmp_path: Path, place: str) -> None:
    try:
        found = gateway_of(url_of(make_places(tmp_path)[place]))
    except StoreUnavailable:
        found = None

    assert found is None


@pytest.mark.clause("D14")
def test_a_missing_folder_is_named_and_not_the_lock_in_it(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"/none is no directory, .* make it first$"):
        open_log(url_of(tmp_path / "none" / "log.db"))


@pytest.mark.clause("D14")
@pytest.mark.parametrize(
    ("url", "hint"),
    [
        (r"sqlite:///C:\logs\host.db", "it is a path of Windows"),
        ("sqlite:///C:/logs/host.db", "it is a path of Windows"),
        ("sqlite:////d:/host.db", "it is a path of Windows"),
        (r"C:\logs\host.db", "it is a path of Windows"),
        ("sqlite:///a\0b", "null character"),
    ],
)
def test_what_is_no_path_here_makes_no_file(tmp_path: Path, url: str, hint: str) -> None:
    with pytest.raises(NoSuchStore, match=hint):
        open_log(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("D8", "D14")
def test_a_second_system_in_one_process_is_told_so(tmp_path: Path) -> None:
    url = url_of(tmp_path / "log.db")

    with open_log(url), pytest.raises(StoreLocked, match="in this process already") as refused:
        open_log(url)

    assert "stop it" not in str(refused.value)
    assert refused.value.holder == f"pid {os.getpid()}"


READS: dict[str, Callable[[PortableLog], object]] = {
    "all": lambda log: list(log.all()),
    "head": lambda log: log.head(),
    "again": lambda log: log.again(),
    "moment": lambda log: log.moment().__enter__(),
    "positions_given": lambda log: log.positions_given(),
    "query": lambda log: log.query("SELECT 1"),
    "rows": lambda log: log.rows(after=0, limit=1),
    "set_aside": lambda log: log.set_aside(),
    "snapshot": lambda log: log.snapshot().__enter__(),
    "stream": lambda log: log.stream("session:agent:main:main"),
    "table_problems": lambda log: list(log.table_problems()),
    "verify": verify_log,
    "wait_for": lambda log: log.wait_for(1_000, timeout=0),
}


@pytest.mark.clause("D14", "D12")
def test_reads_after_the_folder_was_renamed_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    url = url_of(folder / "log.db")
    with open_log(url) as made:
        made.append_now([to("session:agent:main:main", 0, said("1"))])

    with open_log(url, read_only=True) as log:
        assert log.head() == 1
        folder.rename(tmp_path / "moved")
        for name, read in READS.items():
            with pytest.raises(StoreUnavailable, match=r"log\.db"):
                raise AssertionError(f"{name} gave {read(log)!r}")
        with pytest.raises(StoreUnavailable, match=r"log\.db"):
            back_up(log, tmp_path / "copy.db")


@pytest.mark.clause("D14", "D10")
@pytest.mark.parametrize(
    "place", ["a missing folder", "a folder that is a link to itself", "a name that is too long"]
)
def test_a_backup_to_where_none_can_be_is_refused(tmp_path: Path, place: str) -> None:
    target = make_places(tmp_path)[place]

    with open_log(":memory:") as log, pytest.raises(BackupFailed):
        back_up(log, target)
