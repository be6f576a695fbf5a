"""Whatever somebody does to a fork with plain SQL is found without the log that it was made of."""

import shutil
from pathlib import Path

import pytest

from intersession_events.basics.errors import LogError
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.fork_tampering import FORKS
from support.forked import A, fork_of, say, source_log
from support.tampering import Kind, tamper


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = fork_of(source_log(tmp_path_factory.mktemp("source") / "log.db"))
    with SqliteLog(made) as log:
        say(log, A, "otherwise")
    return made


@pytest.mark.clause("FORK-2", "V1")
@pytest.mark.parametrize("kind", FORKS, ids=lambda kind: kind.what)
def test_what_is_done_to_a_fork_is_found_by_the_fork_alone(fork: Path, tmp_path: Path, kind: Kind) -> None:
    path = Path(shutil.copy(fork, tmp_path / "fork.db"))

    tamper(path, kind)

    with SqliteLog(path, read_only=True) as log:
        report = verify_log(log)
    assert kind.finds in report.counts, report.findings[:5]


@pytest.mark.clause("FORK-2")
def test_a_writer_does_not_build_upon_a_fork_whose_beginning_was_changed(fork: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(fork, tmp_path / "fork.db"))
    tamper(path, next(kind for kind in FORKS if kind.what == "a head that the fork names"))
    before = path.read_bytes()

    with pytest.raises(LogError, match="says how this fork began"):
        SqliteLog(path)

    assert path.read_bytes() == before
