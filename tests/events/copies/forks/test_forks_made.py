"""A fork is a log of its own that begins as a verifiable part of another."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest
from msgspec import structs

from intersession_events.basics.errors import CorruptEvent, ForkFailed
from intersession_events.basics.ids import derive
from intersession_events.copies.forks.files import directory_of, forks_beside, forks_called, remove_fork
from intersession_events.facts import ConfigLoaded, Erased, ForkEdit, MessageRecorded, decode, encode, unsaid
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.verifying.prefix_source import prefix_compared
from intersession_events.log.verifying.report import Finding, VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.signatures import Trusted
from intersession_events.stores.sqlite.log import SqliteLog
from support.checkpointed import checkpoint
from support.forged_erasures import forge, payload_of_row
from support.forked import CUT, KEY, LOG_ID, OTHER, A, B, fork_of, forked, load, say, source_log


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source_log(tmp_path_factory.mktemp("source") / "log.db")


@pytest.fixture(scope="module")
def fork(source: Path) -> Path:
    return fork_of(source)


def verified(path: Path, *, trusted: Trusted | None = None) -> VerifyReport:
    with SqliteLog(path, read_only=True) as log:
        return verify_log(log, trusted=trusted)


def rows(path: Path, where: str = "1") -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            f"SELECT rowid, * FROM stored_events WHERE {where} ORDER BY rowid"  # noqa: S608 - of the test
        ).fetchall()


@pytest.mark.clause("FORK-1")
def test_a_fork_takes_the_rows_as_they_lie_and_goes_on_behind_the_cut(tmp_path: Path) -> None:
    path = source_log(tmp_path / "log.db")
    before = path.read_bytes()

    made = fork_of(path)

    assert path.read_bytes() == before
    taken = rows(made, f"originator_id <> 'log' AND rowid <= {CUT}")
    assert taken == rows(path, f"originator_id IN ('{A}', '{B}') AND rowid <= {CUT}")
    with SqliteLog(made) as log:
        say(log, A, "another ending")
        assert [one.position for one in log.all(after=CUT)] == [CUT + 1, CUT + 2]
        assert [one.version for one in log.stream(A)] == [1, 2, 3, 4]
        assert log.log_id != LOG_ID
    assert verified(made).ok


@pytest.mark.clause("FORK-1")
def test_of_the_stream_log_a_fork_takes_what_was_in_force_for_its_events(fork: Path) -> None:
    with SqliteLog(fork, read_only=True) as log:
        of_log = log.stream("log")
        configs = [one.event.digest for one in of_log if isinstance(one.event, ConfigLoaded)]

        assert configs == ["first", "now"]
        assert of_log[-1].version == of_log[-2].version + 1
        # Read from behind, as those do who look for what was in force.
        assert [one.version for one in log.stream("log", backwards=True, limit=2)] == [
            of_log[-1].version,
            of_log[-2].version,
        ]


_FIRST_OF_A = (
    "UPDATE stored_events SET {} WHERE originator_id='session:agent:a:main' AND originator_version=1"
)


@pytest.mark.clause("FORK-2")
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (_FIRST_OF_A.format("state=altered(state)"), "changed"),
        (_FIRST_OF_A.format("topic='session_reset.1'"), "was changed"),
        (_FIRST_OF_A.format("state=X'00'"), "no envelope"),
        (_FIRST_OF_A.format("originator_id='elsewhere'"), "does not follow the event before it"),
        ("UPDATE stored_events SET topic='log_opened.2' WHERE topic='config_loaded.1'", "was changed"),
    ],
    ids=["words", "topic", "damaged", "taken away", "what was in force"],
)
def test_no_fork_is_made_of_what_is_not_as_it_was_written(tmp_path: Path, statement: str, said: str) -> None:
    path = source_log(tmp_path / "log.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("altered", 1, lambda state: state.replace(b"one", b"own"))
        connection.execute(statement)

    with pytest.raises(
        CorruptEvent, match=rf"position \d+, .*{said}.*no fork is made of what is not as it was"
    ):
        fork_of(path)
    assert forks_beside(str(path)) == []


@pytest.mark.clause("FORK-2")
def test_what_was_changed_elsewhere_or_behind_the_cut_keeps_no_fork_from_being_made(tmp_path: Path) -> None:
    path = source_log(tmp_path / "log.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(_FIRST_OF_A.format("state=X'00'"))
        connection.execute("UPDATE stored_events SET state=X'00' WHERE rowid > ?", (CUT,))

    assert verified(fork_of(path, [B])).ok


@pytest.mark.clause("FORK-2")
def test_a_fork_says_what_it_was_made_of_and_what_is_otherwise(tmp_path: Path, source: Path) -> None:
    edits = (ForkEdit(kind="set", key="session.x", value="2"),)
    with SqliteLog(source, read_only=True) as log:
        made = forked(log, [A], at=CUT, edits=edits, by="ann", directory=tmp_path)
        last = log.stream(A, to=3)[-1]

    with SqliteLog(made.path, read_only=True) as log:
        said = log.forked
    assert said == made.forked
    assert said is not None
    assert (said.log_id, said.position, said.flow) == (LOG_ID, CUT, "r")
    assert (said.edits, said.by) == (edits, "ann")
    assert (A, 3, last.hash) in said.heads


@pytest.mark.clause("FORK-2")
def test_a_fork_is_proven_offline_by_the_checkpoints_of_the_log_it_was_made_of(fork: Path) -> None:
    alone, trusting = verified(fork), verified(fork, trusted=Trusted([KEY.public]))

    (seen,) = alone.prefix
    assert (alone.ok, seen.proven, seen.signed) == (True, seen.streams, 0)
    assert any("against an attacker who can hash" in said for said in alone.unproven)
    (seen,) = trusting.prefix
    assert (trusting.ok, seen.signed) == (True, seen.streams)
    assert not any("is of the log" in said for said in trusting.unproven)


@pytest.mark.clause("FORK-2")
def test_with_the_source_at_hand_the_prefix_is_proven_to_be_its_own(
    tmp_path: Path, source: Path, fork: Path
) -> None:
    other = source_log(tmp_path / "other.db")
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute(
            "DELETE FROM stored_events WHERE originator_id=? AND originator_version=2", (OTHER,)
        )
        connection.execute("UPDATE stored_events SET rowid=9999 WHERE originator_id=? AND rowid=4", (A,))
    with SqliteLog(fork, read_only=True) as log:
        with SqliteLog(source, read_only=True) as made_of:
            same = list(prefix_compared(log, made_of))
            report = verify_log(log).with_source(same)
        with SqliteLog(other, read_only=True) as changed:
            found = list(prefix_compared(log, changed))
        unrelated = list(prefix_compared(log, log))

    assert same == []
    assert not any("is of the log" in said for said in report.unproven)
    assert {one.code for one in found} == {"prefix_mismatch"}
    assert [one.code for one in unrelated] == ["other_log"]


@pytest.mark.clause("FORK-2", "ERASE-2")
def test_with_the_source_at_hand_nothing_can_be_forged_in_the_place_of_what_was_erased(
    tmp_path: Path,
) -> None:
    source = source_log(tmp_path / "log.db")
    fork = fork_of(source)

    def left(role: Literal["user", "assistant"]) -> bytes:
        event = unsaid(decode("message_recorded.1", payload_of_row(source, A, 2)))
        assert isinstance(event, MessageRecorded)
        return encode(structs.replace(event, message=structs.replace(event.message, role=role)))

    def compared() -> tuple[dict[str, int], dict[str, int]]:
        """What is found in the fork alone, and with the source at hand."""
        trusted = Trusted([KEY.public])
        with SqliteLog(fork, read_only=True) as log, SqliteLog(source, read_only=True) as made_of:
            report = verify_log(log, trusted=trusted)
            there = verify_log(made_of, trusted=trusted)
            return report.counts, report.with_source(list(prefix_compared(log, made_of)), there).counts

    true, false = left("user"), left("assistant")
    forge(fork, A, 2, true)
    assert compared() == ({"erasure_unproven": 1}, {})
    forge(fork, A, 2, false)
    assert compared() == ({"erasure_unproven": 2}, {"erasure_unproven": 2, "prefix_mismatch": 1})
    forge(source, A, 2, false)
    assert compared()[1] == {"erasure_unproven": 2, "prefix_mismatch": 1}
    forge(source, A, 2, true)
    forge(fork, A, 2, true)
    assert compared()[1] == {
        "erasure_unproven": 3,
        "prefix_mismatch": 1,
    }  # that of the source is covered by nothing
    with SqliteLog(source) as log:
        checkpoint(log, KEY)
    assert compared() == ({"erasure_unproven": 3}, {})


@pytest.mark.clause("FORK-2")
def test_a_fork_of_a_fork_is_proven_back_to_the_first_log(tmp_path: Path) -> None:
    path = source_log(tmp_path / "log.db")
    first = fork_of(path)
    with SqliteLog(first) as log:
        load(log, "in the fork")
        say(log, A, "otherwise")
        at = log.head()
        say(log, A, "not taken")
    second = fork_of(first, [A], at=at)

    with SqliteLog(second, read_only=True) as log:
        report = verify_log(log)
        texts = [one.version for one in log.stream(A)]
        ids = [log.lineage.log_id_at(position) for position in (1, CUT, CUT + 1, at, at + 1)]
        compared: list[Finding] = []
        for made_of in (path, first):
            with SqliteLog(made_of, read_only=True) as other:
                compared += prefix_compared(log, other)

    first_id, second_id = first.stem, second.stem
    assert (report.ok, compared, texts) == (True, [], [1, 2, 3, 4])
    assert ids == [LOG_ID, LOG_ID, first_id, first_id, second_id]
    assert [(seen.log_id, seen.position) for seen in report.prefix] == [(first_id, at), (LOG_ID, CUT)]
    assert second.parent == first.parent


@pytest.mark.clause("FORK-2")
def test_a_fork_before_the_end_of_a_forks_prefix_is_one_of_the_first_log(tmp_path: Path, fork: Path) -> None:
    with SqliteLog(fork, read_only=True) as log:
        made = forked(log, [A], at=CUT - 3, directory=tmp_path)

    assert made.forked.log_id == LOG_ID
    assert verified(Path(made.path)).ok


@pytest.mark.clause("ERASE-1")
def test_what_was_erased_after_the_cut_is_erased_in_a_fork_and_authorised_there(tmp_path: Path) -> None:
    path = source_log(tmp_path / "log.db")
    with SqliteLog(path) as log:
        erased = [(one.version, left_of(one) or "") for one in log.stream(A)]
        event = Erased(stream=A, rows=tuple(erased), by="ann", reason="asked")
        draft = Draft(event=event, id=derive(LOG_ID, "erase"), time=5)
        log.append_now([StreamAppend(stream=erased_stream(A), expected=ANY_VERSION, drafts=(draft,))])
    with SqliteLog(path, read_only=True) as log:
        before = Path(forked(log, [A, B], at=CUT).path)
        behind = Path(forked(log, [A, B], at=log.head()).path)

    for made in (before, behind):
        report = verified(made)
        with SqliteLog(made, read_only=True) as log:
            told = [one.event for one in log.stream(A)]
        assert (report.ok, report.erased) == (True, len(told)), report.findings
        assert told == list(map(unsaid, told))


@pytest.mark.clause("FORK-2")
def test_forks_lie_beside_the_log_and_are_called_by_the_beginning_of_their_ids(tmp_path: Path) -> None:
    path = source_log(tmp_path / "log.db")
    one, other = fork_of(path), fork_of(path)

    assert directory_of(str(path)) == tmp_path / "log.db.forks" == directory_of(str(one))
    assert forks_beside(str(path)) == sorted([one, other])
    assert forks_called(str(path), one.stem[:12]) == [one]
    assert forks_called(str(path), one.stem[:3]) == []
    assert one.parent.stat().st_mode & 0o77 == 0
    assert [file.name for file in one.parent.iterdir() if file.name.startswith(".")] == []


def test_what_cannot_be_forked_is_said_and_leaves_nothing(tmp_path: Path, source: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_bytes(b"")
    with SqliteLog(source, read_only=True) as log:
        for at in (-1, log.head() + 1):
            with pytest.raises(ForkFailed, match=f"position {at}"):
                forked(log, [A], at=at, directory=tmp_path / "none")
        with pytest.raises(ForkFailed, match="can't be written"):
            forked(log, [A], at=CUT, directory=blocked)
    with SqliteLog(":memory:") as log, pytest.raises(ForkFailed, match="in memory"):
        forked(log, [], at=0)

    assert sorted(tmp_path.iterdir()) == [blocked]


@pytest.mark.clause("FORK-1")
def test_a_log_in_memory_is_forked_into_a_directory(tmp_path: Path) -> None:
    with SqliteLog(":memory:") as log:
        say(log, A, "one", "two")
        made = forked(log, [A], at=1, directory=tmp_path)

    assert verified(Path(made.path)).ok


@pytest.mark.clause("FORK-2")
def test_heads_at_every_place_between_checkpoints_are_proven(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with SqliteLog(path) as log:
        for number, size in enumerate((1, 2, 5, 3, 8)):
            for one in range(size):
                say(log, f"session:{number}:{one}", "a", "b")
            checkpoint(log, KEY)
        made = forked(log, log.streams("session:"), at=log.head())

    report = verified(Path(made.path))
    (seen,) = report.prefix
    assert (report.ok, seen.proven) == (True, seen.streams)


@pytest.mark.clause("FORK-9")
def test_whoever_was_killed_while_a_fork_was_deleted_deletes_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: the fork's file went first, and what lay beside it was of no fork any more."""
    made = fork_of(source_log(tmp_path / "log.db"))
    for name in ("-wal", ".views"):
        made.with_name(f"{made.name}{name}").touch()
    unlink, gone = Path.unlink, list[str]()

    def once(path: Path, *, missing_ok: bool = False) -> None:
        if gone:
            raise KeyboardInterrupt
        gone.append(path.name)
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", once)
        with pytest.raises(KeyboardInterrupt):
            remove_fork(made)
    remove_fork(made)

    assert gone != [made.name]
    assert [one for one in made.parent.iterdir() if one.name.startswith(made.name)] == []
