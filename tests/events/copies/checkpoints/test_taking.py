"""Checkpoints are taken beside the writer: of what, by whom, and from where they go on."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.basics.errors import CorruptEvent
from intersession_events.copies.checkpoints.taking import _HEADS, CheckpointTaker, append_of
from intersession_events.facts import CheckpointTaken
from intersession_events.log.recorded import Recorded
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.merkle import GrowingTree, leaf_hash, root_of
from intersession_events.proofs.statement import checkpoint_of
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import AnyLog, log_at
from support.checkpointed import checkpoint, key_of, taken_by
from support.log_drafts import anywhere, said
from support.rows import edited


def event_of(recorded: Recorded) -> CheckpointTaken:
    assert isinstance(recorded.event, CheckpointTaken)
    return recorded.event


def lines(log: AnyLog, after: int, to: int) -> list[bytes]:
    found = log.query(
        "SELECT rowid || ' ' || iif(substr(state, 1, 1) = X'01', lower(hex(substr(state, 2, 32))), json_extract(state, '$.hash')) "
        "FROM stored_events WHERE rowid>? AND rowid<=? "
        "ORDER BY rowid",
        (after, to),
    )
    return [f"{line}\n".encode() for (line,) in found]


def put(log: AnyLog, *names: str, stream: str = "s") -> None:
    log.append_now([anywhere(stream, *(said(name) for name in names))])


def unsaid_of(name: str) -> bytes:
    said_by = f'{{"content":"[erased]","id":"{name}","role":"user","timestamp":1000}}'
    return f'{{"message":{said_by},"sessionId":"s"}}'.encode()


@pytest.mark.sqlite("hashes by functions of SQLite")
@pytest.mark.clause("V1")
def test_a_checkpoint_says_what_anybody_can_hash_again_with_sqlite(passing_url: str) -> None:
    with log_at(passing_url) as log:
        put(log, "a", "b")
        first = event_of(checkpoint(log))
        put(log, "c", stream="t")
        second = event_of(checkpoint(log))

        all_lines = lines(log, 0, 4)
        assert (first.position, first.count, second.position, second.count) == (2, 2, 4, 4)
        assert second.rolling == hashlib.sha256(b"".join(lines(log, 2, 4))).hexdigest()
        assert second.events_root == root_of([leaf_hash(line) for line in all_lines]).hex()
        assert second.streams == 3
        statement = checkpoint_of(log.log_id, first)
        plain = {
            "count": 2,
            "eventsRoot": first.events_root,
            "headsRoot": first.heads_root,
            "logId": log.log_id,
            "position": 2,
            "previous": None,
            "rolling": first.rolling,
            "streams": 1,
            "unsaid": hashlib.sha256(
                b"".join(
                    f"{place} {hashlib.sha256(unsaid_of(name)).hexdigest()}\n".encode()
                    for place, name in ((1, "a"), (2, "b"))
                )
            ).hexdigest(),
        }
        text = b"intersession checkpoint 1\n" + msgspec.json.encode(plain, order="sorted")
        assert statement.text == text
        assert second.previous == hashlib.sha256(text).hexdigest()


@pytest.mark.sqlite("many small logs, or two at once")
@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.sampled_from("stu"), min_size=1, max_size=4), min_size=1, max_size=5), st.data())
def test_who_goes_on_and_who_begins_anew_take_the_same(rounds: list[list[str]], draw: st.DataObject) -> None:
    with SqliteLog(":memory:") as log:
        staying = CheckpointTaker(log)
        number = 0
        for streams in rounds:
            for stream in streams:
                number += 1
                put(log, f"{number}", stream=stream)
            while staying.fold():
                pass
            staying.know_heads()
            anew = CheckpointTaker(log)
            while anew.fold():
                pass
            anew.know_heads()
            assert anew.take() == staying.take()
            assert anew.fresh == staying.fresh
            staying.appended(checkpoint(log)) if draw.draw(st.booleans()) else taken_by(staying, log)

        report = verify_log(log)
        assert report.ok, report.findings
        assert report.checkpoints.taken == len(rounds)


def test_an_append_between_the_reading_and_the_checkpoint_belongs_to_the_next(log_url: str) -> None:
    with log_at(log_url) as log:
        put(log, "a")
        taker = CheckpointTaker(log)
        taker.fold()
        put(log, "b")
        first = taken_by_as_it_is(taker, log)
        put(log, "c")
        second = taken_by(taker, log)

        assert (event_of(first).position, first.position) == (1, 3)
        assert event_of(second).count == 4
        assert verify_log(log).ok


def taken_by_as_it_is(taker: CheckpointTaker, log: AnyLog) -> Recorded:
    (recorded,) = log.append_now([append_of(log.log_id, taker.take(), time=2_000)]).recorded
    taker.appended(recorded)
    return recorded


def test_checkpoints_are_nothing_new_by_themselves(passing_url: str) -> None:
    with log_at(passing_url) as log:
        put(log, "a")
        taker = CheckpointTaker(log)
        taken_by(taker, log)
        taker.fold()

        assert taker.fresh == 0
        put(log, "b")
        taker.fold()
        assert taker.fresh == 1


def test_what_became_of_an_append_is_read_from_the_log(passing_url: str) -> None:
    with log_at(passing_url) as log:
        put(log, "a")
        taker = CheckpointTaker(log)
        taker.fold()
        taker.know_heads()
        checkpoint(log)  # ours, whose answer was lost
        taker.begin_again()
        taker.fold()

        assert (taker.taken, taker.fresh, taker.has_heads) == (1, 0, True)
        put(log, "b")
        taken_by(taker, log)
        assert verify_log(log).ok


def test_a_signed_checkpoint_names_its_key(passing_url: str) -> None:
    key = key_of(1)
    with log_at(passing_url) as log:
        put(log, "a")
        event = event_of(checkpoint(log, key))

        assert event.key_id == key.public.id
        assert key.public.has_signed(checkpoint_of(log.log_id, event).text, event.signature or "")
        assert not key_of(2).public.has_signed(checkpoint_of(log.log_id, event).text, event.signature or "")
        assert not key.public.has_signed(b"another text", event.signature or "")


@pytest.mark.sqlite("changes a row in the file")
def test_no_checkpoint_is_taken_of_a_row_that_can_not_be_read(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        put(log, "a", "b")
    with edited(tmp_path / "log.db") as rows:
        rows.execute("UPDATE stored_events SET state=x'7b' WHERE rowid=2")
    rows.close()

    with (
        SqliteLog(tmp_path / "log.db", read_only=True) as log,
        pytest.raises(CorruptEvent, match="position 2"),
    ):
        CheckpointTaker(log).fold()


def test_a_checkpoint_of_something_else_is_not_gone_on_from(passing_url: str) -> None:
    with log_at(passing_url) as log:
        put(log, "a")
        recorded = checkpoint(log)
        taker = CheckpointTaker(log)
        taker.fold()

        with pytest.raises(CorruptEvent, match="no checkpoint of position 2"):
            taker.appended(recorded)


@pytest.mark.parametrize(
    "wrong", [{"peaks": ("no hash",)}, {"peaks": ()}, {"count": 3}, {"events_root": "00" * 32}]
)
def test_a_last_checkpoint_that_makes_no_sense_is_an_error_and_no_crash(
    passing_url: str, wrong: dict[str, Any]
) -> None:
    with log_at(passing_url) as log:
        put(log, "a")
        taker = CheckpointTaker(log)
        taker.fold()
        forged = msgspec.structs.replace(taker.take(), **wrong)
        log.append_now([append_of(log.log_id, forged, time=2_000)])

        with pytest.raises(CorruptEvent, match="be continued from"):
            CheckpointTaker(log).fold()


@pytest.mark.sqlite("asks SQLite for its plan")
def test_the_heads_are_read_by_the_index_of_streams_alone(passing_url: str) -> None:
    with log_at(passing_url) as log:
        put(log, "a")
        plan = " ".join(str(row[-1]) for row in log.query(f"EXPLAIN QUERY PLAN {_HEADS}", ("", 5, 10)))

    assert "COVERING INDEX" in plan
    assert "SCAN stored_events" not in plan


def test_peaks_alone_are_enough_to_go_on_from(passing_url: str) -> None:
    with log_at(passing_url) as log:
        put(log, *(str(number) for number in range(11)))
        event = event_of(checkpoint(log))

        tree = GrowingTree(event.count, map(bytes.fromhex, event.peaks))
        assert tree.root.hex() == event.events_root
