"""A proof shows what it says without the log, and stops doing so as soon as anything of it is changed."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.basics.errors import BadCheckpoint, CorruptEvent
from intersession_events.copies.checkpoints.proving import prove_growth, prove_stream
from intersession_events.facts import CheckpointTaken
from intersession_events.proofs.notes import cosigned_note, noted
from intersession_events.proofs.proof import GrowthProof, Proof, StreamProof, check_proof, read_proof
from intersession_events.proofs.signatures import NamedKey, Trusted
from intersession_events.proofs.statement import checkpoint_of
from intersession_events.proofs.tlog_proof import check_tlog_proof, read_tlog_proof, tlog_proof
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import AnyLog, log_at
from support.checkpointed import checkpoint, key_of
from support.log_drafts import anywhere, said
from support.rows import edited

OURS, ANOTHERS = key_of(1), key_of(2)


def written(path: Path | str, streams: str = "abcabaacbaa", every: int = 4) -> AnyLog:
    """A log with a checkpoint behind every so many events, and some events after the last one."""
    log = log_at(path)
    for number, stream in enumerate(streams, 1):
        log.append_now([anywhere(stream, said(str(number)))])
        if number % every == 0:
            checkpoint(log, OURS)
    return log


def trusting(proof: Proof) -> tuple[bool, str, tuple[str, ...]]:
    report = check_proof(read_proof(msgspec.json.encode(proof)), trusted=Trusted([OURS.public]))
    return report.ok, report.shows, report.unproven


@pytest.mark.clause("CHECK-5")
def test_a_stream_is_proven_to_be_part_of_a_checkpoint_up_to_its_last_version(passing_url: str) -> None:
    with written(passing_url) as log:
        proof = prove_stream(log, "c")

        ok, shows, unproven = trusting(proof)

    assert (ok, unproven) == (True, ())
    assert shows.startswith("c, up to its last version 2 at position 9 (hash ")
    assert shows.endswith(f"is part of the log {log.log_id} as of position {proof.checkpoint.position}")


@pytest.mark.sqlite("many small logs, or two at once")
@pytest.mark.clause("CHECK-5")
@settings(max_examples=15, deadline=None)
@given(st.text("abcd", min_size=4, max_size=24), st.integers(1, 5))
def test_every_stream_of_every_checkpoint_is_proven_and_every_checkpoint_is_the_beginning_of_the_later_ones(
    streams: str, every: int
) -> None:
    with written(":memory:", streams, min(every, len(streams))) as log:
        taken = [one.event.position for one in log.stream("log") if isinstance(one.event, CheckpointTaken)]
        for at in taken:
            for stream in {one.stream for one in log.all(to=at)}:
                proof = prove_stream(log, stream, at=at)
                assert trusting(proof)[0]
                assert proof.event.hash_in(log.log_id) == log.stream(stream, to=proof.event.version)[-1].hash
            for since in taken:
                if since <= at:
                    assert trusting(prove_growth(log, since, at=at))[0]


CHANGES: dict[str, Any] = {
    "the version": lambda p: msgspec.structs.replace(p, event=msgspec.structs.replace(p.event, version=9)),
    "the stream": lambda p: msgspec.structs.replace(p, event=msgspec.structs.replace(p.event, stream="d")),
    "the digest": lambda p: msgspec.structs.replace(
        p, event=msgspec.structs.replace(p.event, payload_digest="0" * 64)
    ),
    "the decision record": lambda p: msgspec.structs.replace(
        p, event=msgspec.structs.replace(p.event, decision="{}")
    ),
    "the position": lambda p: msgspec.structs.replace(p, event=msgspec.structs.replace(p.event, position=8)),
    "the place in the tree": lambda p: msgspec.structs.replace(p, index=p.index - 1),
    "the path": lambda p: msgspec.structs.replace(p, path=p.path[1:]),
    "a node of the path": lambda p: msgspec.structs.replace(p, path=("00" * 32, *p.path[1:])),
    "a node that is no hash": lambda p: msgspec.structs.replace(p, path=("no hash", *p.path[1:])),
    "the head's path": lambda p: msgspec.structs.replace(
        p, head=msgspec.structs.replace(p.head, parts=p.head.parts[::-1])
    ),
    "the checkpoint's root": lambda p: msgspec.structs.replace(
        p, checkpoint=msgspec.structs.replace(p.checkpoint, events_root="0" * 64)
    ),
    "the checkpoint's count": lambda p: msgspec.structs.replace(
        p, checkpoint=msgspec.structs.replace(p.checkpoint, count=3)
    ),
    "the log": lambda p: msgspec.structs.replace(
        p, checkpoint=msgspec.structs.replace(p.checkpoint, log_id="another")
    ),
    "the signature": lambda p: msgspec.structs.replace(
        p, checkpoint=msgspec.structs.replace(p.checkpoint, signature=ANOTHERS.sign(p.checkpoint.text))
    ),
}


@pytest.mark.clause("CHECK-5")
@pytest.mark.parametrize("kind", CHANGES)
def test_a_proof_that_was_changed_proves_nothing(passing_url: str, kind: str) -> None:
    with written(passing_url) as log:
        changed: StreamProof = CHANGES[kind](prove_stream(log, "c"))

    ok, shows, _ = trusting(changed)

    assert (ok, shows) == (False, "")


@pytest.mark.sqlite("many small logs, or two at once")
@pytest.mark.clause("CHECK-5")
def test_two_histories_are_not_each_other_s_beginning() -> None:
    with written(":memory:") as log, SqliteLog(":memory:", new_log_id=lambda: log.log_id) as other:
        true = prove_growth(log, 4)
        for number in range(7):
            other.append_now([anywhere("a", said(f"other-{number}"))])
        forged = checkpoint_of(log.log_id, checkpoint(other, OURS).event)  # type: ignore[arg-type]

    assert trusting(true)[0]
    assert not trusting(GrowthProof(since=forged, checkpoint=true.checkpoint, path=true.path))[0]
    assert not trusting(GrowthProof(since=true.since, checkpoint=forged, path=true.path))[0]
    assert not trusting(msgspec.structs.replace(true, path=("xyz",)))[0]
    stranger = msgspec.structs.replace(true.since, log_id="another")
    assert not check_proof(msgspec.structs.replace(true, since=stranger), trusted=Trusted()).ok


def test_what_is_not_trusted_is_said_to_prove_no_more_than_its_checkpoint(passing_url: str) -> None:
    with written(passing_url) as log:
        proof = prove_stream(log, "a")
        unsigned = msgspec.structs.replace(proof.checkpoint, key_id=None, signature=None)

    by_nobody = check_proof(proof, trusted=Trusted())
    published = check_proof(proof, trusted=Trusted(), published=[proof.checkpoint])
    no_key = check_proof(msgspec.structs.replace(proof, checkpoint=unsigned), trusted=Trusted())

    assert (by_nobody.ok, published.unproven) == (True, ())
    assert f"names the key {OURS.public.id}, which is not trusted" in by_nobody.unproven[0]
    assert "it is not signed, and it is not among" in no_key.unproven[0]


def test_without_the_heads_a_later_version_can_not_be_ruled_out(passing_url: str) -> None:
    with log_at(passing_url) as log:
        log.append_now([anywhere("a", said("1"))])
        checkpoint(log, OURS, heads=False)
        ok, shows, unproven = trusting(prove_stream(log, "a"))

    assert ok
    assert "up to its version 1" in shows
    assert "That version 1 was the last of a up to position 1" in unproven[0]


def test_what_is_not_there_is_not_proven(passing_url: str) -> None:
    with written(passing_url) as log:
        with pytest.raises(BadCheckpoint, match="no event of 'nobody'"):
            prove_stream(log, "nobody")
        with pytest.raises(BadCheckpoint, match="no checkpoint of position 3 or before"):
            prove_stream(log, "a", at=3)
        with pytest.raises(BadCheckpoint, match="is not before that of"):
            prove_growth(log, 100, at=4)


@pytest.mark.sqlite("changes a row in the file")
def test_a_log_that_was_changed_gives_no_proof(tmp_path: Path) -> None:
    written(tmp_path / "log.db").close()
    with edited(tmp_path / "log.db") as rows:
        for old, new in ((1, 9999), (2, 1), (9999, 2)):
            rows.execute("UPDATE stored_events SET rowid=? WHERE rowid=?", (new, old))
    rows.close()

    with SqliteLog(tmp_path / "log.db", read_only=True) as log, pytest.raises(CorruptEvent, match="verify"):
        prove_stream(log, "c")


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"kind":"stream"}', b'{"kind":"other"}', b"[" * 5000, b"x" * (1 << 21)]
)
def test_what_is_no_proof_is_refused_in_words(text: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        read_proof(text)


@pytest.mark.clause("TLOG-7")
def test_a_proof_in_the_text_form_holds_by_the_note_and_breaks_with_every_byte_that_counts(
    passing_url: str,
) -> None:
    with written(passing_url) as log:
        proof = prove_stream(log, "c")
    note = noted(proof.checkpoint)
    assert note is not None
    cosigned = cosigned_note(note.text, ANOTHERS, "witness.example", time=1_700_000_000)
    text = str(tlog_proof(proof, msgspec.structs.replace(note, signatures=(*note.signatures, cosigned))))
    ours, witnessed = (
        Trusted([OURS.public]),
        Trusted(witnesses=[NamedKey("witness.example", ANOTHERS.public, is_witness=True)]),
    )

    def shown(text: str, trusted: Trusted) -> tuple[bool, bool]:
        try:
            report = check_tlog_proof(read_tlog_proof(text.encode()), trusted=trusted)
        except BadCheckpoint:
            return False, False
        return report.ok, not report.unproven

    assert shown(text, ours) == shown(text, witnessed) == (True, True)
    assert shown(text, Trusted()) == (True, False)
    assert not shown(text, Trusted(witnesses=[NamedKey("another", ANOTHERS.public, is_witness=True)]))[0]
    assert text.startswith("c2sp.org/tlog-proof@v1\nextra ")
    head, _, below = text.partition("\n\n")
    lines = head.splitlines()
    for at, line in enumerate(lines):
        for changed in (line.replace("A", "B"), line.replace("1", "2"), f"{line}x"):
            if changed != line:
                other = "\n".join([*lines[:at], changed, *lines[at + 1 :]])
                assert not shown(f"{other}\n\n{below}", ours)[0], changed
    assert not shown(text.replace(f"\n{note.size}\n", f"\n{note.size + 1}\n"), ours)[0]
    with pytest.raises(BadCheckpoint, match="not signed"):
        tlog_proof(proof, None)
