"""Published checkpoints are read as they lie, also where a write was cut off; what is none is refused."""

import msgspec
import pytest

from intersession_events.basics.errors import BadCheckpoint
from intersession_events.proofs.published import published_in
from intersession_events.proofs.statement import Checkpoint


def checkpoint(position: int) -> Checkpoint:
    return Checkpoint(log_id="l", position=position, count=position, rolling="r", events_root="e")


LINES = [checkpoint(position).line for position in (3, 14, 15)]


def positions(text: bytes) -> list[int]:
    return [one.position for one in published_in(text)]


@pytest.mark.clause("CHECK-3")
def test_lines_are_read_and_what_was_cut_off_is_passed_over() -> None:
    torn = LINES[1][:40]

    assert positions(b"".join(LINES)) == [3, 14, 15]
    assert positions(LINES[0] + torn) == [3]
    assert positions(LINES[0] + torn + b"\n" + LINES[1] + LINES[2]) == [3, 14, 15]
    assert positions(LINES[0] + b"\n" + LINES[1]) == [3, 14]
    assert positions(LINES[0].strip()) == [3]
    assert positions(msgspec.json.format(LINES[1], indent=2)) == [14]


@pytest.mark.parametrize("number", range(1, 4))
def test_one_that_was_published_twice_is_the_same_one(number: int) -> None:
    assert set(positions(b"".join([*LINES[:number], LINES[number - 1], *LINES[number:]]))) == {3, 14, 15}


@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"null", b"[]\n", LINES[0] + b"something else\n" + LINES[1], LINES[0].replace(b"3", b"x")],
)
def test_what_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        published_in(text)
