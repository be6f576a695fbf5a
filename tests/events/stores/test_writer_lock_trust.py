"""What a lock's file says of a gateway counts only while a writer of our own holds the lock (C1)."""

import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.stores.opened import gateway_of
from intersession_events.stores.sqlite.log import SqliteLog

ADDRESS = "http://127.0.0.1:18789"


@contextmanager
def planted(path: Path, *, address: str = ADDRESS, held: bool = True, mode: int = 0o600) -> Generator[None]:
    """Put a lock's file beside a log, as somebody else than a writer would."""
    file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.fchmod(file, mode)
    os.write(file, msgspec.json.encode({"pid": os.getpid(), "epoch": 1, "gateway": address}))
    if held:
        fcntl.flock(file, fcntl.LOCK_EX)
    yield
    os.close(file)


def test_the_gateway_of_a_writer_is_found_by_any_name_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "alias.db").symlink_to(tmp_path / "log.db")

    with SqliteLog(tmp_path / "log.db") as log:
        before = gateway_of(log.path)
        log.announce_gateway(ADDRESS)
        with planted(tmp_path / "alias.db", address="http://127.0.0.1:1"):
            found = gateway_of(log.path), gateway_of(str(tmp_path / "alias.db"))
    after = gateway_of(str(tmp_path / "log.db"))

    assert (before, found, after) == (None, (ADDRESS, ADDRESS), None)


def test_an_address_that_was_left_behind_is_nobodys(tmp_path: Path) -> None:
    with planted(tmp_path / "log.db", held=False):
        assert gateway_of(str(tmp_path / "log.db")) is None


def test_a_lock_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    with planted(tmp_path / "log.db", mode=0o660), pytest.raises(StoreUnavailable, match="open to others"):
        gateway_of(str(tmp_path / "log.db"))


def test_a_lock_with_a_second_name_is_not_believed(tmp_path: Path) -> None:
    with planted(tmp_path / "log.db"):
        os.link(tmp_path / "log.db.lock", tmp_path / "elsewhere")
        with pytest.raises(StoreUnavailable, match="2 names"):
            gateway_of(str(tmp_path / "log.db"))


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    with planted(tmp_path / "other.db"):
        (tmp_path / "log.db.lock").symlink_to(tmp_path / "other.db.lock")
        with pytest.raises(StoreUnavailable, match="can't be used"):
            gateway_of(str(tmp_path / "log.db"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_lock_of_another_user_is_not_believed(tmp_path: Path) -> None:
    with planted(tmp_path / "log.db"):
        os.chown(tmp_path / "log.db.lock", 1, 1)
        with pytest.raises(StoreUnavailable, match="belongs to user 1"):
            gateway_of(str(tmp_path / "log.db"))


@pytest.mark.parametrize(
    "address",
    [
        "http://192.0.2.7:18789",
        "http://localhost:18789",
        "http://127.0.0.1.example.org:18789",
        "http://127.0.0.1:1@192.0.2.7:18789",
        "http://192.0.2.7:18789#@127.0.0.1:1",
        "http://127.0.0.1",
        "http://127.0.0.1:18789/elsewhere",
        "https://127.0.0.1:18789",
        "http://[::ffff:192.0.2.7]:18789",
        "http://0.0.0.0:18789",
        "http://127.0.0.1:port",
        "127.0.0.1:18789",
        "",
    ],
)
def test_an_address_elsewhere_than_on_the_loopback_is_not_believed(tmp_path: Path, address: str) -> None:
    with (
        planted(tmp_path / "log.db", address=address),
        pytest.raises(StoreUnavailable, match="not this machine's loopback"),
    ):
        gateway_of(str(tmp_path / "log.db"))


@pytest.mark.parametrize("address", [ADDRESS, "http://127.0.0.2:1", "http://[::1]:18789"])
def test_any_address_of_the_loopback_is_believed(tmp_path: Path, address: str) -> None:
    with planted(tmp_path / "log.db", address=address):
        assert gateway_of(str(tmp_path / "log.db")) == address


def test_who_only_looks_at_the_lock_keeps_no_writer_out(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db"):
        pass  # its own living process stands in the file
    looking = os.open(tmp_path / "log.db.lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    opened: list[int] = []

    def write() -> None:
        with SqliteLog(tmp_path / "log.db") as log:
            opened.append(log.epoch)

    writing = threading.Thread(target=write)
    writing.start()
    writing.join(0.1)  # by now it has met the one who looks
    os.close(looking)
    writing.join()

    assert opened == [2]
