"""Before: with checkpoints, what plain SQL does to order, ends and whole streams is found without an exported head."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from intersession_events.facts import CheckpointTaken
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.signatures import PublicKey, Trusted
from intersession_events.proofs.statement import Checkpoint, checkpoint_of
from intersession_events.stores.sqlite.log import SqliteLog
from support.checkpointed import checkpoint, key_of
from support.log_drafts import anywhere, said

OURS, NEXT, ANOTHERS = key_of(1), key_of(2), key_of(3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Twelve events, a checkpoint of 5 (at 6) and one of 9 (at 10), and two events after that."""
    with SqliteLog(tmp_path / "log.db") as log:
        for number in range(5):
            log.append_now([anywhere(f"s{number % 2}", said(f"{number}"))])
        checkpoint(log, OURS)
        for number in range(5, 8):
            log.append_now([anywhere(f"s{number % 3}", said(f"{number}"))])
        checkpoint(log, OURS)
        for number in range(8, 10):
            log.append_now([anywhere(f"s{number % 2}", said(f"{number}"))])
    return tmp_path / "log.db"


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def verified(
    path: Path, *trusted: PublicKey, published: tuple[Checkpoint, ...] = (), final: bool = False
) -> VerifyReport:
    with SqliteLog(path, read_only=True) as log:
        return verify_log(log, published=published, trusted=Trusted(trusted), final=final)


def published_of(path: Path) -> tuple[Checkpoint, ...]:
    with SqliteLog(path, read_only=True) as log:
        events = [(recorded.event) for recorded in log.stream("log")]
        return tuple(checkpoint_of(log.log_id, one) for one in events if isinstance(one, CheckpointTaken))


def found(report: VerifyReport) -> set[str]:
    return set(report.counts)


SWAP = (
    "UPDATE stored_events SET rowid=9999 WHERE rowid={0}",
    "UPDATE stored_events SET rowid={0} WHERE rowid={1}",
    "UPDATE stored_events SET rowid={1} WHERE rowid=9999",
)


def swapped(one: int, other: int) -> tuple[str, ...]:
    return tuple(statement.format(one, other) for statement in SWAP)


def renumbered_without(condition: str) -> tuple[str, ...]:
    """Take rows away and close the gaps, as somebody with plain SQL would who knows what `verify` looks at."""
    return (
        f"DELETE FROM stored_events WHERE {condition}",  # noqa: S608 - of this test
        "CREATE TEMP TABLE places AS SELECT rowid AS old, ROW_NUMBER() OVER (ORDER BY rowid) AS new FROM stored_events",
        "UPDATE stored_events SET rowid=9999+(SELECT new FROM places WHERE old=stored_events.rowid)",
        "UPDATE stored_events SET rowid=rowid-9999",
        "UPDATE sqlite_sequence SET seq=(SELECT MAX(rowid) FROM stored_events) WHERE name='stored_events'",
    )


UNSEEN_BEFORE = {
    "two streams' events swapped in the first interval": swapped(1, 2),
    "two streams' events swapped in the second interval": swapped(7, 8),
    "events swapped across a checkpoint": swapped(5, 7),
    "a whole stream away": renumbered_without("originator_id='s2'"),
    "the last event of a stream away": renumbered_without("rowid=9"),
    "all but the log's own stream away": renumbered_without("originator_id<>'log'"),
}


def test_an_untouched_log_is_proven_up_to_its_last_checkpoint_and_says_what_is_left(path: Path) -> None:
    report = verified(path)

    assert report.ok
    assert (report.checkpoints.taken, report.checkpoints.up_to, report.checkpoints.signed_up_to) == (2, 9, 0)
    assert report.checkpoints.keys == {OURS.public.id: 2}
    said = "\n".join(report.unproven)
    assert f"the key {OURS.public.id} has signed: those signatures were not checked" in said
    assert "rewrote it from the start" in said
    for what in ("comes after position 9 was not cut short", "after position 9, with", "order"):
        assert what in said


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", UNSEEN_BEFORE)
def test_what_went_unseen_without_a_head_is_found_by_checkpoints(path: Path, kind: str) -> None:
    change(path, *UNSEEN_BEFORE[kind])

    report = verified(path)

    assert "checkpoint_mismatch" in found(report), report.findings
    assert [one.stream for one in report.findings if one.code == "checkpoint_mismatch"] == ["log"] * len(
        [one for one in report.findings if one.code == "checkpoint_mismatch"]
    )


def test_a_change_is_told_of_the_first_checkpoint_behind_it_alone(path: Path) -> None:
    change(path, *swapped(1, 2))

    report = verified(path)

    assert [(one.code, one.position) for one in report.findings] == [("checkpoint_mismatch", 6)]
    assert report.checkpoints.up_to == 0


def test_behind_the_last_checkpoint_it_goes_unseen_and_is_named(path: Path) -> None:
    change(path, *swapped(11, 12))

    report = verified(path)

    assert report.ok
    assert "after position 9" in "\n".join(report.unproven)


