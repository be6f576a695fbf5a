"""An append behind another one is recorded only if that one is, and after it: in one commit where that can be."""

from pathlib import Path

import msgspec
import pytest

from intersession_events.log.recorded import Committed, Conflict, Outcome, Unavailable
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import AnyLog
from support.faulty_store import FAULT, FAULTY, cut_off
from support.log_drafts import said, to

A, B, C = (said(name) for name in "abc")


def kinds(told: list[Outcome]) -> list[type[Outcome]]:
    return [type(outcome) for outcome in told]


@pytest.mark.clause("O1")
def test_what_is_behind_an_append_shares_its_commit_and_stands_after_it(by_hand: AnyLog) -> None:
    told: list[Outcome] = []
    batches: list[list[str]] = []
    by_hand.on_committed(lambda batch: batches.append([item.id for item in batch]))

    first = by_hand.append([to("s", 0, A)], told.append, patient=True)
    by_hand.append([to("t", 0, B)], told.append, behind=first)
    by_hand.step()

    assert kinds(told) == [Committed, Committed]
    assert batches == [["id-a", "id-b"]]
    assert not first.has_failed


def test_what_is_behind_a_durable_append_is_recorded(by_hand: AnyLog) -> None:
    told: list[Outcome] = []
    first = by_hand.append([to("s", 0, A)], told.append)
    by_hand.step()

    by_hand.append([to("t", 0, B)], told.append, behind=first)
    by_hand.step()

    assert kinds(told) == [Committed, Committed]


def test_what_is_behind_an_append_that_was_recorded_before_is_recorded(by_hand: AnyLog) -> None:
    by_hand.append_now([to("s", 0, A)])
    told: list[Outcome] = []

    first = by_hand.append([to("s", 0, A)], told.append)
    by_hand.append([to("t", 0, B)], told.append, behind=first)
    by_hand.step()

    assert kinds(told) == [Committed, Committed]
    assert [item.id for item in by_hand.all()] == ["id-a", "id-b"]


@pytest.mark.clause("O1")
def test_nothing_is_recorded_behind_an_append_that_conflicts(by_hand: AnyLog) -> None:
    told: list[Outcome] = []

    first = by_hand.append([to("s", 3, A)], told.append)
    second = by_hand.append([to("t", 0, B)], told.append, behind=first)
    by_hand.append([to("u", 0, C)], told.append, behind=second)
    by_hand.append([to("v", 0, C)], told.append)
    by_hand.step()

    assert kinds(told) == [Conflict, Conflict, Conflict, Committed]
    assert [outcome.stream for outcome in told if isinstance(outcome, Conflict)] == ["s", "s", "t"]
    assert first.has_failed
    assert [item.stream for item in by_hand.all()] == ["v"]


@pytest.mark.parametrize("unfit", ["the envelope", "the payload"])
def test_nothing_is_recorded_behind_an_append_that_can_not_be_stored(by_hand: AnyLog, unfit: str) -> None:
    told: list[Outcome] = []
    bad = msgspec.structs.replace(A, id="\ud800") if unfit == "the envelope" else said("a", "\ud800")

    first = by_hand.append([to("s", 0, bad)], told.append)
    by_hand.append([to("t", 0, B)], told.append, behind=first)
    by_hand.append([to("u", 0, C)], told.append)
    by_hand.step()

    assert kinds(told) == [Unavailable, Conflict, Committed]
    assert first.has_failed
    assert [item.stream for item in by_hand.all()] == ["u"]


@pytest.mark.clause("O5")
def test_nothing_is_recorded_behind_an_append_whose_commit_failed(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", environment=FAULTY, threads=False) as log:
        told: list[Outcome] = []
        first = log.append([to("s", 0, A)], told.append)
        log.append([to("t", 0, B)], told.append, behind=first)
        FAULT.before = cut_off()
        log.step()
        log.append([to("t", 0, B)], told.append, behind=first)
        log.step()

        assert kinds(told) == [Unavailable, Unavailable, Conflict]
        assert list(log.all()) == []


@pytest.mark.clause("O5")
def test_both_are_found_again_where_the_answer_of_their_commit_was_lost(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", environment=FAULTY, threads=False) as log:
        told: list[Outcome] = []
        first = log.append([to("s", 0, A)], told.append)
        log.append([to("t", 0, B)], told.append, behind=first)
        FAULT.after = cut_off()
        log.step()

        assert kinds(told) == [Committed, Committed]
        assert not first.has_failed


def test_a_log_that_takes_nothing_takes_nothing_behind_it(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s", 0, A)])
    told: list[Outcome] = []
    with SqliteLog(tmp_path / "log.db", read_only=True) as reader:
        first = reader.append([to("s", 1, B)], told.append)

    assert first.has_failed
    assert kinds(told) == [Unavailable]
