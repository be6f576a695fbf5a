"""The store of files' contents, in a folder, in a table and in memory (FILE-1)."""

import hashlib
import stat
from collections.abc import Collection
from pathlib import Path

import pytest

from intersession_events.basics.errors import CorruptEvent
from intersession_events.stores.opened import open_log

HELLO = b"hello"
SHA = hashlib.sha256(HELLO).hexdigest()


@pytest.mark.clause("FILE-1")
def test_a_content_is_kept_dropped_or_settled(log_url: str) -> None:
    with open_log(log_url) as log:
        files = log.files
        assert (files.read(SHA), files.state(SHA), files.own()) == (None, "missing", [])
        assert files.write(HELLO, since=0) == SHA
        files.drop([SHA])
        assert files.state(SHA) == "missing"

        assert files.write(HELLO, since=0) == SHA
        files.keep([SHA])
        assert (files.read(SHA), files.state(SHA), files.own()) == (HELLO, "right", [SHA])

        # A second message with an equal content is refused: the first one's stays.
        files.write(HELLO, since=0)
        files.drop([SHA])
        assert files.settle(lambda _, __: ()) == 0
        assert files.state(SHA) == "right"

        files.doubt([SHA])
        assert files.settle(lambda shas, _: shas) == 0
        assert files.state(SHA) == "right"
        files.doubt([SHA])
        assert files.settle(lambda _, __: ()) == 1
        assert files.state(SHA) == "missing"


@pytest.mark.sqlite("files in a folder")
@pytest.mark.clause("FILE-1", "FILE-7")
def test_what_a_kill_has_left_of_a_content_goes_with_it(tmp_path: Path) -> None:
    """Before: it stayed for ever under a name that nothing looked for."""
    with open_log(str(tmp_path / "log.db")) as log:
        log.files.write(HELLO, since=7)
    folder = tmp_path / "log.db.files"
    (folder / SHA).rename(folder / f"{SHA}.part")

    with open_log(str(tmp_path / "log.db")) as log:
        assert log.files.settle(lambda _, __: ()) == 1
        assert [*folder.iterdir()] == []


@pytest.mark.clause("FILE-1")
def test_a_content_in_doubt_is_looked_up_at_the_next_start(log_url: str) -> None:
    with open_log(log_url) as log:
        log.files.write(HELLO, since=7)  # and the process dies
    with open_log(log_url) as log:
        asked: list[tuple[list[str], int]] = []

        def named(contents: Collection[str], since: int) -> list[str]:
            asked.append(([*contents], since))
            return []

        assert log.files.settle(named) == 1
        assert asked == [([SHA], 7)]
        assert log.files.own() == []


@pytest.mark.clause("FILE-1")
def test_a_content_that_a_message_on_its_way_has_is_not_removed_by_an_erasure(log_url: str) -> None:
    with open_log(log_url) as log:
        files = log.files
        files.write(HELLO, since=0)
        files.keep([SHA])
        files.doubt([SHA])
        files.write(HELLO, since=0)
        assert files.settle(lambda _, __: ()) == 0
        files.keep([SHA])
        assert files.settle(lambda _, __: ()) == 0
        assert files.read(SHA) == HELLO


@pytest.mark.clause("FILE-1")
def test_files_beside_a_log_are_their_owners_alone_and_an_altered_one_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    with open_log(f"sqlite:///{store}") as log:
        log.files.write(HELLO, since=0)
        log.files.keep([SHA])
        path = log.files.path(SHA)
        assert path is not None
        assert path == tmp_path / "log.db.files" / SHA
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        path.write_bytes(b"other")
        assert log.files.state(SHA) == "altered"
        with pytest.raises(CorruptEvent, match="not what was written"):
            log.files.read(SHA)
        log.files.write(HELLO, since=0)
        assert log.files.read(SHA) == HELLO
