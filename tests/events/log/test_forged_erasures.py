"""ERASE-2: in the place of erased words stands what was left of them and nothing else, and each erasure is only as proven as its event."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import (
    CheckpointTaken,
    Erased,
    Message,
    MessageRecorded,
    TextBlock,
    ToolCallBlock,
    decode,
    encode,
    unsaid,
)
from intersession_events.log.erasing import left_of
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import Checkpoint, checkpoint_of
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import changed_behind
from support.checkpointed import checkpoint, key_of
from support.forged_erasures import forge, payload_of_row, put_in_place, say_erased
from support.log_drafts import anywhere, draft, said

STREAM = "session:agent:main:main"
KEY = key_of(1)


def called() -> MessageRecorded:
    blocks = (TextBlock(text="I look"), ToolCallBlock(id="c1", name="read", arguments='{"path":"a"}'))
    return MessageRecorded(
        session_id="s", message=Message(id="m2", role="assistant", content=blocks, timestamp=5)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with three messages under a signed checkpoint."""
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now(
            [anywhere(STREAM, said("m1", "pay 10 to Ann"), draft(called(), "m2"), said("m3", "thanks"))]
        )
        checkpoint(log, KEY)
    return tmp_path / "log.db"


def published_of(path: Path) -> list[Checkpoint]:
    with SqliteLog(path, read_only=True) as log:
        return [
            checkpoint_of(log.log_id, one.event)
            for one in log.stream("log")
            if isinstance(one.event, CheckpointTaken)
        ]


def verified(path: Path, *, published: list[Checkpoint] | None = None, trusted: bool = True) -> VerifyReport:
    with SqliteLog(path, read_only=True) as log:
        return verify_log(log, trusted=Trusted([KEY.public]) if trusted else None, published=published or ())


def left(path: Path, version: int) -> MessageRecorded:
    event = unsaid(decode("message_recorded.1", payload_of_row(path, STREAM, version)))
    assert isinstance(event, MessageRecorded)
    return event


def with_message(event: MessageRecorded, **changed: object) -> bytes:
    return encode(msgspec.structs.replace(event, message=msgspec.structs.replace(event.message, **changed)))


def other_words(path: Path) -> bytes:
    return payload_of_row(path, STREAM, 1).replace(b"10 to Ann", b"99 to Bob")


def extra_key(path: Path) -> bytes:
    payload = encode(left(path, 1))
    return payload[:-1] + b',"zz":"pay 99 to Bob"}'


def other_role(path: Path) -> bytes:
    return with_message(left(path, 1), role="assistant")


def other_id(path: Path) -> bytes:
    return with_message(left(path, 1), id="pay 99 to Bob")


def other_tool(path: Path) -> bytes:
    event = left(path, 2)
    blocks = (
        TextBlock(text="[erased]"),
        ToolCallBlock(id="c1", name="pay_99_to_bob", arguments='{"text":"[erased]"}'),
    )
    return with_message(event, content=blocks)


def other_number(path: Path) -> bytes:
    return with_message(left(path, 1), timestamp=99)


def one_block_more(path: Path) -> bytes:
    return with_message(left(path, 2), content=(TextBlock(text="[erased]"),) * 3)


def that_of_another(path: Path) -> bytes:
    return encode(left(path, 3))


def text_for_blocks(path: Path) -> bytes:
    return with_message(left(path, 2), content="[erased]")


STRUCTURES = [other_role, other_id, other_number, that_of_another]


@pytest.mark.clause("ERASE-2")
@pytest.mark.parametrize("make", [other_words, extra_key, *STRUCTURES])
def test_nothing_but_what_was_left_of_a_message_can_stand_in_its_place(
    path: Path, make: Callable[[Path], bytes]
) -> None:
    published = published_of(path)
    forge(path, STREAM, 1, make(path))

    for report in (verified(path), verified(path, trusted=False), verified(path, published=published)):
        assert not report.ok
        assert {"erased", "checkpoint_mismatch"} & report.counts.keys()


@pytest.mark.clause("ERASE-2")
@pytest.mark.parametrize("make", [other_tool, one_block_more, text_for_blocks])
def test_nor_can_another_structure(path: Path, make: Callable[[Path], bytes]) -> None:
    published = published_of(path)
    forge(path, STREAM, 2, make(path))

    assert "checkpoint_mismatch" in verified(path).counts
    assert "head_mismatch" in verified(path, published=published).counts


@pytest.mark.clause("ERASE-2")
@pytest.mark.parametrize("make", [other_role, other_number])
def test_a_start_that_signs_a_forged_erasure_does_not_make_it_true(
    path: Path, make: Callable[[Path], bytes]
) -> None:
    published = published_of(path)
    forge(path, STREAM, 1, make(path))
    with SqliteLog(path) as log:
        checkpoint(log, KEY)

    assert "checkpoint_mismatch" in verified(path).counts
    assert "head_mismatch" in verified(path, published=[*published, published_of(path)[-1]]).counts


