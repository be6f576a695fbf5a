"""V1, PLACE: no name and no file of somebody else's says on a line of its own what a command says, or is read without an end."""

import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_actors.hindsight.forking.listing import forks_of
from intersession_actors.hindsight.replaying.replayed import replay_file
from intersession_events.basics.errors import CorruptEvent
from intersession_events.transcripts.openclaw.reading.foreign_json import Unreadable, read_json5
from support.any_log import changed_behind
from support.doors.command_line import ran

FALSE = "x\nverified: 9 events in 1 stream of all.db are as they were written"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("told") / "log.db"
    with SessionSystem(f"sqlite:///{path}", agents={"main": echo()}) as system:
        system.inbound(channel="t", chat_id="1", sender="ann", text="hello", wait=20)
    return path


@pytest.mark.clause("V1")
def test_a_line_feed_in_a_name_begins_no_line_of_what_verify_says(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.read_bytes())
    changed_behind(
        copy,
        "UPDATE stored_events SET originator_id=?, topic=? WHERE rowid=(SELECT MAX(rowid) FROM stored_events)",
        FALSE,
        FALSE,
    )

    said = ran("verify", "--store", copy, "--events-only")

    assert said.exit_code == 4
    assert not any(line.startswith("verified") for line in said.out.splitlines())


@pytest.fixture
def umask() -> Generator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.clause("X11")
@pytest.mark.usefixtures("umask")
def test_what_is_exported_is_its_owners_alone(store: Path, tmp_path: Path) -> None:
    run = ran("runs", "--store", store, "--json").json["runs"][0]["id"]
    test, svg, head = tmp_path / "test_it.py", tmp_path / "run.svg", tmp_path / "head.json"
    ran("export-test", run, "--output", test, "--store", store)
    ran("show", run, "--svg", svg, "--store", store)
    ran("verify", "--export-head", head, "--store", store, "--events-only")

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}

    assert modes == dict.fromkeys(("test_it.py", "test_it.jsonl", "run.svg", "head.json"), 0o600)


@pytest.mark.clause("IMP-1")
def test_json5_that_its_reader_would_take_long_for_is_refused() -> None:
    assert read_json5(b"{" + b" " * 2_000_000 + b"}") == {}
    with pytest.raises(Unreadable, match="larger than 131072 characters"):
        read_json5(b"{a: [" + b"1," * 3_000_000 + b"]}")


@pytest.mark.clause("SEAL-3")
@pytest.mark.parametrize("content", [b"[" * 100_000, b"{}\n" + b'{"a":' * 100_000, b"", b"\xff\n\n"])
def test_a_recording_that_is_none_is_refused_typed(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(content)

    with pytest.raises(CorruptEvent, match="no recording of a run"):
        replay_file(file)


@pytest.mark.clause("SEAL-3")
def test_what_never_ends_is_given_up_and_is_no_recording() -> None:
    with pytest.raises(CorruptEvent, match="more than 268435456 bytes"):
        replay_file("/dev/zero")


@pytest.mark.clause("FORK-9")
def test_a_copy_of_a_fork_under_another_name_is_no_other_fork(tmp_path: Path) -> None:
    with SessionSystem(f"sqlite:///{tmp_path / 'log.db'}", agents={"main": echo()}) as system:
        run = system.inbound(channel="t", chat_id="1", sender="ann", text="hello", wait=20)
        with system.fork(str(run["runId"]), at="end") as fork:
            path = Path(fork.log.path)
        path.with_name("00000000-0000-4000-8000-000000000000.db").write_bytes(path.read_bytes())

        assert [one.id for one in forks_of(system.log.place).forks] == [path.stem]
