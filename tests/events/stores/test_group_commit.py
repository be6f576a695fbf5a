"""Group commit: whose work shares a transaction, and who gets a turn in between."""

import threading
import time
from collections.abc import Sequence

import pytest

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.stores.portable.group_commit import GroupCommit, Work

WAIT_S = 20.0


class Piece(Work):
    """Work that only notes that it was told."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_those_who_were_just_told_get_a_turn_before_one_who_came_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else that one has a sync of its own for ever after: batches of 1 and 63 by turns, at three quarters of the appends."""
    batches: list[str] = []
    begun, go_on, last = threading.Event(), threading.Event(), threading.Event()

    def write(batch: Sequence[Work]) -> None:
        batches.append("".join(piece.name for piece in batch if isinstance(piece, Piece)))
        if batches[-1] == "a":
            begun.set()
            assert go_on.wait(WAIT_S)
        elif batches[-1] == "bc":
            commits.submit(Piece("d"))  # it came while they were written
        else:
            last.set()

    def turn(seconds: float) -> None:
        assert seconds == 0
        commits.submit(Piece("e"))  # as somebody does who was told

    monkeypatch.setattr(time, "sleep", turn)
    commits = GroupCommit(write)
    commits.submit(Piece("a"))
    assert begun.wait(WAIT_S)
    commits.submit(Piece("b"))
    commits.submit(Piece("c"))
    go_on.set()
    assert last.wait(WAIT_S)
    commits.close()

    assert batches == ["a", "bc", "de"]


def test_whoever_is_interrupted_in_a_submission_can_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler of a signal runs in the middle of what its thread does, and may close the log."""
    written: list[Work] = []
    commits = GroupCommit(written.extend)
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        monkeypatch.undo()
        start(thread)
        commits.forget()
        with pytest.raises(StoreUnavailable, match="closed"):
            commits.submit(Piece("b"))

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    ended = threading.Thread(target=lambda: commits.submit(Piece("a")))
    start(ended)
    ended.join(WAIT_S)

    assert not ended.is_alive()
    assert written == []