@pytest.mark.clause("ERASE-2")
def test_words_that_stand_in_an_erased_row_are_not_read(path: Path) -> None:
    forge(path, STREAM, 1, other_words(path))

    with SqliteLog(path, read_only=True) as log, pytest.raises(CorruptEvent, match="more than is left"):
        log.stream(STREAM)


@pytest.mark.clause("ERASE-2")
def test_an_erasure_behind_a_signed_checkpoint_is_not_proven_until_one_covers_it(path: Path) -> None:
    published = published_of(path)
    position = forge(path, STREAM, 1, encode(left(path, 1)), by="nobody")

    for report in (
        verified(path),
        verified(path, published=published),
        verified(path, published=published, trusted=False),
    ):
        assert report.counts == {"erasure_unproven": 1}
        (seen,) = report.erasures
        assert (seen.position, seen.stream, seen.rows, seen.by) == (position, STREAM, 1, "nobody")
        assert (seen.reason, seen.checkpoint, seen.signed, seen.published) == (
            "asked for",
            None,
            False,
            False,
        )
        assert seen.bound == 1
    report = verified(path, trusted=False)
    assert report.ok
    assert any("That 1 of 1 erasures" in one for one in report.unproven)

    with SqliteLog(path) as log:
        checkpoint(log, KEY)
    report = verified(path)
    assert report.ok
    (seen,) = report.erasures
    assert (seen.checkpoint, seen.signed) == (position, True)


@pytest.mark.clause("ERASE-2")
def test_an_erasure_of_what_no_checkpoint_covers_is_as_unproven_as_that(path: Path) -> None:
    with SqliteLog(path) as log:
        log.append_now([anywhere(STREAM, said("m4", "later"))])
    forge(path, STREAM, 4, with_message(left(path, 4), role="assistant"))

    report = verified(path)
    assert report.ok
    assert any("That 1 erased payloads were, but for their words" in one for one in report.unproven)


@pytest.mark.clause("ERASE-2")
def test_an_event_erases_nothing_that_comes_after_it(path: Path) -> None:
    with SqliteLog(path) as log:
        log.append_now([anywhere("t", said("x"))])
        log.append_now([anywhere(STREAM, said("m4", "later"))])
    payload = encode(left(path, 4))
    put_in_place(path, STREAM, 4, payload)
    with SqliteLog(path, read_only=True) as log:
        (row,) = log.query("SELECT rowid FROM stored_events WHERE originator_id='t'")
    changed_behind(path, "DELETE FROM stored_events WHERE originator_id='t'")
    say_erased(
        path,
        Erased(stream=STREAM, rows=((4, sha256(payload).hexdigest()),), by="operator"),
        position=row[0],
    )

    assert (
        verified(path, trusted=False).counts == {"erased": 1, "chain_broken": 0}
        or "erased" in verified(path).counts
    )


@pytest.mark.clause("ERASE-2")
def test_what_says_that_words_were_erased_is_never_erased_itself(path: Path) -> None:
    forge(path, STREAM, 1, encode(left(path, 1)))
    stream = f"erased:{STREAM}"
    other = encode(Erased(stream=STREAM, rows=((1, "00"),), by="somebody"))
    forge(path, stream, 1, other)

    assert "erased" in verified(path, trusted=False).counts


@pytest.mark.clause("ERASE-2")
def test_a_row_that_was_erased_twice_holds_what_the_last_event_says(path: Path) -> None:
    with SqliteLog(path) as log:
        rows = tuple((one.version, left_of(one) or "") for one in log.stream(STREAM) if one.version == 1)
        erased = Erased(stream=STREAM, rows=rows, by="operator")
        log.append_now([anywhere(f"erased:{STREAM}", draft(erased, "once"))])
        log.append_now([anywhere(f"erased:{STREAM}", draft(erased, "twice"))])
        checkpoint(log, KEY)

    report = verified(path)
    assert (report.ok, report.erased, len(report.erasures)) == (True, 1, 2)


@pytest.mark.clause("ERASE-2")
def test_what_was_erased_of_a_log_without_such_checkpoints_is_said_to_rest_on_the_erasure_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.db"
    with SqliteLog(path) as log:
        log.append_now([anywhere(STREAM, said("m1", "words"))])
        rows = tuple((one.version, left_of(one) or "") for one in log.stream(STREAM))
        log.append_now([anywhere(f"erased:{STREAM}", draft(Erased(stream=STREAM, rows=rows, by="op"), "e"))])
        checkpoint(log, KEY)

    report = verified(path)
    assert report.ok
    assert any("but for their words" in one for one in report.unproven)