@pytest.mark.clause("V1")
def test_a_cut_behind_an_earlier_checkpoint_is_named_and_found_with_the_published_one(path: Path) -> None:
    published = published_of(path)
    change(
        path,
        "DELETE FROM stored_events WHERE rowid>7",
        "UPDATE sqlite_sequence SET seq=7 WHERE name='stored_events'",
    )

    assert verified(path).ok
    assert any("after position 5 was not cut short" in said for said in verified(path).unproven)
    assert found(verified(path, published=published)) == {"tail_cut"}


def rewritten(path: Path, tmp_path: Path, key: Callable[[], object]) -> Path:
    """Make a log of the same id, with other events and checkpoints of its own: by an attacker who can hash."""
    with SqliteLog(path, read_only=True) as log:
        log_id = log.log_id
    with SqliteLog(tmp_path / "forged.db", new_log_id=lambda: log_id) as forged:
        for number in range(12):
            forged.append_now([anywhere(f"s{number % 2}", said(f"forged-{number}"))])
        checkpoint(forged, key())  # type: ignore[arg-type]
    return tmp_path / "forged.db"


@pytest.mark.clause("V1")
def test_a_log_rewritten_by_somebody_who_can_hash_is_found_by_what_was_published(
    path: Path, tmp_path: Path
) -> None:
    forged = rewritten(path, tmp_path, lambda: None)

    assert verified(forged).ok
    assert "rewrote it from the start" in "\n".join(verified(forged).unproven)
    assert found(verified(forged, published=published_of(path))) == {"head_mismatch"}


@pytest.mark.clause("V1")
def test_and_by_signatures_of_a_key_that_is_trusted(path: Path, tmp_path: Path) -> None:
    unsigned = rewritten(path, tmp_path, lambda: None)

    assert found(verified(unsigned, OURS.public)) == {"checkpoint_unsigned"}
    assert verified(path, OURS.public).checkpoints.signed_up_to == 9
    assert found(verified(path, NEXT.public)) == {"checkpoint_unsigned"}


def test_a_signature_by_another_key_under_a_trusted_one_s_id_is_forged(path: Path, tmp_path: Path) -> None:
    class Impostor:
        public = OURS.public
        sign = staticmethod(ANOTHERS.sign)

    forged = rewritten(path, tmp_path, Impostor)

    assert "checkpoint_forged" in found(verified(forged, OURS.public))


def test_keys_can_be_changed_and_each_is_trusted_by_itself(path: Path) -> None:
    with SqliteLog(path) as log:
        checkpoint(log, NEXT)

    both, old = verified(path, OURS.public, NEXT.public), verified(path, OURS.public)

    assert (both.ok, both.checkpoints.signed_up_to) == (True, 12)
    assert (old.ok, old.checkpoints.signed_up_to) == (True, 9)
    assert f"the key {NEXT.public.id} has signed: those signatures were not checked" in "\n".join(
        old.unproven
    )
    assert not any("genuine" in said for said in both.unproven)


def test_what_was_published_is_said_to_prove_no_more_than_it_is_genuine(path: Path) -> None:
    published = published_of(path)

    unchecked, checked = (
        verified(path, published=published),
        verified(path, OURS.public, published=published),
    )

    assert (unchecked.ok, unchecked.checkpoints.published_up_to) == (True, 9)
    assert any("published checkpoints themselves are genuine" in said for said in unchecked.unproven)
    assert not any("genuine" in said for said in checked.unproven)
    assert "cut short or forged: the checkpoint was published before it." in "\n".join(checked.unproven)


def test_a_published_checkpoint_that_was_changed_is_no_proof(path: Path) -> None:
    published = published_of(path)
    other = (msgspec.structs.replace(published[-1], events_root="00" * 32),)
    fewer = (msgspec.structs.replace(published[-1], count=published[-1].count - 1),)
    resigned = (msgspec.structs.replace(published[-1], signature=ANOTHERS.sign(published[-1].text)),)
    strangers = (msgspec.structs.replace(published[-1], log_id="another"),)

    assert found(verified(path, published=other)) == {"head_mismatch"}
    assert found(verified(path, published=fewer)) == {"head_mismatch"}
    assert found(verified(path, OURS.public, published=resigned)) == {"checkpoint_forged"}
    assert found(verified(path, published=strangers)) == {"other_log"}


def test_a_checkpoint_that_was_changed_in_the_log_is_a_changed_row(path: Path) -> None:
    change(
        path,
        "UPDATE stored_events SET state=CAST(replace(state, '\"count\":5', '\"count\":4') AS BLOB) WHERE rowid=6",
    )

    assert {"changed", "checkpoint_mismatch"} <= found(verified(path))


def test_a_log_without_checkpoints_says_what_it_said(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([anywhere("s", said("a"))])
        report = verify_log(log)

    assert report.checkpoints.taken == 0
    assert "That the log was not set back" in report.unproven[0]
    assert "That no events were cut off the end" in report.unproven[1]
