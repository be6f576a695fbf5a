"""When a checkpoint is due, what a stop may cost, and how long a target is left alone after it failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.assembly.checkpoints.checkpointer import heads_are_few, is_due, is_short, wait_ms
from intersession_actors.assembly.checkpoints.publishing import pause_ms, published_up_to
from intersession_actors.rules.config.host import Checkpoints
from intersession_events.facts import CheckpointPublished
from intersession_events.proofs.statement import Checkpoint


@pytest.mark.clause("CHECK-1")
@pytest.mark.parametrize(
    ("every", "fresh", "due"), [(1000, 999, False), (1000, 1000, True), (1, 0, False), (0, 5000, False)]
)
def test_so_many_new_events_make_a_checkpoint_due_and_0_never(every: int, fresh: int, *, due: bool) -> None:
    assert is_due(Checkpoints(every_events=every), fresh) is due


def test_something_new_waits_so_many_seconds_and_with_0_as_long_as_it_likes() -> None:
    assert wait_ms(Checkpoints()) == 300_000
    assert wait_ms(Checkpoints(every_seconds=0)) is None


@given(st.integers(1, 10_000))
def test_pauses_grow_from_a_second_to_five_minutes(failures: int) -> None:
    assert 1_000 <= pause_ms(failures) <= pause_ms(failures + 1) <= 300_000
    assert pause_ms(1) == 1_000


def checkpoint(position: int, streams: int | None) -> Checkpoint:
    return Checkpoint(
        log_id="l", position=position, count=position, rolling="", events_root="", streams=streams
    )


def test_a_process_that_stops_reads_little() -> None:
    assert is_short(0, 20_000)
    assert not is_short(0, 20_000 + 1)
    assert heads_are_few(None, 20_000)
    assert heads_are_few(checkpoint(10**6, 1_000), 10**6 + 1_000)
    assert not heads_are_few(checkpoint(10**6, 20_000), 10**6 + 1)
    assert not heads_are_few(checkpoint(10**6, None), 10**6 + 1)


def test_what_a_target_has_is_the_last_that_was_recorded_for_it() -> None:
    published = [
        CheckpointPublished(position=position, to="file", target=target)
        for position, target in ((5, "a"), (9, "a"), (7, "b"))
    ]

    assert [published_up_to(target, published) for target in "abc"] == [9, 7, None]
